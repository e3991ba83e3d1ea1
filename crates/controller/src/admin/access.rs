//! Who may look: the Host check, the token, and what is said to those who may not.
//!
//! The API listens on loopback by default. There any page that a browser on the same machine has
//! open could ask it by a name of its own that resolves to loopback (DNS rebinding), so the Host
//! must be one that we know. No CORS header is ever sent: a page of another origin cannot read an
//! answer. Beyond loopback a token and TLS are required.
//!
//! Tools send the token as `Authorization: Bearer …`. A browser cannot, for a page that it opens, and
//! an `EventSource` never can; so it is asked for name and password (`Basic`), any name will do, and
//! the password is the token. The browser keeps it until it is closed and sends it to this origin
//! only; no page, script or cookie ever holds it, and nothing here can be changed by a forged request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, HOST, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sluice_arm::Secret;
use sluice_view::Problem;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use super::Silence;

/// Who may look at the API.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Host names by which it may be asked, beside those of loopback; without port.
    pub hosts: Vec<String>,
    /// What a caller must present, if anything.
    pub token: Option<Secret>,
    /// Brings the token that counts instead, whenever there is a new one.
    pub renewed: Option<watch::Receiver<Secret>>,
}

/// An API that everybody could look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exposed {
    /// Where it would listen.
    pub address: SocketAddr,
    /// There is no token.
    pub without_token: bool,
    /// There is no TLS.
    pub without_tls: bool,
}

impl std::fmt::Display for Exposed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = match (self.without_token, self.without_tls) {
            (true, true) => "a token and TLS",
            (true, false) => "a token",
            _ => "TLS",
        };
        let address = self.address;
        write!(
            f,
            "the API cannot listen on {address} without {missing}: the address is not loopback; configure {missing}, or listen on 127.0.0.1"
        )
    }
}

impl std::error::Error for Exposed {}

impl Access {
    /// Refuses an address beyond loopback without a token and TLS.
    pub fn suits(&self, address: SocketAddr, has_tls: bool) -> Result<(), Exposed> {
        let without_token = self.token.as_ref().is_none_or(Secret::is_empty);
        if address.ip().is_loopback() || (!without_token && has_tls) {
            return Ok(());
        }
        Err(Exposed { address, without_token, without_tls: !has_tls })
    }

    fn knows(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let name = bare.strip_suffix('.').unwrap_or(bare);
        is_loopback
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let renewed = self.renewed.as_ref().map(|it| it.borrow().clone());
        let token = renewed.or_else(|| self.token.clone());
        let Some(token) = token else { return true };
        let Some(shown) = headers.get(AUTHORIZATION).and_then(|value| shown(value.as_bytes())) else {
            return false;
        };
        // The time that a comparison takes must not say how much of a guess was right. An empty token is a mistake,
        // and not a password that everybody knows.
        !token.is_empty() && bool::from(shown.reveal().as_bytes().ct_eq(token.reveal().as_bytes()))
    }
}

/// The token that a caller shows: as it is by tools, as the password by browsers.
fn shown(value: &[u8]) -> Option<Secret> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&value[..space], &value[space + 1..]);
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return Some(Secret::new(std::str::from_utf8(rest).ok()?));
    }
    if !scheme.eq_ignore_ascii_case(b"Basic") {
        return None;
    }
    let pair = String::from_utf8(BASE64_STANDARD.decode(rest).ok()?).ok()?;
    pair.split_once(':').map(|(_, password)| Secret::new(password))
}

/// Puts the checks before a router.
pub(super) fn guard(router: Router, access: &Access) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(access.clone()), check))
}

async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let is_page = !request.uri().path().starts_with("/api/");
    let mut answer = match refusal(&access, request.headers()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let status = answer.status();
    let headers = answer.headers_mut();
    if is_page && status == StatusCode::UNAUTHORIZED {
        // The browser asks whoever sits before it.
        let basic = HeaderValue::from_static("Basic realm=\"sluice\", charset=\"UTF-8\"");
        headers.append(WWW_AUTHENTICATE, basic);
    }
    // Only the dashboard says itself what may be kept.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn refusal(access: &Access, headers: &HeaderMap) -> Option<Response> {
    let mut hosts = headers.get_all(HOST).into_iter();
    let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => Authority::try_from(host).ok(),
        _ => None,
    };
    let Some(host) = host.filter(|host| !host.as_str().contains('@')) else {
        return Some(problem(
            StatusCode::BAD_REQUEST,
            "BadHost",
            "The request must have exactly one valid Host header.",
        ));
    };
    if !access.knows(host.host()) {
        let message = "The name in the Host header is not a name of this server. Use localhost, or add the name to \
                       `sluice.listen.hosts`.";
        return Some(problem(StatusCode::MISDIRECTED_REQUEST, "UnknownHost", message));
    }
    if !access.admits(headers) {
        let message = "Authentication required: send the token as `Authorization: Bearer TOKEN`.";
        let mut answer = problem(StatusCode::UNAUTHORIZED, "Unauthorized", message);
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(answer);
    }
    None
}

