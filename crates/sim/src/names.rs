//! The names of everything that is counted: faults and invariants.
//!
//! Both lists are the specification's own, letter and number, so that a table of the simulator
//! can be laid beside it. Nothing here acts.

use core::fmt;

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $(#[doc = $words] $variant,)* }

        impl $name {
            /// All of them, in the specification's order.
            pub const ALL: [$name; [$($words),*].len()] = [$($name::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Letter and number.
            pub const fn code(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant),)* }
            }

            /// What it is, in a few words.
            pub const fn words(self) -> &'static str {
                match self { $($name::$variant => $words,)* }
            }

            /// Its place in [`Self::ALL`].
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The one with this letter and number.
            pub fn parse(code: &str) -> Option<$name> {
                Self::ALL.into_iter().find(|one| one.code().eq_ignore_ascii_case(code))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.code())
            }
        }
    };
}

numbered! {
    /// Something that goes wrong in the world.
    FaultKind {
        K1 = "watch drops, list again",
        K2 = "410 Gone",
        K3 = "stale list from a lagging API server",
        K4 = "a stretch of events never seen",
        K5 = "reordering across kinds",
        K6 = "duplicates and coalescing",
        K7 = "deletion seen only by absence in a re-list",
        K8 = "same name, new UID",
        K9 = "pod IP reused by another pod",
        K10 = "node IP changes, node gone",
        K11 = "label A to B to A",
        K12 = "type LoadBalancer to ClusterIP to LoadBalancer",
        K13 = "several slices, overlaps, moves between slices",
        K14 = "409, 5xx or a slow API server",
        K15 = "a webhook rejects our patch",
        K16 = "finalizer force-removed",
        K17 = "namespace force-deleted",
        K18 = "dual-stack, odd IPv6 spellings, FQDN slices",
        K19 = "clock skew on the lease",
        K20 = "API server away for 30 min",
        Z1 = "429 with and without Retry-After",
        Z2 = "429 for another operation",
        Z3 = "409 and 412",
        Z4 = "500 and 503 bursts",
        Z5 = "applied, but no answer",
        Z6 = "answered, but not applied",
        Z7 = "operation that never ends",
        Z8 = "operation Failed or Canceled",
        Z9 = "provisioningState Failed",
        Z10 = "a GET that lags behind a PUT or DELETE",
        Z11 = "short or failing list page",
        Z12 = "quota",
        Z13 = "403, then restored; token expiry",
        Z14 = "resource lock",
        Z15 = "policy denial",
        Z16 = "one poison address in a batch",
        Z17 = "413 body too large",
        Z18 = "someone deletes or edits our resources",
        Z19 = "foreign resources with names like ours",
        Z20 = "the gateway is deleted",
        Z21 = "everything 50 times slower",
        Z22 = "unknown enum, field or API version",
        P1 = "crash before or after an external call",
        P2 = "SIGTERM in mid-batch",
        P3 = "two leaders overlap",
        P4 = "frozen for longer than the lease",
        P5 = "memory limit during the first list",
        P6 = "upgrade and downgrade with state present",
    }
}

numbered! {
    /// What must hold: S after every step, L once faults have stopped.
    Invariant {
        S1 = "nothing without our tag is modified or deleted",
        S2 = "nothing is deleted while an address refers to it",
        S3 = "teardown in order",
        S4 = "the finalizer goes last, and from its own object",
        S5 = "one load balancer, NAT gateway or public IP per identity",
        S6 = "a published IP stays",
        S7 = "a failed, partial or stale list deletes nothing",
        S8 = "UID fencing",
        S9 = "no request without the lease or by two leaders at once, nothing trusted before a listing",
        S10 = "requests are well formed and bounded",
        S11 = "a poison object delays others by one bisection",
        S12 = "within the budget, and not before Retry-After",
        S13 = "the pods of an egress are exact",
        S14 = "status is honest",
        L1 = "actual equals desired",
        L2 = "every delete completes or shows why not",
        L3 = "everything parked re-arms by itself",
        L4 = "no lost wake-up",
        L5 = "orphans reach zero",
        L6 = "drift is repaired, without writes when there is none",
        L7 = "one object's trouble does not block others",
        L8 = "bounded writes",
    }
}

/// An invariant that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which; `None` when the simulation itself found something impossible (a recount, a refused effect).
    pub invariant: Option<Invariant>,
    /// What was seen, in one sentence.
    pub what: String,
}

impl Violation {
    /// An invariant was broken.
    pub fn of(invariant: Invariant, what: impl Into<String>) -> Violation {
        Violation { invariant: Some(invariant), what: what.into() }
    }

    /// The engine's own books do not add up.
    pub fn internal(what: impl Into<String>) -> Violation {
        Violation { invariant: None, what: what.into() }
    }

    /// The short name of what caught it.
    pub fn code(&self) -> &'static str {
        self.invariant.map_or("books", Invariant::code)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_and_invariant_of_the_specification_has_its_place() {
        assert_eq!((FaultKind::COUNT, Invariant::COUNT), (48, 22));
        for (at, fault) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!((fault.index(), FaultKind::parse(fault.code())), (at, Some(fault)));
        }
    }
}
