//! What a client must be told: which Azure, as whom, and how long it may take.
//!
//! Plain values, filled in by whoever reads configuration; nothing here reads the environment
//! by itself but [`Proxy::from_environment`], which says so. [`Settings::places`] is where the
//! addresses are looked at once; behind it they are trusted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use sluice_model::azure::ArmId;
use url::{Host, Url};

use crate::clouds::Cloud;
use crate::error::SetupError;
use crate::secret::Secret;

/// The key of the token issuer, for messages.
pub(crate) const AUTHORITY_HOST: &str = "sluice.azure.authorityHost";

/// What a client must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which of Azure's clouds. Decides everything that is not set below.
    pub cloud: Cloud,
    /// Another resource manager: an emulator, an Azure Stack. Must be https; http only on loopback.
    pub resource_manager_endpoint: Option<String>,
    /// Another issuer of tokens. Must be https, on loopback too, because credentials go there.
    pub authority_host: Option<String>,
    /// What tokens are asked for. Without it the cloud's own scope, for a custom endpoint too: the
    /// emulator takes any, a private endpoint of Azure wants exactly that one, and an Azure Stack
    /// has an audience of its own, which cannot be guessed from its address and is given here.
    pub scope: Option<String>,
    /// The `api-version` of Microsoft.Network.
    pub api_version: Arc<str>,
    /// The region that resources are made in.
    pub region: Arc<str>,
    /// The virtual network that a registration names beside its backend pool, if it is known.
    pub virtual_network: Option<ArmId>,
    /// A CA to trust beside those of the system.
    pub extra_ca: Option<Pem>,
    /// Said behind `sluice/<version>` in the user agent.
    pub user_agent_suffix: Option<String>,
    /// How to get out of here.
    pub proxy: Proxy,
    /// How long things may take and how large they may be.
    pub limits: Limits,
    /// Who we are.
    pub credential: Credential,
}

impl Settings {
    /// Azure's public cloud with the limits of the wire contract.
    pub fn new(region: &str, credential: Credential) -> Settings {
        Settings {
            cloud: Cloud::default(),
            resource_manager_endpoint: None,
            authority_host: None,
            scope: None,
            api_version: "2025-05-01".into(),
            region: region.into(),
            virtual_network: None,
            extra_ca: None,
            user_agent_suffix: None,
            proxy: Proxy::None,
            limits: Limits::default(),
            credential,
        }
    }

    /// The addresses that follow from these settings, or which of them cannot be right.
    pub(crate) fn places(&self) -> Result<Places, SetupError> {
        let endpoint = match &self.resource_manager_endpoint {
            None => parsed("cloud", self.cloud.resource_manager())?,
            Some(text) => {
                let setting = "resourceManagerEndpoint";
                let url = bare(setting, text)?;
                if url.scheme() != "https" && !is_loopback(&url) {
                    let why = "must be https://, because it receives the access token \
                               (http:// only on loopback, for an emulator)";
                    return Err(address(setting, text, why));
                }
                url
            }
        };
        let authority = match &self.authority_host {
            None => parsed("cloud", self.cloud.authority())?,
            Some(text) => {
                let url = bare(AUTHORITY_HOST, text)?;
                if url.scheme() != "https" {
                    let why = "must be https://, because it receives the credential";
                    return Err(address(AUTHORITY_HOST, text, why));
                }
                url
            }
        };
        let scope = self.scope.clone().unwrap_or_else(|| self.cloud.scope());
        if scope.is_empty() || scope.contains(char::is_whitespace) {
            let why = "must be one URL that ends in /.default, such as https://management.azure.com/.default";
            return Err(address("sluice.azure.scope", &scope, why));
        }
        Ok(Places { endpoint, authority, scope })
    }

    /// What we call ourselves, or why nobody can be called that.
    pub(crate) fn user_agent(&self) -> Result<HeaderValue, SetupError> {
        let name = concat!("sluice/", env!("CARGO_PKG_VERSION"));
        let suffix = self.user_agent_suffix.as_deref().unwrap_or_default().trim();
        let whole = format!("{name} {suffix}");
        let header = HeaderValue::from_str(whole.trim_end()).ok().filter(|_| whole.is_ascii());
        header.ok_or_else(|| SetupError::Setting {
            setting: "sluice.azure.userAgentSuffix",
            value: suffix.escape_debug().to_string(),
            why: "must be one line of plain ASCII, such as cluster/7".to_owned(),
        })
    }
}

/// Addresses that have been looked at.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) endpoint: Url,
    pub(crate) authority: Url,
    pub(crate) scope: String,
}

/// How long things may take and how large they may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How long a connection may take, with name, TCP and TLS.
    pub connect: Duration,
    /// How long a call may take from its beginning to the last byte of its answer, the wait for a token included.
    pub answer: Duration,
    /// How much of that the wait for a token may take.
    pub token: Duration,
    /// How long the failure to get a token speaks for everybody who asks, so that many callers do
    /// not all knock at an issuer that is down.
    pub token_pause: Duration,
    /// How many bytes an answer may have, unpacked.
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(60),
            token: Duration::from_secs(20),
            token_pause: Duration::from_secs(1),
            body_bytes_max: 64 << 20,
        }
    }
}

