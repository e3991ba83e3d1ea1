//! `sluice explain`: why something is where it is, or what a code means.

mod pages;

use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use futures::future::LocalBoxFuture;
use sluice_view::moment::span;
use sluice_view::{Explanation, State};

pub use pages::{Start, every, meaning, page};

use crate::output::Output;
use crate::paint::Paint;
use crate::status::{Leader, LeaderArguments};

/// Explain a Service, an egress or a code.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Use service/NAMESPACE/NAME, egress/NAME or a code such as SGW0008
    #[arg(value_name = "TARGET", required_unless_present = "list")]
    what: Option<What>,
    /// List all codes with name and meaning (needs no controller)
    #[arg(long, conflicts_with_all = ["what", "LeaderArguments"])]
    list: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    leader: LeaderArguments,
}

const HELP: &str = "\
Examples:
  sluice explain service/shop/web     explain the Service `web` in the namespace `shop`
  sluice explain egress/blue          explain the egress `blue`
  sluice explain service/-/UID        explain the Azure resources left by a deleted Service
  sluice explain SGW0008              explain an error code (needs no controller)
  sluice explain --list               list all codes (needs no controller)

Exit codes: 0 explained · 1 not found, or the controller cannot be reached · 2 invalid arguments";

/// Something that can be explained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A Service.
    Service {
        /// Its namespace; `-` when its object is gone.
        namespace: String,
        /// Its name; its UID when its object is gone.
        name: String,
    },
    /// An egress.
    Egress(String),
    /// A code: its page.
    Code(&'static str),
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<What, String> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            ["service" | "services" | "svc", namespace, name]
                if !namespace.is_empty() && !name.is_empty() =>
            {
                Ok(What::Service { namespace: (*namespace).into(), name: (*name).into() })
            }
            ["egress" | "egresses", name] if !name.is_empty() => Ok(What::Egress((*name).into())),
            [word] => page(word).map(What::Code).ok_or_else(|| unknown(&parts)),
            _ => Err(unknown(&parts)),
        }
    }
}

fn unknown(parts: &[&str]) -> String {
    let expected = "expected service/NAMESPACE/NAME, egress/NAME or a code such as SGW0008";
    match parts {
        [word] if pages::is_code(word) => {
            let codes: Vec<&str> = every().map(|(code, _)| code).collect();
            format!("unknown code; known codes: {}", codes.join(", "))
        }
        // Only what can be the name of an object.
        [..] if !parts.iter().all(|part| !part.is_empty() && part.bytes().all(is_in_name)) => expected.into(),
        [name] | ["service" | "services" | "svc", name] => {
            format!("{expected}; did you mean service/default/{name}?")
        }
        [namespace, name] => format!("{expected}; did you mean service/{namespace}/{name}?"),
        _ => expected.into(),
    }
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte)
}

/// Explains it.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, anyhow::Result<()>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let Some(what) = &arguments.what else {
        match arguments.output {
            Output::Text => show(&listed(paint)),
            Output::Json => show(&format!("{:#}\n", listed_as_json())),
        }
        return Ok(());
    };
    let path = match what {
        What::Code(page) => {
            match arguments.output {
                Output::Text => show(&styled(page, paint)),
                Output::Json => show(&format!("{:#}\n", serde_json::json!({ "page": page }))),
            }
            return Ok(());
        }
        What::Service { namespace, name } => {
            format!("/api/v1/services/{}/{}/explain", encoded(namespace), encoded(name))
        }
        What::Egress(name) => format!("/api/v1/egresses/{}/explain", encoded(name)),
    };
    let leader = Leader::find(&arguments.leader).await?;
    let explanation: Explanation =
        leader.get(&path).await.map_err(|error| match error.downcast_ref::<crate::status::Refused>() {
            Some(refused) if refused.status == 404 => {
                let message = refused.message.trim_end_matches('.');
                anyhow!("{message}; run `sluice status` to list all Services and egresses")
            }
            _ => error,
        })?;
    match arguments.output {
        Output::Text => show(&told(&explanation, paint)),
        Output::Json => show(&format!("{}\n", serde_json::to_string_pretty(&explanation)?)),
    }
    Ok(())
}

