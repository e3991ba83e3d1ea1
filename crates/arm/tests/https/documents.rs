//! What people ask for beside the loop's contract.

use serde_json::json;

use crate::server::json as answer;
use crate::world::{TOKEN, World};

const USAGES: &str = "/subscriptions/sub/providers/Microsoft.Network/locations/westeurope/usages";

#[tokio::test]
async fn a_document_comes_with_its_status_and_the_hour_of_who_sent_it() {
    let world =
        World::new(|_| answer(200, r#"{"value":[]}"#).with("date", "Mon, 16 Nov 2026 03:00:00 GMT")).await;
    let read = world.client.read_document(&format!("{USAGES}?api-version=2025-05-01")).await.unwrap();
    assert_eq!((read.status, read.body), (200, json!({"value": []})));
    assert_eq!(read.date.as_deref(), Some("Mon, 16 Nov 2026 03:00:00 GMT"));
    let seen = world.server.seen();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].header("authorization")),
        ("GET", format!("Bearer {TOKEN}").as_str())
    );
    assert_eq!(seen[0].path, format!("{USAGES}?api-version=2025-05-01"));
}

#[tokio::test]
async fn a_page_that_is_no_json_is_nothing() {
    let world = World::new(|_| answer(403, "<html>")).await;
    let read = world.client.read_document(USAGES).await.unwrap();
    assert_eq!((read.status, read.body), (403, json!(null)));
}

#[tokio::test]
async fn the_token_goes_to_nobody_else() {
    let world = World::new(|_| answer(200, "{}")).await;
    for elsewhere in ["https://elsewhere.example/x", "//elsewhere.example/x", "http://127.0.0.1/x"] {
        let error = world.client.read_document(elsewhere).await.unwrap_err();
        assert!(error.contains("not sent"), "{error}");
    }
    assert_eq!(world.server.seen().len(), 0);
}
