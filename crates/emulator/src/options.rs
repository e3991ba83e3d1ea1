//! Everything that can be set about an emulator, with defaults that work.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::surface::{is_group, is_subscription};

/// How an emulator is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where HTTPS is served; port 0 is any free one.
    pub listen: SocketAddr,
    /// Where plain HTTP is served besides, on loopback only; for managed identities, whose clients
    /// never speak TLS, and for our own client in tests.
    pub listen_http: Option<SocketAddr>,
    /// Whether `listen` may be an address that other machines reach. Everybody who does can write.
    pub insecure_listen: bool,
    /// Further names and addresses that clients call it by; they go into its certificate.
    pub names: Vec<String>,
    /// Where the CA and the key of the tokens are kept; `None`: beside the state file, or else in a
    /// folder that goes with the emulator.
    pub folder: Option<PathBuf>,
    /// The journal of all writes; `None`: what was written goes with the emulator.
    pub state_file: Option<PathBuf>,
    /// How many emulated seconds pass in a real one, 0.1 to 10,000.
    pub time_factor: f64,
    /// How long a token is good for, in real time.
    pub token_lifetime: Duration,
    /// Who gets a token.
    pub credentials: Credentials,
    /// The cloud itself: latencies, limits, quotas, seed.
    pub cloud: sluice_cloud::Config,
    /// Resource groups that are there from the start.
    pub prepare: Vec<Prepared>,
    /// What the doors put up with.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
            listen_http: None,
            insecure_listen: false,
            names: Vec::new(),
            folder: None,
            state_file: None,
            time_factor: 1.0,
            token_lifetime: Duration::from_secs(3_600),
            credentials: Credentials::Any,
            cloud: sluice_cloud::Config::default(),
            prepare: Vec::new(),
            limits: Limits::default(),
        }
    }
}

impl Options {
    /// An emulator for a test: on a free port, over both protocols, in a folder that goes with it.
    pub fn for_tests() -> Options {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Options { listen: any_port, listen_http: Some(any_port), ..Options::default() }
    }
}

/// A resource group that is there from the start.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prepared {
    /// Its subscription.
    pub subscription: String,
    /// Its name.
    pub group: String,
}

impl FromStr for Prepared {
    type Err = String;

    fn from_str(text: &str) -> Result<Prepared, String> {
        match text.split_once('/') {
            Some((subscription, group)) if is_subscription(subscription) && is_group(group) => {
                Ok(Prepared { subscription: subscription.into(), group: group.into() })
            }
            _ => Err(format!(
                "{text:?} is not SUBSCRIPTION/GROUP: letters, digits, '-', '_' and '.', in a group also \
                 parentheses and no period at its end"
            )),
        }
    }
}

/// Who gets a token.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Everybody who brings a client id and any secret, assertion or federated token at all.
    Any,
    /// These client ids with these secrets. Assertions are not verified, but their client must be here.
    Only(BTreeMap<String, String>),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Any => f.write_str("Any"),
            Credentials::Only(known) => f.debug_list().entries(known.keys()).finish(),
        }
    }
}

/// What the doors put up with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at once; further ones wait in the listener's queue.
    pub connections_max: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a connection may be open without a whole request head. Longer than the 90 s after
    /// which common clients drop an idle connection themselves, so that they do not race with us.
    pub idle: Duration,
    /// How long a body may take to arrive.
    pub body: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes_max: usize,
    /// How long requests in flight have to finish when the emulator stops.
    pub stop: Duration,
    /// How many requests the log remembers.
    pub log_entries_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 1_024,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            body: Duration::from_secs(30),
            head_bytes_max: 64 << 10,
            stop: Duration::from_secs(10),
            log_entries_max: 200_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_group_is_a_subscription_and_a_name() {
        let expected = Prepared { subscription: "s".into(), group: "rg".into() };
        assert_eq!("s/rg".parse(), Ok(expected));
        assert!("s-1/my_group.(2)".parse::<Prepared>().is_ok());
        let long = format!("s/{}", "g".repeat(91));
        for bad in [
            "", "s", "s/", "/rg", "s/a/b", "s/a?b", "s/a<b", "s/a`b", "s/a\nb", "s/a&b", "s/rg.", "s(1)/rg",
            &long,
        ] {
            assert!(bad.parse::<Prepared>().is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let credentials = Credentials::Only(BTreeMap::from([("app".into(), "hunter2".into())]));
        assert_eq!(format!("{credentials:?}"), r#"["app"]"#);
    }
}
