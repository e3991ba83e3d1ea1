//! The operator's consent to a held mass deletion: fingerprints of held services, and the text of an annotation.
//!
//! The fingerprint of a set is the fingerprints of its services, sorted. One hash of the whole set would not do:
//! a leader that is replaced in the middle finds only a part of the set, and could not tell that it was allowed.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::IpAddr;

use crate::key::ServiceKey;

/// The annotation on the Lease.
pub const ANNOTATION: &str = "sluice.dev/allow-deletion";

/// One service whose deletion is held: its identity and its public IP, so that consent to the deletion of an
/// egress does not apply to a later egress of the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a service; the same in every process and version.
    pub fn of(key: &ServiceKey, public_ip: Option<IpAddr>) -> Fingerprint {
        let kind = if key.is_inbound() { "service" } else { "egress" };
        let ip = public_ip.map(|ip| format!("{ip}")).unwrap_or_default();
        Fingerprint(fnv1a(&[kind, &key.identity(), &ip]))
    }

    /// Reads 16 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Fingerprint> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok().map(Fingerprint)).flatten()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The services whose deletion the operator allows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllowedDeletions(BTreeSet<Fingerprint>);

impl AllowedDeletions {
    /// Reads the annotation. Parts that are no fingerprint allow nothing.
    pub fn parse(annotation: &str) -> AllowedDeletions {
        annotation.split('-').filter_map(Fingerprint::parse).collect()
    }

    /// The text of the annotation.
    pub fn annotation(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * 17);
        for fingerprint in &self.0 {
            let dash = if text.is_empty() { "" } else { "-" };
            text.push_str(&format!("{dash}{fingerprint}"));
        }
        text
    }

    /// Whether the deletion of this service is allowed.
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.0.contains(&fingerprint)
    }

    /// Its deletion is not allowed any more.
    pub fn remove(&mut self, fingerprint: Fingerprint) {
        self.0.remove(&fingerprint);
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        self.0.iter().copied()
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Fingerprint> for AllowedDeletions {
    fn from_iter<I: IntoIterator<Item = Fingerprint>>(all: I) -> AllowedDeletions {
        AllowedDeletions(all.into_iter().collect())
    }
}

/// FNV-1a with 64 bits over parts that are kept apart.
fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;
    use crate::key::EgressName;

    fn egress(name: &str, ip: &str) -> Fingerprint {
        Fingerprint::of(&ServiceKey::Outbound(EgressName::parse(name).unwrap()), ip.parse().ok())
    }

    #[test]
    fn a_fingerprint_is_the_same_in_every_version() {
        assert_eq!(egress("blue", "20.1.2.3").to_string(), "4abea702ebe08ea6");
    }

    #[test]
    fn another_name_or_public_ip_is_another_fingerprint() {
        let all =
            [egress("blue", "20.1.2.3"), egress("blue", "20.1.2.4"), egress("blue", ""), egress("red", "")];
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn an_annotation_is_read_as_it_was_written_in_whatever_order() {
        let (blue, red) = (egress("blue", "20.1.2.3"), egress("red", "20.1.2.4"));
        let allowed: AllowedDeletions = [red, blue].into_iter().collect();
        assert_eq!(allowed, [blue, red].into_iter().collect());
        assert_eq!(AllowedDeletions::parse(&allowed.annotation()), allowed);
        assert!(allowed.contains(blue) && !allowed.contains(egress("green", "")));
    }

    #[test]
    fn what_is_no_fingerprint_allows_nothing() {
        for text in ["", "-", "all", "*", "true", "+000000000000001", "00", "ffffffffffffffff0"] {
            assert!(AllowedDeletions::parse(text).is_empty(), "{text:?}");
        }
    }
}
