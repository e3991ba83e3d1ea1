//! The example does what it says.

#[path = "../examples/embed.rs"]
#[expect(dead_code, reason = "it has a `main` of its own")]
mod embed;

#[tokio::test(start_paused = true)]
async fn the_example_serves_a_service_and_leaves_nothing_behind() {
    let writes = embed::embed().await.unwrap();
    assert_eq!(writes.iter().filter(|write| write.starts_with("put public IP")).count(), 1, "{writes:?}");
    assert_eq!(writes.last().map(|write| write.starts_with("delete ")), Some(true), "{writes:?}");
}