/// An answer that says why there is none.
pub(super) fn problem(status: StatusCode, error: &str, message: &str) -> Response {
    problem_with(status, error, message, &[])
}

/// The same, with what there is to see instead.
pub(super) fn problem_with(status: StatusCode, error: &str, message: &str, see: &[&str]) -> Response {
    let see = see.iter().map(ToString::to_string).collect();
    (status, Json(Problem { error: error.into(), message: message.into(), see })).into_response()
}

impl IntoResponse for Silence {
    fn into_response(self) -> Response {
        let error = match self {
            Silence::Ended => "LoopEnded",
            Silence::Hangs => "LoopHangs",
        };
        problem(StatusCode::SERVICE_UNAVAILABLE, error, &format!("No answer: {}.", self.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Access {
        Access { hosts: vec!["sluice.example".into()], ..Access::default() }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn status(access: &Access, pairs: &[(&'static str, &str)]) -> Option<u16> {
        refusal(access, &headers(pairs)).map(|answer| answer.status().as_u16())
    }

    #[test]
    fn names_of_loopback_and_configured_names_are_known_with_any_port() {
        for host in [
            "localhost",
            "LocalHost:8443",
            "localhost.",
            "127.0.0.1",
            "127.8.9.1:1",
            "[::1]:80",
            "sluice.example:443",
        ] {
            assert_eq!(status(&open(), &[("host", host)]), None, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "sluice.example.evil", "169.254.169.254"]
        {
            assert_eq!(status(&open(), &[("host", host)]), Some(421), "{host}");
        }
        for hosts in
            [&[][..], &[("host", "localhost"), ("host", "evil.example")], &[("host", "me@localhost")]]
        {
            assert_eq!(status(&open(), hosts), Some(400), "{hosts:?}");
        }
    }

    #[test]
    fn a_token_is_asked_for_as_soon_as_there_is_one() {
        let access = Access { token: Some(Secret::new("s3cret")), ..Access::default() };
        let with = |value: &str| status(&access, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(status(&access, &[("host", "localhost")]), Some(401));
        assert_eq!(with("Bearer s3cret"), None);
        assert_eq!(with("bearer s3cret"), None);
        // A browser: somebody:s3cret, and a password with a colon would be one with a colon.
        assert_eq!(with("Basic c29tZWJvZHk6czNjcmV0"), None);
        assert_eq!(with("basic OnMzY3JldA=="), None);
        for wrong in ["Basic czNjcmV0", "Basic c29tZWJvZHk6czNjcmV0cw==", "Basic czNjcmV0Og==", "Basic !"] {
            assert_eq!(with(wrong), Some(401), "{wrong:?}");
        }
        for wrong in ["Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret", ""] {
            assert_eq!(with(wrong), Some(401), "{wrong:?}");
        }
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    #[test]
    fn a_token_that_was_renewed_counts_and_the_old_one_does_not() {
        let (renew, renewed) = watch::channel(Secret::new("s3cret"));
        let token = Some(Secret::new("s3cret"));
        let access = Access { token, renewed: Some(renewed), ..Access::default() };
        let with = |value: &str| status(&access, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer s3cret"), None);
        renew.send_replace(Secret::new("newer"));
        assert_eq!((with("Bearer s3cret"), with("Bearer newer")), (Some(401), None));
    }

    #[test]
    fn an_empty_token_admits_no_caller() {
        let (_keep, renewed) = watch::channel(Secret::new(""));
        let renewed = Access { token: Some(Secret::new("s3cret")), renewed: Some(renewed), ..open() };
        let access = Access { token: Some(Secret::new(" ")), ..open() };
        assert!(access.suits("10.0.0.7:8443".parse().unwrap(), true).unwrap_err().without_token);
        for access in [access, renewed] {
            assert_eq!(status(&access, &[("host", "localhost")]), Some(401));
            for shown in ["Bearer ", "Bearer  ", "Basic Og==", "Bearer s3cret"] {
                let pairs = [("host", "localhost"), ("authorization", shown)];
                assert_eq!(status(&access, &pairs), Some(401), "{shown:?}");
            }
        }
    }

    #[test]
    fn beyond_loopback_both_token_and_tls_are_needed() {
        let pod: SocketAddr = "10.0.0.7:8443".parse().unwrap();
        let with_token = Access { token: Some(Secret::new("s3cret")), ..Access::default() };
        assert_eq!(with_token.suits(pod, true), Ok(()));
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            assert_eq!(open().suits(loopback.parse().unwrap(), false), Ok(()));
        }
        for (access, has_tls, missing) in
            [(&open(), false, "a token and TLS"), (&open(), true, "a token"), (&with_token, false, "TLS")]
        {
            let text = access.suits(pod, has_tls).unwrap_err().to_string();
            assert!(text.contains(&format!("without {missing}:")), "{text}");
        }
    }
}
