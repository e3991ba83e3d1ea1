//! What a request for a list or a watch ran into: what it means for the cycle, and a sentence.

use std::time::Duration;

use kube::core::Status;

use super::cycle::{Answer, Ask};
use super::kinds::Watched;
use super::wire::Garbled;
use crate::call::chain;
use sluice_model::reason::cut;

/// More of the server's words than this helps nobody.
const WORDS_MAX: usize = 400;

/// An answer with the sentence about it, if it is a trouble.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setback {
    /// For the cycle.
    pub(crate) answer: Answer,
    /// For people; what is routine (an expired version, a server without streamed lists) has none.
    pub(crate) sentence: Option<String>,
    /// It may pass by itself: nobody has looked at the request and refused it.
    pub(crate) is_passing: bool,
    /// A permission is missing.
    pub(crate) is_denied: bool,
}

impl Setback {
    fn routine(answer: Answer) -> Setback {
        Setback { answer, sentence: None, is_passing: true, is_denied: false }
    }

    fn failed(sentence: String) -> Setback {
        let answer = Answer::Failed { suspicious: false, retry_after: None };
        Setback { answer, sentence: Some(sentence), is_passing: true, is_denied: false }
    }

    /// The connection could not be made, or broke.
    pub(crate) fn unreachable<K: Watched>(ask: &Ask, error: &(dyn std::error::Error + 'static)) -> Setback {
        let why = chain(error);
        Setback::failed(format!("{} failed: cannot reach the API server: {why}", what::<K>(ask)))
    }

    /// There was no answer in time.
    pub(crate) fn no_answer<K: Watched>(ask: &Ask, limit: Duration) -> Setback {
        let seconds = limit.as_secs();
        Setback::failed(format!(
            "{} failed: no answer from the API server within {seconds} s",
            what::<K>(ask)
        ))
    }

    /// The answer makes no sense.
    pub(crate) fn garbled<K: Watched>(ask: &Ask, garbled: Garbled) -> Setback {
        let answer = Answer::Failed { suspicious: true, retry_after: None };
        let sentence = Some(format!("{} failed: {}", what::<K>(ask), garbled.0));
        Setback { answer, sentence, is_passing: true, is_denied: false }
    }

    /// A list that came whole and is not believed.
    pub(crate) fn disbelieved(sentence: String) -> Setback {
        Setback { answer: Answer::ListOlder, sentence: Some(sentence), is_passing: true, is_denied: false }
    }

    /// The answer is an error. The HTTP status counts, not what a proxy may put into its text.
    pub(crate) fn refused<K: Watched>(ask: &Ask, code: u16, body: &[u8]) -> Setback {
        let status = serde_json::from_slice(body)
            .unwrap_or_else(|_| Status::failure(String::from_utf8_lossy(body).trim(), "").with_code(code));
        Setback::of_status::<K>(ask, &status.with_code(code))
    }

    /// A status, be it of an answer or in the middle of a watch.
    pub(crate) fn of_status<K: Watched>(ask: &Ask, status: &Status) -> Setback {
        let code = status.code;
        let words = cut(&status.message, WORDS_MAX);
        if code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone") {
            return Setback::routine(Answer::Expired);
        }
        // Servers before 1.27 know no such list, later ones can have it switched off.
        if *ask == Ask::Stream && matches!(code, 400 | 405 | 406 | 415 | 422 | 501) {
            return Setback::routine(Answer::Unsupported);
        }
        let what = what::<K>(ask);
        let sentence = match code {
            401 => format!(
                "{what} failed: the API server does not accept the credentials (401): {words}; check whether the \
                 token has expired"
            ),
            403 => format!(
                "{what} denied at the cluster scope: {words}; grant list and watch on {} in the ClusterRole",
                K::RESOURCE
            ),
            404 => format!("{what} failed: the API server does not serve {}", K::PATH),
            _ => format!("{what} failed with HTTP {code}: {words}"),
        };
        let details = status.details.as_ref();
        let too_large =
            details.is_some_and(|it| it.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge"));
        let seconds = details.map_or(0, |it| it.retry_after_seconds);
        let answer = Answer::Failed {
            suspicious: too_large || matches!(code, 0 | 400 | 422 | 500),
            retry_after: (seconds > 0).then(|| Duration::from_secs(u64::from(seconds))),
        };
        let is_passing = matches!(code, 0 | 429 | 500..);
        Setback { answer, sentence: Some(sentence), is_passing, is_denied: code == 403 }
    }
}

/// The permission in words: `watch pods`.
fn what<K: Watched>(ask: &Ask) -> String {
    let verb = match ask {
        Ask::Page { .. } | Ask::Probe => "list",
        Ask::Stream | Ask::Watch { .. } => "watch",
    };
    format!("{verb} {}", K::RESOURCE)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{Pods, Slices};
    use super::*;

    const PAGE: Ask = Ask::Page { token: None, limit: 500 };
    const WATCH: Ask = Ask::Watch { from: 9 };

    fn refused(ask: &Ask, code: u16, body: &str) -> Setback {
        Setback::refused::<Pods>(ask, code, body.as_bytes())
    }

    #[test]
    fn a_missing_permission_is_named_with_what_to_grant() {
        let body = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden: User \"a\" cannot list resource \"pods\""}"#;
        assert_eq!(
            refused(&PAGE, 403, body).sentence.unwrap(),
            "list pods denied at the cluster scope: pods is forbidden: User \"a\" cannot list resource \
             \"pods\"; grant list and watch on pods in the ClusterRole"
        );
        let slices = Setback::refused::<Slices>(&Ask::Stream, 403, body.as_bytes()).sentence.unwrap();
        assert!(slices.starts_with("watch endpointslices.discovery.k8s.io denied at"), "{slices}");
    }

