//! Tokens: who gets one, how, and what one needs it for.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use sluice_emulator::{Credentials, Options};

use crate::support::{Answer, Azure, GROUP, SCOPE, instant};

const TOKEN: &str = "/tenant/oauth2/v2.0/token";

fn secret<'a>(client: &'a str, secret: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "client_credentials"),
        ("client_id", client),
        ("client_secret", secret),
        ("scope", SCOPE),
    ]
}

fn assertion(claims: Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", part(&json!({"alg": "RS256"})), part(&claims), URL_SAFE_NO_PAD.encode("signature"))
}

#[tokio::test]
async fn a_secret_gives_a_token_that_opens_the_resource_manager() {
    let azure = Azure::start(instant()).await;
    let answer = azure.ask_for_token(TOKEN, &secret("app", "x")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["token_type"], "Bearer");
    assert_eq!(answer.body["expires_in"], 3_600);
    assert_eq!(azure.get(GROUP).await.status, 200);
    let old = [
        ("grant_type", "client_credentials"),
        ("client_id", "app"),
        ("client_secret", "x"),
        ("resource", "https://management.azure.com/"),
    ];
    let answer = azure.ask_for_token("/tenant/oauth2/token", &old).await;
    assert_eq!(answer.body["expires_in"], "3600");
    assert_eq!(answer.body["resource"], "https://management.azure.com/");
}

#[tokio::test]
async fn an_assertion_gives_one_too_if_it_is_well_formed_and_not_over() {
    let azure = Azure::start(instant()).await;
    let ask = async |assertion: &str, kind: &str| {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "app"),
            ("client_assertion", assertion),
            ("client_assertion_type", kind),
            ("scope", SCOPE),
        ];
        azure.ask_for_token(TOKEN, &form).await
    };
    let bearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let good =
        assertion(json!({"sub": "system:serviceaccount:kube-system:sluice", "exp": 99_999_999_999u64}));
    assert_eq!(ask(&good, bearer).await.status, 200);
    assert_eq!(ask(&good, "urn:other").await.status, 400);
    let over = ask(&assertion(json!({"exp": 1})), bearer).await;
    assert_eq!((over.status, over.body["error_codes"][0].as_u64()), (401, Some(700_024)));
    for bad in ["x", "a.b.c", "..", &format!("{good}.more")] {
        let answer = ask(bad, bearer).await;
        assert_eq!((answer.status, answer.body["error_codes"][0].as_u64()), (401, Some(50_027)), "{bad}");
    }
}

#[tokio::test]
async fn a_wrong_form_is_refused_with_the_directorys_number() {
    let azure = Azure::start(instant()).await;
    let without = |name: &str| -> Vec<(&str, &str)> {
        secret("app", "x").into_iter().filter(|(it, _)| *it != name).collect()
    };
    let with = |name: &'static str, value: &'static str| -> Vec<(&str, &str)> {
        let mut form: Vec<_> = secret("app", "x").into_iter().filter(|(it, _)| *it != name).collect();
        form.push((name, value));
        form
    };
    for (form, status, error, number) in [
        (without("grant_type"), 400, "invalid_request", 900_144),
        (without("client_id"), 400, "invalid_request", 900_144),
        (without("scope"), 400, "invalid_request", 900_144),
        (without("client_secret"), 401, "invalid_client", 7_000_218),
        (with("client_secret", ""), 401, "invalid_client", 7_000_218),
        (with("grant_type", "password"), 400, "unsupported_grant_type", 70_003),
        (with("scope", "https://management.azure.com/user_impersonation"), 400, "invalid_scope", 1_002_012),
        (with("scope", "/.default"), 400, "invalid_scope", 1_002_012),
    ] {
        let answer = azure.ask_for_token(TOKEN, &form).await;
        assert_eq!(answer.status, status, "{form:?}");
        assert_eq!(answer.body["error"], error, "{form:?}");
        assert_eq!(answer.body["error_codes"], json!([number]), "{form:?}");
        let description = answer.body["error_description"].as_str().unwrap();
        assert!(description.starts_with(&format!("AADSTS{number}: ")), "{description}");
    }
    let get = azure.client.get(azure.url(TOKEN)).send().await.unwrap();
    assert_eq!(get.status(), 405);
    let as_json = azure.client.post(azure.url(TOKEN)).json(&json!({})).send().await.unwrap();
    assert_eq!(as_json.status(), 400);
}

#[tokio::test]
async fn named_clients_need_their_own_secret() {
    let known = BTreeMap::from([("app".to_owned(), "secret".to_owned())]);
    let azure = Azure::start(Options { credentials: Credentials::Only(known), ..instant() }).await;
    let wrong = azure.ask_for_token(TOKEN, &secret("app", "guess")).await;
    assert_eq!((wrong.status, wrong.body["error_codes"][0].as_u64()), (401, Some(7_000_215)));
    assert!(!wrong.body.to_string().contains("guess"), "{wrong:?}");
    let stranger = azure.ask_for_token(TOKEN, &secret("other", "secret")).await;
    assert_eq!((stranger.status, stranger.body["error_codes"][0].as_u64()), (400, Some(700_016)));
}

