//! Who is who: identities that are parsed once and trusted afterwards.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;

/// The UID that Kubernetes gave to an object; always UUID-shaped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub [u8; 16]);

impl Uid {
    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in either case.
    pub fn parse(text: &str) -> Result<Uid, BadIdentity> {
        let bad =
            || BadIdentity { text: text.to_string(), why: "is not a UID (8-4-4-4-12 hexadecimal digits)" };
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return Err(bad());
        }
        let mut uid = [0u8; 16];
        let mut digits = 0usize;
        for (at, &byte) in bytes.iter().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return Err(bad());
                }
                continue;
            }
            let digit = (byte as char).to_digit(16).ok_or_else(bad)? as u8;
            uid[digits / 2] = uid[digits / 2] << 4 | digit;
            digits += 1;
        }
        Ok(Uid(uid))
    }

    /// A UID made from a number; for tests and simulations.
    pub const fn from_number(number: u128) -> Uid {
        Uid(number.to_be_bytes())
    }

    /// The number of a UID; for tests and simulations.
    pub const fn number(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (number, byte) in self.0.iter().enumerate() {
            at += usize::from(matches!(number, 4 | 6 | 8 | 10));
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 15)];
            at += 2;
        }
        f.write_str(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that cannot be an identity, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadIdentity {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for BadIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.text, self.why)
    }
}

/// The name of an egress: the value of the pod label, in lower case; the NAT gateway is called the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EgressName(Arc<str>);

impl EgressName {
    /// The egress that serves every pod without a label of its own; no pod may name it.
    pub const DEFAULT: &'static str = "default-natgw";
    /// Azure limits NAT gateway names to 80 characters, and `-pip-v6` is appended for the public IP.
    pub const LENGTH_MAX: usize = 73;

    /// Reads the value of an egress label.
    pub fn parse(label: &str) -> Result<EgressName, BadIdentity> {
        let name = label.to_ascii_lowercase();
        let refuse = |why| Err(BadIdentity { text: label.to_string(), why });
        let bytes = name.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return refuse("is empty; an egress name has 1-73 characters");
        };
        if bytes.len() > Self::LENGTH_MAX {
            return refuse("is longer than 73 characters");
        }
        if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            return refuse("has characters other than a-z, 0-9, '.', '_' and '-'");
        }
        if !first.is_ascii_alphanumeric() {
            return refuse("does not start with a letter or digit");
        }
        if !(last.is_ascii_alphanumeric() || *last == b'_') {
            return refuse("does not end with a letter, digit or underscore");
        }
        if name == Self::DEFAULT {
            return refuse("is reserved for the default outbound service");
        }
        if Uid::parse(&name).is_ok() {
            return refuse("looks like a UID, and those name load balancers");
        }
        Ok(EgressName(name.into()))
    }

    /// The default outbound service, which no label can name.
    pub fn default_outbound() -> EgressName {
        EgressName(Self::DEFAULT.into())
    }

    /// Whether this is the default outbound service.
    pub fn is_default(&self) -> bool {
        &*self.0 == Self::DEFAULT
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EgressName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EgressName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One service of the gateway: a load balancer for a Service, or a NAT gateway for an egress.
///
/// The two key spaces never meet: a UID is UUID-shaped and an egress name must not be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ServiceKey {
    /// Traffic that comes in: a load balancer, named after the Service's UID.
    Inbound(Uid),
    /// Traffic that goes out: a NAT gateway, named after the egress.
    Outbound(EgressName),
}

impl ServiceKey {
    /// What Azure calls it: the name of the load balancer or NAT gateway and of the registration.
    pub fn identity(&self) -> Arc<str> {
        match self {
            ServiceKey::Inbound(uid) => format!("{uid}").into(),
            ServiceKey::Outbound(egress) => Arc::clone(&egress.0),
        }
    }

    /// Reads an identity back from Azure; what can be neither is `None`.
    pub fn from_identity(identity: &str) -> Option<ServiceKey> {
        if let Ok(uid) = Uid::parse(identity) {
            return Some(ServiceKey::Inbound(uid));
        }
        if identity.eq_ignore_ascii_case(EgressName::DEFAULT) {
            return Some(ServiceKey::Outbound(EgressName::default_outbound()));
        }
        EgressName::parse(identity).ok().map(ServiceKey::Outbound)
    }

    /// Whether this is a load balancer.
    pub const fn is_inbound(&self) -> bool {
        matches!(self, ServiceKey::Inbound(_))
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceKey::Inbound(uid) => write!(f, "service/{uid}"),
            ServiceKey::Outbound(egress) => write!(f, "egress/{egress}"),
        }
    }
}

/// Namespace and name of a Kubernetes object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name within it.
    pub name: Arc<str>,
}

impl ObjectName {
    /// Puts the two together.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectName {
        ObjectName { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One effect of the engine; its result comes back under the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EffectId(pub u64);

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_survives_printing_and_loses_its_case() {
        let uid = Uid::parse("0A1b2c3d-0000-4000-8000-00000000000F").unwrap();
        assert_eq!(uid.to_string(), "0a1b2c3d-0000-4000-8000-00000000000f");
        assert_eq!(Uid::parse(&uid.to_string()), Ok(uid));
        for text in ["", "web", "0a1b2c3d-0000-4000-8000-00000000000", "0a1b2c3d_0000-4000-8000-00000000000f"]
        {
            assert!(Uid::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_egress_name_is_refused_with_the_reason() {
        assert_eq!(EgressName::parse("Blue").unwrap().as_str(), "blue");
        assert!(EgressName::parse(&"a".repeat(73)).is_ok());
        for bad in ["", "-a", "a-", "a.", "a b", "default-natgw", "DEFAULT-NATGW", "ü", &"a".repeat(74)] {
            assert!(EgressName::parse(bad).is_err(), "{bad}");
        }
        assert!(EgressName::parse("0a1b2c3d-0000-4000-8000-00000000000f").unwrap_err().why.contains("UID"));
    }

    #[test]
    fn the_two_key_spaces_never_meet() {
        let uid = Uid::from_number(7);
        assert_eq!(ServiceKey::from_identity(&uid.to_string()), Some(ServiceKey::Inbound(uid)));
        let blue = EgressName::parse("blue").unwrap();
        assert_eq!(ServiceKey::from_identity("BLUE"), Some(ServiceKey::Outbound(blue)));
        assert_eq!(
            ServiceKey::from_identity("default-natgw"),
            Some(ServiceKey::Outbound(EgressName::default_outbound()))
        );
        assert_eq!(ServiceKey::from_identity("not an identity"), None);
    }
}
