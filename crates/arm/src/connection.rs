//! The HTTP client that everything goes through: one pool, no redirects, no cookies, no hidden waits.
//!
//! Nothing is sent twice, with one exception that HTTP itself vouches for: a request that met a
//! closing connection before a byte of it was written, or that an HTTP/2 server says it never
//! looked at (`REFUSED_STREAM`, or beyond the last stream of a `GOAWAY`), goes out again on
//! another connection. Such closings are routine and would look like failures otherwise.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{NoProxy, redirect};
use url::Url;

use crate::error::SetupError;
use crate::settings::{Proxy, Settings};
use crate::tls;

/// Never through a proxy, whatever `NO_PROXY` says.
const ALWAYS_STRAIGHT: &str = "localhost,.localhost,127.0.0.0/8,::1,169.254.0.0/16,fe80::/10";

/// The two pools: one for the resource manager, one for those who issue tokens.
pub(crate) struct Connections {
    pub(crate) resource_manager: reqwest::Client,
    pub(crate) identity: reqwest::Client,
    /// Host and port of the proxy, if there is one, for messages.
    pub(crate) proxy: Option<String>,
}

/// Makes both pools.
pub(crate) fn open(settings: &Settings, endpoint: &Url) -> Result<Connections, SetupError> {
    let tls = tls::config(settings.extra_ca.as_ref())?;
    let proxy = proxy(&settings.proxy)?;
    let user_agent = settings.user_agent()?;
    let build = |https_only: bool| {
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .https_only(https_only)
            .user_agent(user_agent.clone())
            .redirect(redirect::Policy::none())
            .referer(false)
            .gzip(true)
            .connect_timeout(settings.limits.connect)
            .tcp_keepalive(Duration::from_secs(30))
            // Shorter than the idle limits of load balancers on the way, so that we close first.
            .pool_idle_timeout(Duration::from_secs(90))
            .http2_adaptive_window(true)
            // A connection that died without a word is noticed while a call waits on it.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(10))
            .no_proxy();
        if let Some((proxy, _)) = &proxy {
            builder = builder.proxy(proxy.clone());
        }
        builder.build().map_err(|error| SetupError::Internal(format!("{error:?}")))
    };
    Ok(Connections {
        // With this a poll address that leads to http cannot take the token along.
        resource_manager: build(endpoint.scheme() == "https")?,
        // The metadata service speaks plain http; who may, is checked where the request is made.
        identity: build(false)?,
        proxy: proxy.map(|(_, name)| name),
    })
}

fn proxy(proxy: &Proxy) -> Result<Option<(reqwest::Proxy, String)>, SetupError> {
    let Proxy::Through { url, except } = proxy else { return Ok(None) };
    // The value is not repeated: there may be a password in it.
    let bad = |why: &str| SetupError::Setting {
        setting: "HTTPS_PROXY",
        value: "…".to_owned(),
        why: format!("{why}; use a form such as http://proxy.example:3128"),
    };
    let text = match url.reveal() {
        text if text.contains("://") => text.to_owned(),
        text => format!("http://{text}"),
    };
    let parsed = Url::parse(&text).map_err(|error| bad(&format!("not a URL ({error})")))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(bad("only http and https proxies are supported"));
    }
    let name = origin_name(&parsed);
    let straight = NoProxy::from_string(&format!("{except},{ALWAYS_STRAIGHT}"));
    let proxy = reqwest::Proxy::https(parsed).map_err(|_| bad("not a usable proxy URL"))?.no_proxy(straight);
    Ok(Some((proxy, name)))
}

/// Headers whose values are texts.
pub(crate) fn readable(headers: &HeaderMap) -> Vec<(&str, &str)> {
    headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect()
}

/// Host and port as people know them: the port only where it is not the usual one.
pub(crate) fn origin_name(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "a URL without a host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        for bad in ["socks5://user:geheim@proxy:1080", "http://user:geheim@:99999"] {
            let through = Proxy::Through { url: Secret::new(bad), except: String::new() };
            let error = self::proxy(&through).unwrap_err();
            assert!(error.to_string().contains("http://proxy.example:3128"), "{error}");
            assert!(!format!("{error} {error:?}").contains("geheim"));
        }
        let bare = Proxy::Through { url: Secret::new("user:geheim@proxy:3128"), except: String::new() };
        assert_eq!(self::proxy(&bare).unwrap().unwrap().1, "proxy:3128");
    }
}
