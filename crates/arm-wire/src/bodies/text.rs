//! Values that are written as text: ids, addresses, words.
//!
//! A word that we do not know has a meaning in every kind of word, so that Azure can learn new
//! ones without our help.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::net::IpAddr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use sluice_model::address::parse_ip;
use sluice_model::azure::{ArmId, Direction, ETag, Provisioning};
use sluice_model::kube::Protocol;

/// A value that came as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Text<T>(pub(crate) T);

/// What can be read from text.
pub(crate) trait FromText: Sized {
    /// For messages.
    const WHAT: &'static str;

    /// Reads it, or says why not.
    fn from_text(text: &str) -> Result<Self, String>;
}

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<T: FromText> Visitor<'_> for Reader<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WHAT)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
                T::from_text(text).map(Text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Reader(PhantomData))
    }
}

/// An id that is there and not empty.
pub(crate) fn id(found: Option<Text<ArmId>>) -> Option<ArmId> {
    found.map(|id| id.0).filter(|id| !id.as_str().is_empty())
}

impl FromText for Arc<str> {
    const WHAT: &'static str = "a string";

    fn from_text(text: &str) -> Result<Arc<str>, String> {
        Ok(text.into())
    }
}

impl FromText for ArmId {
    const WHAT: &'static str = "an ID";

    fn from_text(text: &str) -> Result<ArmId, String> {
        Ok(ArmId::new(text))
    }
}

impl FromText for ETag {
    const WHAT: &'static str = "an etag";

    fn from_text(text: &str) -> Result<ETag, String> {
        Ok(ETag(text.into()))
    }
}

impl FromText for IpAddr {
    const WHAT: &'static str = "an IP address";

    fn from_text(text: &str) -> Result<IpAddr, String> {
        parse_ip(text).map_err(|error| format!("{error}"))
    }
}

/// An address, or an empty text in its place.
impl FromText for Option<IpAddr> {
    const WHAT: &'static str = "an IP address";

    fn from_text(text: &str) -> Result<Option<IpAddr>, String> {
        if text.trim().is_empty() { Ok(None) } else { IpAddr::from_text(text).map(Some) }
    }
}

impl FromText for Provisioning {
    const WHAT: &'static str = "a provisioning state";

    fn from_text(text: &str) -> Result<Provisioning, String> {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        Ok(match () {
            () if is("Succeeded") || text.is_empty() => Provisioning::Succeeded,
            () if is("Updating") => Provisioning::Updating,
            () if is("Deleting") => Provisioning::Deleting,
            // A write that was called off is as little through as one that failed, and nobody works on it.
            () if is("Failed") || is("Canceled") || is("Cancelled") => Provisioning::Failed,
            () => Provisioning::Unknown,
        })
    }
}

/// A word that we do not know becomes SCTP, which no rule of ours has: the rule is then seen, and
/// differs from every rule that we want. Had it been left out, nobody would ever take it away.
impl FromText for Protocol {
    const WHAT: &'static str = "a protocol";

    fn from_text(text: &str) -> Result<Protocol, String> {
        Ok(match () {
            () if text.eq_ignore_ascii_case("Tcp") => Protocol::Tcp,
            () if text.eq_ignore_ascii_case("Udp") => Protocol::Udp,
            () => Protocol::Sctp,
        })
    }
}

/// A word that we do not know becomes both ways, for the same reason: it is seen, and is none of
/// those that we make.
impl FromText for Direction {
    const WHAT: &'static str = "a service type";

    fn from_text(text: &str) -> Result<Direction, String> {
        Ok(match () {
            () if text.eq_ignore_ascii_case("Inbound") => Direction::Inbound,
            () if text.eq_ignore_ascii_case("Outbound") => Direction::Outbound,
            () => Direction::InboundOutbound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromText>(text: &str) -> T {
        T::from_text(text).unwrap()
    }

    #[test]
    fn words_count_whatever_their_case_and_unknown_ones_have_a_meaning() {
        assert_eq!(read::<Provisioning>("succeeded"), Provisioning::Succeeded);
        assert_eq!(read::<Provisioning>("Canceled"), Provisioning::Failed);
        assert_eq!(read::<Provisioning>("Pondering"), Provisioning::Unknown);
        assert_eq!(read::<Protocol>("TCP"), Protocol::Tcp);
        assert_eq!(read::<Protocol>("All"), Protocol::Sctp);
        assert_eq!(read::<Direction>("outbound"), Direction::Outbound);
        assert_eq!(read::<Direction>("Sideways"), Direction::InboundOutbound);
    }

    #[test]
    fn an_address_is_canonical_and_never_half_understood() {
        assert_eq!(read::<IpAddr>("2001:DB8:0::0:1"), read::<IpAddr>("2001:db8::1"));
        assert_eq!(read::<Option<IpAddr>>(""), None);
        assert!(IpAddr::from_text("10.0.0.4/32").unwrap_err().contains("10.0.0.4/32"));
    }
}
