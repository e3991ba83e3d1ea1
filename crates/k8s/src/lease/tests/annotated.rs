//! An annotation on a Lease that others write as well.

use serde_json::Value;

use super::super::*;
use crate::scripted::{Say, answering};

const NAME: &str = "sluice.dev/allow-deletion";

fn place() -> Place {
    Place { namespace: "ours".into(), name: "sluice".into() }
}

/// Adds a word to an annotation, while others add so many words of theirs right before the writes that follow.
async fn annotated(others: u32) -> (Result<(), Trouble>, Value) {
    let mut lease =
        json!({"metadata": {"resourceVersion": "1", "annotations": {NAME: "first", "other": "kept"}}});
    let mut written = 0;
    let (client, heard) = answering(move |request| {
        if request.line.starts_with("PATCH") {
            if written < others {
                written += 1;
                let text =
                    format!("{} theirs-{written}", lease["metadata"]["annotations"][NAME].as_str().unwrap());
                lease["metadata"]["annotations"][NAME] = json!(text);
                lease["metadata"]["resourceVersion"] = json!(format!("{}", 1 + written));
            }
            let metadata = &request.body["metadata"];
            let version = &metadata["resourceVersion"];
            if !version.is_null() && *version != lease["metadata"]["resourceVersion"] {
                return Say::status(409, "Conflict", "the object has been modified");
            }
            lease["metadata"]["annotations"][NAME] = metadata["annotations"][NAME].clone();
        }
        Say::ok(lease.clone())
    });
    let change = |before: &str| format!("{before} ours");
    let end = annotate_lease(&client, &place(), NAME, change, Duration::from_secs(1)).await;
    let last = heard.lock().unwrap().last().unwrap().body.clone();
    (end, last["metadata"]["annotations"].clone())
}

#[tokio::test]
async fn an_annotation_keeps_what_others_write_at_the_same_time() {
    assert_eq!(annotated(0).await, (Ok(()), json!({NAME: "first ours"})));
    assert_eq!(annotated(2).await, (Ok(()), json!({NAME: "first theirs-1 theirs-2 ours"})));
}

#[tokio::test]
async fn a_lease_that_others_write_all_the_time_is_given_up() {
    let (end, _) = annotated(u32::MAX).await;
    assert!(matches!(end, Err(Trouble::Conflict(_))), "{end:?}");
}

#[tokio::test]
async fn a_lease_that_is_not_there_is_not_made() {
    let (client, heard) = answering(|_| Say::status(404, "NotFound", "leases \"sluice\" not found"));
    let end = annotate_lease(&client, &place(), NAME, str::to_owned, Duration::from_secs(1)).await;
    assert!(matches!(end, Err(Trouble::Missing(_))), "{end:?}");
    assert_eq!(heard.lock().unwrap().len(), 1);
}
