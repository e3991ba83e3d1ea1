//! The timing of leader election: which durations are accepted, and how long the Lease of another replica is honored.
//!
//! A leader may act for the renewal deadline after its last renewal. A standby takes the Lease over when it has not
//! changed for as long as the standby honors it. As long as every accepted renewal deadline is shorter than that time,
//! two replicas never act at once, also if their configurations differ.

use core::fmt;
use core::time::Duration;

use crate::seeded::{Bug, Seeded};

/// The longest lease duration. No replica accepts a longer one for itself, and none honors the Lease of another
/// replica for longer, whatever the Lease says.
///
/// Both limits must be the same: a leader with a longer lease could still act when a standby takes over.
/// Do not lower this value: during an upgrade, a replica of an older version may hold a Lease of this length.
pub const LEASE_MAX: Duration = Duration::from_secs(300);

/// The durations of one replica's election.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How long a Lease must be seen unchanged before another replica takes it; at most [`LEASE_MAX`].
    pub lease: Duration,
    /// How long after a renewal its holder may still begin something.
    pub renew_deadline: Duration,
    /// How long between two tries, and between two renewals.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing { lease: seconds(15), renew_deadline: seconds(10), retry: seconds(2) }
    }
}

impl Timing {
    /// How long to wait for one answer: three fit into the renewal deadline.
    pub fn call_limit(&self) -> Duration {
        self.renew_deadline / 3
    }

    /// Whether an election with this timing is safe beside every other accepted timing.
    pub fn check(&self, seeded: Seeded) -> Result<(), BadTiming> {
        if self.retry.is_zero() || self.retry >= self.renew_deadline || self.renew_deadline >= self.lease {
            return Err(BadTiming::Order(*self));
        }
        if self.lease > LEASE_MAX && !seeded.has(Bug::AcceptTooLongLease) {
            return Err(BadTiming::LeaseTooLong(self.lease));
        }
        Ok(())
    }

    /// How long another holder's Lease must be seen unchanged before this replica takes it over: its own lease
    /// duration or the one in the Lease, whichever is longer, but at most [`LEASE_MAX`].
    pub fn honored(&self, theirs: Duration, seeded: Seeded) -> Duration {
        if seeded.has(Bug::HonorLeaseTooShort) {
            return self.lease;
        }
        self.lease.max(theirs.min(LEASE_MAX))
    }
}

/// A timing with which two replicas could act at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadTiming {
    /// The durations do not fit into each other.
    Order(Timing),
    /// The lease is longer than other replicas wait.
    LeaseTooLong(Duration),
}

impl fmt::Display for BadTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadTiming::Order(Timing { lease, renew_deadline, retry }) => write!(
                f,
                "a retry after {retry:?}, a renewal deadline of {renew_deadline:?} and a lease of {lease:?} must satisfy \
                 0 < retry < renewal deadline < lease"
            ),
            BadTiming::LeaseTooLong(lease) => write!(
                f,
                "the lease duration is {lease:?}; it must be at most {LEASE_MAX:?}, since other replicas take over \
                 after that time"
            ),
        }
    }
}

impl core::error::Error for BadTiming {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_accepted_leader_may_act_for_as_long_as_its_lease_is_honored() {
        let lengths = [2, 14, 15, 16, 90, 299, 300, 301, 600].map(Duration::from_secs);
        let timings = lengths.map(|lease| Timing {
            lease,
            renew_deadline: lease - Duration::from_millis(1),
            retry: Duration::from_secs(1),
        });
        for leader in timings.iter().filter(|timing| timing.check(Seeded::NONE).is_ok()) {
            for standby in timings.iter().filter(|timing| timing.check(Seeded::NONE).is_ok()) {
                assert!(
                    leader.renew_deadline < standby.honored(leader.lease, Seeded::NONE),
                    "{leader:?} {standby:?}"
                );
            }
        }
        let accepted = timings.iter().filter(|timing| timing.check(Seeded::NONE).is_ok()).count();
        assert_eq!(accepted, 7, "all but 301 s and 600 s");
    }

    #[test]
    fn a_lease_that_says_to_be_longer_than_accepted_is_taken_over_after_the_longest() {
        let honored =
            |seconds| Timing::default().honored(Duration::from_secs(seconds), Seeded::NONE).as_secs();
        assert_eq!([0, 1, 15, 40, 300, 301, 600].map(honored), [15, 15, 15, 40, 300, 300, 300]);
    }
}
