//! The requests: a page, a watch, a watch that begins with all there is, and one that asks where the server stands.

use std::time::Duration;

use http::Response;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::client::Body;
use kube::core::Request;

use super::cycle::Ask;
use super::kinds::Watched;
use super::trouble::Setback;

/// Until the API server begins to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Until a page is there whole.
const PAGE_LIMIT: Duration = Duration::from_secs(60);
/// The server ends a watch after this and up to as much again, so that watches do not end together.
const WATCH_SECONDS: u32 = 300;

/// The bytes of a page.
pub(crate) async fn page<K: Watched>(client: &Client, ask: &Ask) -> Result<Vec<u8>, Setback> {
    let exchange = async {
        let body = open::<K>(client, ask, 0).await?;
        let bytes = body.collect_bytes().await;
        bytes.map(|bytes| bytes.to_vec()).map_err(|error| Setback::unreachable::<K>(ask, &error))
    };
    match tokio::time::timeout(PAGE_LIMIT, exchange).await {
        Ok(ended) => ended,
        Err(_) => Err(Setback::no_answer::<K>(ask, PAGE_LIMIT)),
    }
}

/// Sends a request; its body when the server says yes.
pub(crate) async fn open<K: Watched>(client: &Client, ask: &Ask, random: u64) -> Result<Body, Setback> {
    let lost = |error: kube::Error| Setback::unreachable::<K>(ask, &error);
    let request = request::<K>(ask, random).map_err(|error| Setback::unreachable::<K>(ask, &error))?;
    let answer: Response<Body> = match tokio::time::timeout(ANSWER_LIMIT, client.send(request)).await {
        Ok(answer) => answer.map_err(lost)?,
        Err(_) => return Err(Setback::no_answer::<K>(ask, ANSWER_LIMIT)),
    };
    let code = answer.status();
    if code.is_success() {
        return Ok(answer.into_body());
    }
    // The words of a refusal are welcome, but not worth waiting for.
    let words = tokio::time::timeout(ANSWER_LIMIT, answer.into_body().collect_bytes()).await;
    let words = words.ok().and_then(Result::ok).unwrap_or_default();
    Err(Setback::refused::<K>(ask, code.as_u16(), &words))
}

fn request<K: Watched>(ask: &Ask, random: u64) -> Result<http::Request<Body>, kube::core::request::Error> {
    let path = Request::new(K::PATH);
    let label_selector = K::SELECTOR.map(String::from);
    let watch = WatchParams {
        label_selector: label_selector.clone(),
        timeout: Some(WATCH_SECONDS + (random % u64::from(WATCH_SECONDS)) as u32),
        send_initial_events: *ask == Ask::Stream,
        ..WatchParams::default()
    };
    let request = match ask {
        // Without a version the answer is what is true now, never what some cache remembers.
        Ask::Page { token, limit } => path.list(&ListParams {
            label_selector,
            limit: Some(*limit),
            continue_token: token.clone(),
            ..ListParams::default()
        })?,
        Ask::Probe => path.list(&ListParams { label_selector, limit: Some(1), ..ListParams::default() })?,
        Ask::Stream => path.watch(&watch, "")?,
        Ask::Watch { from } => path.watch(&watch, &from.to_string())?,
    };
    let mut request = request.map(Body::from);
    if matches!(ask, Ask::Stream | Ask::Watch { .. }) {
        // A compressed watch would keep back what has happened until a block is full.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{Nodes, Pods};
    use super::*;

    fn line<K: Watched>(ask: &Ask) -> String {
        request::<K>(ask, 7).unwrap().uri().to_string()
    }

    #[test]
    fn a_list_never_allows_an_old_answer() {
        let first = Ask::Page { token: None, limit: 500 };
        assert_eq!(
            line::<Pods>(&first),
            "/api/v1/pods?&labelSelector=kubernetes.azure.com%2Fservice-egress-gateway&limit=500"
        );
        let next = Ask::Page { token: Some("a+b".into()), limit: 2_000 };
        assert_eq!(line::<Nodes>(&next), "/api/v1/nodes?&limit=2000&continue=a%2Bb");
        assert_eq!(line::<Nodes>(&Ask::Probe), "/api/v1/nodes?&limit=1");
    }

    #[test]
    fn a_streamed_list_asks_for_the_present_and_a_watch_for_what_came_after() {
        assert_eq!(
            line::<Nodes>(&Ask::Stream),
            "/api/v1/nodes?&watch=true&timeoutSeconds=307&allowWatchBookmarks=true&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&resourceVersion="
        );
        assert_eq!(
            line::<Nodes>(&Ask::Watch { from: 41 }),
            "/api/v1/nodes?&watch=true&timeoutSeconds=307&allowWatchBookmarks=true&resourceVersion=41"
        );
    }
}