/// Whoever has stopped reading misses nothing.
fn show(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn encoded(part: &str) -> String {
    url::form_urlencoded::byte_serialize(part.as_bytes()).collect::<String>().replace('+', "%20")
}

/// All codes for a terminal: one line each.
fn listed(paint: Paint) -> String {
    let width = every().map(|(_, label)| label.len()).max().unwrap_or(0);
    let mut text = paint.bold(&format!("{:7}  {:width$}  MEANING", "CODE", "LABEL")) + "\n";
    for (code, label) in every() {
        let _ = writeln!(text, "{code}  {label:width$}  {}", meaning(code).unwrap_or_default());
    }
    text
}

/// All codes for scripts.
fn listed_as_json() -> serde_json::Value {
    let codes: Vec<_> = every()
        .map(|(code, label)| serde_json::json!({ "code": code, "label": label, "meaning": meaning(code) }))
        .collect();
    serde_json::json!({ "codes": codes })
}

/// A page for a terminal: its headings stand out.
fn styled(page: &str, paint: Paint) -> String {
    let mut text = String::new();
    for line in page.lines() {
        let heading = line.strip_prefix("## ").or_else(|| line.strip_prefix("# "));
        match heading {
            Some(heading) => text.push_str(&paint.bold(heading)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// An explanation for people.
fn told(explanation: &Explanation, paint: Paint) -> String {
    let progress = explanation.status.progress();
    let mut text = String::new();
    let mut say = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    let more = match (progress.parked, progress.trouble) {
        (true, _) => ", parked",
        (false, true) => ", in trouble",
        (false, false) => "",
    };
    let state = format!("{}{more}", progress.state);
    let state = match progress.state {
        _ if progress.trouble => paint.bad(&state),
        State::Created => paint.good(&state),
        _ => paint.busy(&state),
    };
    say(format!("{}   {state}", paint.bold(&explanation.status.title())));
    say(explanation.summary.clone());
    say(String::new());
    let addresses = &progress.addresses;
    let ip = progress.public_ip.map_or("none yet".into(), |ip| ip.to_string());
    say(format!("Public IP   {ip}"));
    say(format!(
        "Addresses   {} desired, {} buffered, {} programmed{}{}",
        addresses.desired,
        addresses.buffered,
        addresses.programmed,
        some(addresses.unplaceable, "without a node IP"),
        some(addresses.quarantined, "quarantined"),
    ));
    if let sluice_view::Status::Egress(egress) = &explanation.status {
        say(format!("Pods        {}", egress.pods));
    }
    if let Some(failure) = &progress.last_failure {
        let ago = span(failure.at.age_seconds);
        say(format!("Last error  {ago} ago at {}: {}", failure.step, paint.bad(&failure.message)));
    }
    if !explanation.waits_for.is_empty() {
        say(String::new());
        say(paint.bold("Waiting for"));
        for wait in &explanation.waits_for {
            say(format!("- {}", wait.sentence));
        }
    }
    if !explanation.timeline.is_empty() {
        say(String::new());
        say(paint.bold("Timeline"));
        let ages: Vec<String> = explanation.timeline.iter().map(|it| span(it.at.age_seconds)).collect();
        let width = ages.iter().map(|age| age.chars().count()).max().unwrap_or(0);
        for (happening, age) in explanation.timeline.iter().zip(&ages) {
            let sentence =
                if happening.bad { paint.bad(&happening.sentence) } else { happening.sentence.clone() };
            say(format!("{} {age:>width$} ago   {sentence}", paint.faint(&happening.at.at)));
        }
    }
    if !explanation.what_to_do.is_empty() {
        say(String::new());
        say(paint.bold("What to do"));
        for advice in &explanation.what_to_do {
            say(format!("- {advice}"));
        }
    }
    text
}

fn some(many: u64, words: &str) -> String {
    if many == 0 { String::new() } else { format!(", {many} {words}") }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use sluice_view::{Due, Happening, LastFailure, Since, Wait, WaitKind};

    use super::*;
    use crate::status::parked_for_tests;

    #[test]
    fn what_can_be_explained_is_understood_in_its_usual_spellings() {
        let service = What::Service { namespace: "shop".into(), name: "web".into() };
        for text in ["service/shop/web", "svc/shop/web", "services/shop/web"] {
            assert_eq!(text.parse(), Ok(service.clone()), "{text}");
        }
        assert_eq!("egress/blue".parse(), Ok(What::Egress("blue".into())));
        assert_eq!("sgw0008".parse(), Ok(What::Code(page("SGW0008").unwrap())));
        assert_eq!("QuotaExceeded".parse(), Ok(What::Code(page("SGW0008").unwrap())));
        assert!("SGW9999".parse::<What>().unwrap_err().contains("SGW0001"));
        for text in ["web", "shop/web", "service/web", "service//web", "egress/", "egress/a/b", ""] {
            assert!(text.parse::<What>().is_err(), "{text}");
        }
        for (text, meant) in
            [("web", "service/default/web"), ("service/web", "service/default/web"), ("a/b", "service/a/b")]
        {
            let error = text.parse::<What>().unwrap_err();
            assert!(error.ends_with(&format!("; did you mean {meant}?")), "{error}");
        }
    }

    #[test]
    fn an_explanation_reads_from_top_to_bottom() {
        let since = |age_seconds| Since { at: "2026-11-16T12:00:00Z".into(), age_seconds };
        let mut status = parked_for_tests();
        if let sluice_view::Status::Egress(egress) = &mut status {
            egress.progress.last_failure = Some(LastFailure {
                at: since(5),
                step: "public-ip".into(),
                code: "PublicIPCountLimitReached".into(),
                message: "PublicIPCountLimitReached: no more".into(),
            });
        }
        let explanation = Explanation {
            status,
            summary: "Pending for 1 min 5 s: no NAT gateway yet.".into(),
            waits_for: vec![Wait {
                kind: WaitKind::Retry,
                sentence: "Next attempt in 9 min 55 s (QuotaExceeded).".into(),
                until: Some(Due { at: "2026-11-16T12:10:00Z".into(), in_seconds: 595 }),
            }],
            timeline: vec![
                Happening { at: since(65), sentence: "operation #1 started".into(), bad: false },
                Happening { at: since(5), sentence: "operation #1 failed at public-ip".into(), bad: true },
            ],
            what_to_do: vec!["Raise the quota. See `sluice explain SGW0008`.".into()],
            plan: None,
            events: Vec::new(),
            calls: Vec::new(),
        };
        expect![[r#"
            egress/blue   NotStarted, parked
            Pending for 1 min 5 s: no NAT gateway yet.

            Public IP   none yet
            Addresses   2 desired, 2 buffered, 0 programmed
            Pods        2
            Last error  5 s ago at public-ip: PublicIPCountLimitReached: no more

            Waiting for
            - Next attempt in 9 min 55 s (QuotaExceeded).

            Timeline
            2026-11-16T12:00:00Z 1 min 5 s ago   operation #1 started
            2026-11-16T12:00:00Z       5 s ago   operation #1 failed at public-ip

            What to do
            - Raise the quota. See `sluice explain SGW0008`.
        "#]]
        .assert_eq(&told(&explanation, Paint::NONE));
    }

    #[test]
    fn the_list_has_one_line_for_each_code() {
        let text = listed(Paint::NONE);
        assert!(
            text.starts_with("CODE     LABEL                  MEANING\nSGW0001  Provisioning  "),
            "{text}"
        );
        assert_eq!(text.lines().count(), every().count() + 1);
        for ((code, label), line) in every().zip(text.lines().skip(1)) {
            let cells: Vec<&str> = line.splitn(3, char::is_whitespace).map(str::trim).collect();
            assert_eq!(cells[0], code);
            assert!(line.contains(&format!("  {label} ")) && line.ends_with('.'), "{line}");
        }
    }

    #[test]
    fn the_json_list_has_code_label_and_meaning_of_every_code() {
        let list = listed_as_json();
        let codes = list["codes"].as_array().unwrap();
        assert_eq!(codes.len(), every().count());
        for (entry, (code, label)) in codes.iter().zip(every()) {
            assert_eq!((entry["code"].as_str(), entry["label"].as_str()), (Some(code), Some(label)));
            assert!(entry["meaning"].as_str().unwrap().ends_with('.'), "{entry}");
        }
    }

    #[test]
    fn explain_takes_a_target_or_the_list_but_not_both() {
        #[derive(clap::Parser, Debug)]
        struct Program {
            #[command(flatten)]
            arguments: Arguments,
        }
        let parsed = |line: &str| <Program as clap::Parser>::try_parse_from(line.split(' '));
        assert!(parsed("explain --list --output json").unwrap().arguments.what.is_none());
        assert!(!parsed("explain SGW0008").unwrap().arguments.list);
        for line in ["explain", "explain --list SGW0008", "explain --list --address http://127.0.0.1:8082"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_page_loses_its_marks_and_nothing_else() {
        let page = page("SGW0007").unwrap();
        let text = styled(page, Paint::NONE);
        assert!(text.starts_with("SGW0007: Throttled\n\n"), "{text}");
        assert_eq!(text.lines().count(), page.lines().count());
    }
}