    #[test]
    fn a_version_that_is_too_old_is_routine_however_it_is_said() {
        for body in ["", "<html>", r#"{"kind":"Status","code":410,"reason":"Gone"}"#] {
            assert_eq!(refused(&WATCH, 410, body), Setback::routine(Answer::Expired), "{body}");
        }
        let event = Status::failure("too old resource version", "Expired").with_code(0);
        assert_eq!(Setback::of_status::<Pods>(&WATCH, &event), Setback::routine(Answer::Expired));
    }

    #[test]
    fn only_a_streamed_list_can_be_unsupported() {
        let body = r#"{"kind":"Status","code":422,"reason":"Invalid","message":"sendInitialEvents is forbidden for watch"}"#;
        assert_eq!(refused(&Ask::Stream, 422, body), Setback::routine(Answer::Unsupported));
        assert_eq!(refused(&Ask::Stream, 400, "no"), Setback::routine(Answer::Unsupported));
        let watch = refused(&WATCH, 422, body);
        assert_eq!(watch.answer, Answer::Failed { suspicious: true, retry_after: None });
        assert!(watch.sentence.is_some());
    }

    #[test]
    fn only_what_may_lie_in_our_version_is_suspicious() {
        let suspicious = |setback: Setback| matches!(setback.answer, Answer::Failed { suspicious: true, .. });
        for code in [401, 403, 404, 429, 502, 503, 504] {
            assert!(!suspicious(refused(&WATCH, code, "busy")), "{code}");
        }
        assert!(suspicious(refused(&WATCH, 500, "etcdserver: mvcc")));
        let too_large = r#"{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version",
            "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"x"}],"retryAfterSeconds":1}}"#;
        let setback = refused(&WATCH, 504, too_large);
        let retry_after = Some(Duration::from_secs(1));
        assert_eq!(setback.answer, Answer::Failed { suspicious: true, retry_after });
    }

    #[test]
    fn the_http_status_counts_and_not_what_a_proxy_writes_into_its_text() {
        let setback = refused(&WATCH, 502, r#"{"code":410,"message":"no upstream"}"#);
        assert_eq!(setback.sentence.as_deref(), Some("watch pods failed with HTTP 502: no upstream"));
    }

    #[test]
    fn long_pages_of_proxies_are_cut() {
        let sentence = refused(&PAGE, 502, &"x".repeat(10_000)).sentence.unwrap();
        assert!(sentence.starts_with("list pods failed with HTTP 502: xxx") && sentence.len() < 500);
    }
}
