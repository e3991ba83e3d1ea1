//! Where a request goes.
//!
//! Most URLs are made here, from an id and an api-version. Polls and further pages go where Azure
//! said, to the letter, but only to the endpoint itself: every request carries our token, and a
//! token that went to another host would be that host's.
//!
//! The reading of given URLs is strict where the host is concerned. What one reader takes for a
//! path and another for a host (`\`, `@`, a missing slash) is refused, not guessed.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write as _;

use crate::Unwritable;

/// The URL of an id, with something behind its path.
pub(crate) fn of_id(endpoint: &str, id: &str, tail: &str, api_version: &str) -> Result<String, Unwritable> {
    let mut url = String::from(endpoint.trim_end_matches('/'));
    let Some(path) = id.strip_prefix('/') else {
        return Err(Unwritable(format!("{id:?} is not a resource ID: it does not start with a slash")));
    };
    for segment in path.split('/') {
        // A dot segment would be taken out on the way and make another path of it.
        if matches!(segment, "" | "." | "..") {
            return Err(Unwritable(format!("{id:?} is not a resource ID: invalid path segment {segment:?}")));
        }
        url.push('/');
        encode(&mut url, segment, b"!$&'()*+,;=:@");
    }
    url.push_str(tail);
    url.push_str("?api-version=");
    encode(&mut url, api_version, b"");
    Ok(url)
}

/// Appends a text with everything encoded but letters, digits, `-._~` and what else may stand there.
fn encode(url: &mut String, text: &str, allowed: &[u8]) {
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || allowed.contains(&byte) {
            url.push(byte as char);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// An address that Azure gave: used as it is if it is on the endpoint, or a path there.
pub(crate) fn given(endpoint: &str, given: &str) -> Result<String, Unwritable> {
    let odd = |why: &str| {
        let shown = without_query(given);
        Unwritable(format!("Azure returned a URL that Sluice does not follow: {why}: {shown:?}"))
    };
    if given.chars().any(|c| c.is_ascii_control()) {
        return Err(odd("it contains control characters"));
    }
    let endpoint = endpoint.trim_end_matches('/');
    if given.starts_with('/') && !given.starts_with("//") {
        return Ok(format!("{endpoint}{given}"));
    }
    let ours = Origin::of(endpoint)
        .ok_or_else(|| Unwritable(format!("the endpoint {endpoint:?} is not a URL with a host")))?;
    let theirs = Origin::of(given).ok_or_else(|| odd("it is neither a path nor a URL with a plain host"))?;
    if theirs == ours {
        return Ok(given.to_string());
    }
    Err(Unwritable(format!(
        "Azure returned a URL on {theirs}, but the endpoint is {ours}; Sluice does not follow it, because the \
         access token must not be sent to another host"
    )))
}

/// The host of a URL, for people.
pub(crate) fn host(url: &str) -> String {
    Origin::of(url).map_or_else(|| url.to_string(), |origin| origin.host)
}

/// The URL without its query, which may hold signatures, and cut to a readable length.
pub(crate) fn without_query(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    url[..end].chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Scheme, host and port.
#[derive(PartialEq, Eq)]
struct Origin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl Origin {
    fn of(url: &str) -> Option<Origin> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = ["https", "http"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let plain = match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
            Some(inner) => inner?.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')),
            None => host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')),
        };
        if host.is_empty() || !plain {
            return None;
        }
        let port = match port {
            None if scheme == "https" => 443,
            None => 80,
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
        };
        Some(Origin { scheme, host: host.to_ascii_lowercase(), port })
    }
}

impl core::fmt::Display for Origin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match (self.scheme, self.port) {
            ("https", 443) | ("http", 80) => Ok(()),
            (_, port) => write!(f, ":{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AZURE: &str = "https://management.azure.com";

    #[test]
    fn names_are_encoded_where_they_must_be_and_only_there() {
        let id = "/subscriptions/s/resourceGroups/my group (1)/x/a%b?c#d\\é";
        assert_eq!(
            of_id(AZURE, id, "/updateServices", "2025-05-01").unwrap(),
            "https://management.azure.com/subscriptions/s/resourceGroups/my%20group%20(1)/x/a%25b%3Fc%23d%5C%C3%A9\
             /updateServices?api-version=2025-05-01"
        );
        assert_eq!(of_id("https://h/", "/a", "", "1&x=y").unwrap(), "https://h/a?api-version=1%26x%3Dy");
    }

    #[test]
    fn an_id_that_would_become_another_path_is_refused() {
        for id in ["", "web", "/a//b", "/a/../b", "/a/./b", "/a/", "/"] {
            assert!(of_id(AZURE, id, "", "1").is_err(), "{id}");
        }
    }

    #[test]
    fn what_azure_gave_is_used_to_the_letter() {
        for url in [
            "https://management.azure.com/subscriptions/s/operations/1?api-version=2025-05-01&c=c&h=%2b|x",
            "HTTPS://Management.Azure.Com:443/x",
            "https://management.azure.com?x",
        ] {
            assert_eq!(given(AZURE, url).unwrap(), url);
        }
        assert_eq!(given(AZURE, "/a?b=c").unwrap(), "https://management.azure.com/a?b=c");
        assert_eq!(given("http://[::1]:8080/", "http://[::1]:8080/a").unwrap(), "http://[::1]:8080/a");
    }

    #[test]
    fn a_token_never_goes_to_another_host_port_or_scheme() {
        for (url, named) in [
            ("https://evil.example/x", "https://evil.example"),
            ("http://management.azure.com/x", "http://management.azure.com"),
            ("https://management.azure.com:444/x", "https://management.azure.com:444"),
            ("https://management.azure.com.evil.example/x", "management.azure.com.evil.example"),
            ("https://management.azure.com./x", "management.azure.com."),
            ("http://management.azure.com:443/x", "http://management.azure.com:443"),
        ] {
            let Unwritable(why) = given(AZURE, url).unwrap_err();
            assert!(why.contains(named) && why.contains("token"), "{why}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for url in [
            "",
            "relative/path",
            "//evil.example/x",
            "https:/management.azure.com/x",
            "https:management.azure.com",
            "https:///management.azure.com/x",
            "https://management.azure.com@evil.example/x",
            "https://evil.example\\@management.azure.com/x",
            "https://management.azure.com\\.evil.example/x",
            "https://management%2eazure.com/x",
            "https://management.azure.com:/x",
            "https://management.azure.com:+443/x",
            "https://management.azure.com:99999/x",
            "https://[management.azure.com/x",
            "https://mänagement.azure.com/x",
            "ftp://management.azure.com/x",
            "https://management.\tazure.com/x",
            "https://management.azure.com/a\r\nHost: evil",
            "/a\nb",
        ] {
            assert!(given(AZURE, url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn signatures_in_queries_are_not_shown() {
        assert_eq!(without_query("https://h/a?sig=secret"), "https://h/a");
        assert_eq!(host("https://Host:1/a"), "host");
    }
}
