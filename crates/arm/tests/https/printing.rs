//! Nothing that can be printed has a secret in it, and whatever is logged is heard by these tests.

use sluice_arm::{Client, Credential, Pem, Proxy, Secret, Settings};

use crate::authority::{client_secret, entra};
use crate::certificates::Ca;
use crate::leaks;
use crate::world::{World, answered, settings};

#[tokio::test]
async fn no_type_prints_what_is_secret() {
    let world = World::with(|settings| settings.credential = client_secret(), entra).await;
    answered(&world.read().await);
    let pem = |text: &str| Pem::Bytes(text.as_bytes().to_vec());
    let proxy = Proxy::Through { url: Secret::new("http://u:p-s3cr3t@proxy"), except: "a".into() };
    let certificate = Credential::ClientCertificate {
        tenant: "t".into(),
        client_id: "c".into(),
        certificate: pem("key-s3cr3t"),
    };
    let token = Credential::Token(Secret::new("token-s3cr3t"));
    let mut all = settings(&world.ca, &world.server);
    all.extra_ca = Some(pem("ca-s3cr3t"));
    let shown = [
        format!("{:?}", Settings { credential: client_secret(), proxy: proxy.clone(), ..all }),
        format!("{proxy:?} {certificate:#?} {token:?} {:?}", client_secret()),
        format!("{:?} {:#?}", world.client, world.records()),
    ]
    .concat();
    assert!(!shown.contains(leaks::MARK), "{shown}");
    assert!(shown.contains("[redacted]"));
}

#[tokio::test]
async fn everything_that_is_logged_is_heard() {
    let world = World::with(|settings| settings.credential = client_secret(), entra).await;
    answered(&world.write().await);
    answered(&world.read().await);
    // Ours, one line per call and the bodies; those of azure_core; those of the TLS library.
    for said in [
        "call to Azure",
        "direction=\"sent\"",
        "direction=\"received\"",
        "received an access token",
        "typespec",
        "rustls::",
    ] {
        assert!(leaks::was_heard(said), "{said} was not heard");
    }
}

#[tokio::test]
async fn a_leak_would_be_noticed() {
    leaks::listen();
    // A word of its own, so that the other tests do not stumble over it.
    let word = "planted-leak";
    tracing::trace!(value = word, "on purpose");
    assert!(leaks::was_heard(word));
    log::trace!("also on purpose: {word}-by-log");
    assert!(leaks::was_heard("planted-leak-by-log"));
    let log = format!("first\nsecond {} end\nthird {word}", leaks::MARK);
    assert_eq!(leaks::leak_in(&log, &[]), Some(format!("second {} end", leaks::MARK).as_str()));
    assert_eq!(leaks::leak_in("first\nthird planted-leak", &[word.to_owned()]), Some("third planted-leak"));
    assert_eq!(leaks::leak_in("nothing", &[word.to_owned()]), None);
}

#[test]
fn a_client_says_where_it_goes() {
    // Whatever roots this machine has or lacks, there is one CA to check against.
    let settings = Settings {
        extra_ca: Some(Pem::Bytes(Ca::new().pem.into_bytes())),
        ..Settings::new("westeurope", Credential::Token(Secret::new("x")))
    };
    let client = Client::new(&settings).unwrap();
    assert_eq!(client.host(), "management.azure.com");
    assert_eq!(format!("{client:?}"), "Client { endpoint: \"https://management.azure.com/\", .. }");
}
