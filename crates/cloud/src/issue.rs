//! Hands out what must be fresh: addresses, ETags, latencies.

use alloc::collections::BTreeSet;
use alloc::format;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use sluice_model::address::Family;
use sluice_model::azure::ETag;

use crate::config::Span;

/// 198.18.0.0/15 without its first and last address.
const V4_FIRST: u32 = 0xC612_0001;
const V4_COUNT: u64 = (1 << 17) - 2;
/// 2001:db8::/32; more of them than anybody can count to.
const V6_FIRST: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
const V6_COUNT: u64 = u64::MAX;

/// Gives addresses in a row, and one that was returned only when the range has been walked through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    in_use: BTreeSet<IpAddr>,
    next_v4: u64,
    next_v6: u64,
}

impl Addresses {
    pub(crate) fn issue(&mut self, family: Family) -> Option<IpAddr> {
        let (next, count) = match family {
            Family::V4 => (&mut self.next_v4, V4_COUNT),
            Family::V6 => (&mut self.next_v6, V6_COUNT),
        };
        // One more try than there are addresses in use must hit a free one, if there is any.
        let tries = (self.in_use.len() as u64).saturating_add(1).min(count);
        for _ in 0..tries {
            let address = match family {
                // The remainder is below the count, so neither sum leaves its range.
                Family::V4 => IpAddr::V4(Ipv4Addr::from(V4_FIRST + (*next % count) as u32)),
                Family::V6 => IpAddr::V6(Ipv6Addr::from(V6_FIRST + u128::from(*next % count))),
            };
            *next = next.wrapping_add(1);
            if self.in_use.insert(address) {
                return Some(address);
            }
        }
        None
    }

    /// An address that somebody has already.
    pub(crate) fn keep(&mut self, address: Option<IpAddr>) {
        self.in_use.extend(address);
    }

    pub(crate) fn take_back(&mut self, address: IpAddr) {
        self.in_use.remove(&address);
    }
}

/// Numbers that never repeat, and chance that always does.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    seed: u64,
    drawn: u64,
    etags: u64,
}

impl Counter {
    pub(crate) fn new(seed: u64) -> Counter {
        Counter { seed, drawn: 0, etags: 0 }
    }

    pub(crate) fn etag(&mut self) -> ETag {
        self.etags = self.etags.wrapping_add(1);
        ETag(format!("W/\"{}\"", guid(self.seed, self.etags)).into())
    }

    /// A time from the span, every millisecond as likely as any other.
    pub(crate) fn draw(&mut self, span: Span) -> Duration {
        self.drawn = self.drawn.wrapping_add(1);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (min, max) = (millis(span.min), millis(span.max));
        let choices = max.saturating_sub(min).saturating_add(1);
        let chance = mix(self.seed ^ mix(self.drawn));
        Duration::from_millis(min.saturating_add(chance % choices))
    }
}

/// A number in the shape of a GUID; its last twelve digits are the number itself.
pub(crate) fn guid(seed: u64, number: u64) -> alloc::string::String {
    let noise = mix(seed ^ number.rotate_left(32));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        noise >> 32,
        noise >> 16 & 0xffff,
        noise & 0xfff,
        noise >> 12 & 0xfff,
        number & 0xffff_ffff_ffff
    )
}

/// Scatters a number over all 64 bits (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_address_comes_back_only_after_the_whole_range() {
        let mut addresses = Addresses::default();
        let first = addresses.issue(Family::V4).unwrap();
        addresses.take_back(first);
        for _ in 1..V4_COUNT {
            let next = addresses.issue(Family::V4).unwrap();
            assert_ne!(next, first);
            addresses.take_back(next);
        }
        assert_eq!(addresses.issue(Family::V4), Some(first));
    }

    #[test]
    fn a_used_up_range_gives_nothing() {
        let mut addresses = Addresses::default();
        for _ in 0..V4_COUNT {
            let address = addresses.issue(Family::V4).unwrap();
            assert!(
                matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18)
            );
        }
        assert_eq!(addresses.issue(Family::V4), None);
        assert_eq!(addresses.issue(Family::V6), Some("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn latencies_stay_in_their_span_and_reach_both_ends() {
        let mut counter = Counter::new(7);
        let span = Span::millis(2_000, 2_003);
        let drawn: BTreeSet<_> = (0..100).map(|_| counter.draw(span).as_millis()).collect();
        assert_eq!(drawn, BTreeSet::from([2_000, 2_001, 2_002, 2_003]));
    }
}