/// Certificates in PEM, in a file or in memory.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// Read from here when the client is made.
    File(PathBuf),
    /// These.
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pem::File(path) => f.debug_tuple("File").field(path).finish(),
            Pem::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

/// How to get out of here. Loopback, link-local addresses (the metadata service is one) and plain
/// http never go through a proxy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Proxy {
    /// Straight.
    #[default]
    None,
    /// Through this proxy.
    Through {
        /// Its URL; secret because it may hold a password.
        url: Secret,
        /// Hosts to reach without it, as `NO_PROXY` spells them.
        except: String,
    },
}

impl Proxy {
    /// What `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in capitals or in small letters.
    pub fn from_environment() -> Proxy {
        Proxy::from_variables(|name| std::env::var(name).ok())
    }

    /// The same for any source of variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Proxy {
        let first = |names: &[&str]| {
            names.iter().filter_map(|name| variable(name)).find(|value| !value.trim().is_empty())
        };
        match first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]) {
            None => Proxy::None,
            Some(url) => Proxy::Through {
                url: Secret::new(url),
                except: first(&["NO_PROXY", "no_proxy"]).unwrap_or_default(),
            },
        }
    }
}

/// Who we are.
#[derive(Clone, Debug)]
pub enum Credential {
    /// An application with a password.
    ClientSecret {
        /// The tenant that the application is in.
        tenant: String,
        /// The application.
        client_id: String,
        /// Its password.
        secret: Secret,
    },
    /// An application with a certificate.
    ClientCertificate {
        /// The tenant that the application is in.
        tenant: String,
        /// The application.
        client_id: String,
        /// Certificate and RSA key in PEM, in one file or text. Read again for every token, so that
        /// a renewed certificate needs no restart.
        certificate: Pem,
    },
    /// The identity of the machine that we run on.
    ManagedIdentity {
        /// Which of its identities; none means the machine's own.
        user_assigned: Option<UserAssigned>,
        /// Another address of the metadata service, for an emulator: http only on loopback.
        metadata_endpoint: Option<String>,
    },
    /// A token of the cluster, exchanged for one of Azure.
    WorkloadIdentity {
        /// The tenant that the identity is in.
        tenant: String,
        /// The identity.
        client_id: String,
        /// Where the cluster puts its token. Read again for every token.
        token_file: PathBuf,
    },
    /// A token that somebody else has fetched: tests, and people with `az account get-access-token`.
    Token(Secret),
}

impl Credential {
    /// A fixed word for logs.
    pub const fn word(&self) -> &'static str {
        match self {
            Credential::ClientSecret { .. } => "client-secret",
            Credential::ClientCertificate { .. } => "client-certificate",
            Credential::ManagedIdentity { .. } => "managed-identity",
            Credential::WorkloadIdentity { .. } => "workload-identity",
            Credential::Token(_) => "token",
        }
    }
}

/// One identity of a machine that has several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserAssigned {
    /// By its client id.
    ClientId(String),
    /// By its object id.
    ObjectId(String),
    /// By its resource id.
    ResourceId(String),
}

impl UserAssigned {
    /// What `userAssignedIdentityID` of `azure.json` means: a resource id if it is a path, else a client id.
    pub fn from_id(id: &str) -> UserAssigned {
        match id.starts_with('/') {
            true => UserAssigned::ResourceId(id.to_owned()),
            false => UserAssigned::ClientId(id.to_owned()),
        }
    }
}

/// Whether the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        // Names below it should be this machine too, but not every resolver knows that.
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Whether the host is on this machine or on its own link, where the metadata service is.
pub(crate) fn is_near(url: &Url) -> bool {
    let link_local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_link_local(),
        Some(Host::Ipv6(address)) => address.is_unicast_link_local(),
        _ => false,
    };
    link_local || is_loopback(url)
}

