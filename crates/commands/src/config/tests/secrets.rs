//! A secret is nowhere to be seen.

use super::{LEAST, load_with};
use crate::config::{Assignment, ConfigArguments, print};

const SECRET: &str = "hunter2-geheim";

#[test]
fn no_way_of_printing_shows_a_secret() {
    let none = LEAST.replace("useManagedIdentityExtension: true\n", "");
    let file = format!("{none}aadClientId: app\ntenantId: t\naadClientSecret: {SECRET}\n");
    let proxy = format!("http://user:{SECRET}@proxy:3128");
    let from_file = load_with(&file, &[("HTTPS_PROXY", &proxy)], &[]).unwrap();
    let variables = [("AZURE_CLIENT_SECRET", SECRET), ("AZURE_CLIENT_ID", "app"), ("AZURE_TENANT_ID", "t")];
    let from_environment = load_with(&none, &variables, &[]).unwrap();
    for loaded in [from_file, from_environment] {
        let settings = loaded.config.arm_settings().unwrap();
        let shown = [
            format!("{loaded:?}"),
            format!("{loaded:#?}"),
            format!("{:?}", loaded.config),
            print::text(&loaded),
            print::json(&loaded).to_string(),
            format!("{settings:?}"),
        ];
        for text in shown {
            assert!(!text.contains(SECRET), "{text}");
            assert!(text.contains("redacted"), "{text}");
        }
    }
}

#[test]
fn no_refusal_repeats_a_secret() {
    let with = |line: &str| format!("{LEAST}{line}\n");
    let texts = [
        with(&format!("aadClientSecret: {SECRET}")),
        with(&format!("aadClientSecret: [{SECRET}]")),
        with(&format!("aadClientSecret: {{a: {SECRET}}}")),
        with(&format!("aadClientSecret: {SECRET}\nAADClientSecret: {SECRET}")),
        with(&format!("sluice:\n  aadClientSecret: {SECRET}")),
        with(&format!("sluice:\n  unknown: {SECRET}")),
        with(&format!("sluice: {SECRET}")),
        with(&format!("resourceManagerEndpoint: https://user:{SECRET}@arm.example")),
        with(&format!("aadClientSecret: &x {SECRET}\nb: *x")),
        with(&format!("aadClientSecret: \"{SECRET}")),
    ];
    for text in texts {
        let error = load_with(&text, &[], &[]).expect_err("it should be refused");
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains(SECRET), "{text}\n{shown}");
    }
    let error = load_with(LEAST, &[], &[&format!("aadClientSecret={SECRET}")]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET));
}

#[test]
fn arguments_do_not_show_what_was_set() {
    let set = vec![Assignment::new(format!("aadClientSecret={SECRET}"))];
    let arguments = ConfigArguments { set, ..ConfigArguments::default() };
    let shown = format!("{arguments:?}");
    assert!(shown.contains("aadClientSecret=…") && !shown.contains(SECRET), "{shown}");
}