#[tokio::test]
async fn discovery_leads_back_to_us() {
    let azure = Azure::start(instant()).await;
    let get =
        async |path: &str| Answer::of(azure.client.get(azure.url(path)).send().await.unwrap()).await.body;
    let configuration = get("/tenant/v2.0/.well-known/openid-configuration").await;
    assert_eq!(configuration["token_endpoint"], azure.url(TOKEN));
    assert_eq!(configuration["issuer"], azure.url("/tenant/v2.0"));
    let instance = get("/common/discovery/instance?api-version=1.1").await;
    let tenant = instance["tenant_discovery_endpoint"].as_str().unwrap();
    assert!(tenant.starts_with(&azure.running.url()), "{tenant}");
    let cloud = get("/metadata/endpoints?api-version=2022-09-01").await;
    assert_eq!(cloud["resourceManager"], azure.running.url());
}

#[tokio::test]
async fn the_resource_manager_says_why_it_lets_nobody_in() {
    let azure = Azure::start(instant()).await;
    let ask = async |authorization: Option<&str>| {
        let request = azure.client.get(azure.url(&format!("{GROUP}?api-version=2021-04-01")));
        let request = match authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        Answer::of(request.send().await.unwrap()).await
    };
    let form: Vec<(&str, &str)> = secret("app", "x")
        .into_iter()
        .map(
            |(name, value)| {
                if name == "scope" { (name, "https://vault.azure.net/.default") } else { (name, value) }
            },
        )
        .collect();
    let elsewhere = azure.ask_for_token(TOKEN, &form).await.body["access_token"].as_str().unwrap().to_owned();
    for (authorization, code) in [
        (None, "AuthenticationFailed"),
        (Some("Basic YTpi"), "AuthenticationFailed"),
        (Some("Bearer nonsense"), "InvalidAuthenticationToken"),
        (Some(&*format!("Bearer {elsewhere}")), "InvalidAuthenticationTokenAudience"),
    ] {
        let answer = ask(authorization).await;
        assert_eq!((answer.status, answer.code()), (401, code));
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer authorization_uri="), "{challenge}");
    }
    azure.do_control("tokens/expire", json!({})).await;
    let expired = azure.get(GROUP).await;
    assert_eq!((expired.status, expired.code()), (401, "ExpiredAuthenticationToken"));
}

#[tokio::test]
async fn a_token_expires_when_its_lifetime_is_over() {
    let azure = Azure::start(Options { token_lifetime: Duration::ZERO, ..instant() }).await;
    assert_eq!(azure.get(GROUP).await.code(), "ExpiredAuthenticationToken");
}

#[tokio::test]
async fn managed_identities_get_tokens_in_both_shapes() {
    let azure = Azure::start(instant()).await;
    let plain = azure.running.http_url().unwrap();
    let header = azure.running.identity_header();
    let ask = async |path: &str, header: Option<(&str, &str)>| {
        let request = azure.client.get(format!("{plain}{path}"));
        let request = match header {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        Answer::of(request.send().await.unwrap()).await
    };
    let resource = "resource=https%3A%2F%2Fmanagement.azure.com%2F";
    let machine = format!("/metadata/identity/oauth2/token?api-version=2018-02-01&{resource}");
    let service = format!("/msi/token?api-version=2019-08-01&{resource}");
    for (path, name, value) in [(&machine, "Metadata", "true"), (&service, "X-IDENTITY-HEADER", &*header)] {
        let system = ask(path, Some((name, value))).await;
        assert_eq!(system.status, 200, "{system:?}");
        assert_eq!(system.body["resource"], "https://management.azure.com/");
        assert!(system.body["expires_on"].is_string());
        let user = ask(&format!("{path}&client_id=mine"), Some((name, value))).await;
        assert_eq!(user.body["client_id"], "mine");
        assert_ne!(system.body["client_id"], user.body["client_id"]);
        let token = user.body["access_token"].as_str().unwrap();
        let url = azure.url(&format!("{GROUP}?api-version=2021-04-01"));
        let opened = azure.client.get(url).bearer_auth(token).send().await.unwrap();
        assert_eq!(opened.status(), 200);
        assert!(ask(path, None).await.status >= 400);
        let old = path.replace("2018-02-01", "2017-01-01").replace("2019-08-01", "2017-01-01");
        assert_eq!(ask(&old, Some((name, value))).await.status, 400);
        let nothing = path.replace(resource, "");
        assert_eq!(ask(&nothing, Some((name, value))).await.status, 400);
    }
    let instance = ask("/metadata/instance?api-version=2021-02-01", Some(("Metadata", "true"))).await;
    assert_eq!(instance.body["compute"]["azEnvironment"], "AzurePublicCloud");
    let principals: Vec<Value> =
        azure.log().await.iter().filter(|it| it["area"] == "arm").map(|it| it["principal"].clone()).collect();
    assert_eq!(principals, ["mine", "mine"]);
    // Who asks over TLS is served as well.
    let secure = azure.client.request(Method::GET, azure.url(&machine)).header("Metadata", "true");
    assert_eq!(secure.send().await.unwrap().status(), 200);
}