/// An http or https address with nothing behind host and port.
pub(crate) fn bare(setting: &'static str, text: &str) -> Result<Url, SetupError> {
    let url = parsed(setting, text)?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(address(setting, text, "must start with https://, such as https://management.azure.com"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The value is not repeated: it has a password in it.
        return Err(address(setting, "…", "must not contain a user or password"));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(address(setting, text, "must contain only scheme, host and port"));
    }
    Ok(url)
}

fn parsed(setting: &'static str, text: &str) -> Result<Url, SetupError> {
    Url::parse(text.trim()).map_err(|error| {
        address(
            setting,
            text,
            &format!("not a URL ({error}); use a form such as https://management.azure.com"),
        )
    })
}

fn address(setting: &'static str, value: &str, why: &str) -> SetupError {
    SetupError::Setting { setting, value: value.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new("westeurope", Credential::Token(Secret::new("t")))
    }

    fn with_endpoint(endpoint: &str) -> Result<Places, SetupError> {
        Settings { resource_manager_endpoint: Some(endpoint.to_owned()), ..settings() }.places()
    }

    #[test]
    fn every_cloud_has_its_own_hosts_and_scope() {
        for cloud in Cloud::ALL {
            let places = Settings { cloud, ..settings() }.places().unwrap();
            assert_eq!(places.endpoint.as_str().trim_end_matches('/'), cloud.resource_manager());
            assert_eq!(places.authority.as_str().trim_end_matches('/'), cloud.authority());
            assert_eq!(places.scope, format!("{}/.default", cloud.resource_manager()));
        }
    }

    #[test]
    fn a_custom_endpoint_keeps_the_clouds_scope_unless_told() {
        let custom = Settings {
            cloud: Cloud::China,
            resource_manager_endpoint: Some("https://[::1]:8443/".into()),
            ..settings()
        };
        assert_eq!(custom.places().unwrap().scope, "https://management.chinacloudapi.cn/.default");
        let told = Settings { scope: Some("https://management.stack.local/guid/.default".into()), ..custom };
        assert_eq!(told.places().unwrap().scope, "https://management.stack.local/guid/.default");
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        for good in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:1/", "https://arm.example"] {
            with_endpoint(good).unwrap();
        }
        for bad in
            ["http://10.0.0.1", "http://arm.example:8080", "http://localhost.example", "http://a.localhost"]
        {
            let error = with_endpoint(bad).unwrap_err().to_string();
            assert!(
                error.contains("must be https://") && error.contains("resourceManagerEndpoint"),
                "{error}"
            );
        }
        let authority = Settings { authority_host: Some("http://127.0.0.1:1".into()), ..settings() };
        assert!(authority.places().unwrap_err().to_string().contains("must be https://"));
    }

    #[test]
    fn an_address_with_more_than_an_origin_is_refused() {
        for (bad, says) in [
            ("management.azure.com", "such as https://"),
            ("ftp://arm.example", "must start with https://"),
            ("https://arm.example/subscriptions", "only scheme, host and port"),
            ("https://arm.example/?a=b", "only scheme, host and port"),
            ("https://user:geheim@arm.example", "must not contain a user or password"),
        ] {
            let error = with_endpoint(bad).unwrap_err();
            assert!(error.to_string().contains(says), "{bad}: {error}");
            assert!(!format!("{error} {error:?}").contains("geheim"));
        }
        let scope = Settings { scope: Some("two words".into()), ..settings() };
        assert!(scope.places().unwrap_err().to_string().contains("/.default"));
    }

    #[test]
    fn the_proxy_is_read_as_curl_reads_it() {
        let read = |pairs: &[(&str, &str)]| {
            Proxy::from_variables(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let through =
            |url: &str, except: &str| Proxy::Through { url: Secret::new(url), except: except.to_owned() };
        assert_eq!(read(&[]), Proxy::None);
        assert_eq!(read(&[("HTTP_PROXY", "http://p")]), Proxy::None);
        assert_eq!(read(&[("https_proxy", "http://p"), ("NO_PROXY", "a,b")]), through("http://p", "a,b"));
        assert_eq!(read(&[("HTTPS_PROXY", ""), ("all_proxy", "http://q")]), through("http://q", ""));
    }

    #[test]
    fn the_user_agent_says_who_and_which_version() {
        let called = |suffix: Option<&str>| {
            let settings = Settings { user_agent_suffix: suffix.map(str::to_owned), ..settings() };
            settings.user_agent().map(|it| it.to_str().unwrap().to_owned())
        };
        let name = concat!("sluice/", env!("CARGO_PKG_VERSION"));
        for nothing in [None, Some(""), Some(" \n")] {
            assert_eq!(called(nothing).unwrap(), name);
        }
        assert_eq!(called(Some(" cluster/7 (test)\n")).unwrap(), format!("{name} cluster/7 (test)"));
    }

    #[test]
    fn a_user_agent_that_no_header_can_hold_is_a_setting_to_mend() {
        for bad in ["cluster/7\r\nx-evil: 1", "cluster/\u{7}", "Schleuse/größer"] {
            let odd = Settings { user_agent_suffix: Some(bad.into()), ..settings() };
            let error = odd.user_agent().unwrap_err();
            assert_eq!(error.word(), "setting", "{error}");
            let text = error.to_string();
            assert!(text.contains("userAgentSuffix") && text.contains("plain ASCII"), "{text}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn an_identity_that_is_a_path_is_a_resource_id() {
        assert_eq!(
            UserAssigned::from_id("/subscriptions/s"),
            UserAssigned::ResourceId("/subscriptions/s".into())
        );
        assert_eq!(UserAssigned::from_id("00-11"), UserAssigned::ClientId("00-11".into()));
    }
}
