//! Leader election by one Lease, as in Kubernetes.
//!
//! The holder renews the lease every two seconds. The others read it as often, and take it when it has not changed
//! for as long as they honor it, by their own clock. Clocks are not compared. The processes of one run may be
//! configured differently; the rules about that are the product's ([`sluice_model::lease`]).

use core::time::Duration;

use sluice_model::Time;
use sluice_model::lease::{LEASE_MAX, Timing};
use sluice_model::seeded::Seeded;

/// The timing of a process for which the operator wants this lease duration: this one, or the longest one if the
/// configuration refuses it. The renewal deadline is in proportion, so that clocks may differ as much as by default.
pub fn configured_timing(lease: Duration, seeded: Seeded) -> Timing {
    let timing = |lease| Timing { lease, renew_deadline: lease * 2 / 3, ..Timing::default() };
    match timing(lease).check(seeded) {
        Ok(()) => timing(lease),
        Err(_) => timing(LEASE_MAX),
    }
}

/// The Lease object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lease {
    /// Who holds it: the number of a process's life, never used twice.
    pub(super) holder: Option<u64>,
    /// Changes with every renewal.
    pub(super) version: u64,
    /// The lease duration of its holder.
    pub(super) duration: Duration,
}

/// What one process knows of the lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Elector {
    timing: Timing,
    seeded: Seeded,
    seen: Option<(Lease, Time)>,
    /// When it last renewed, by its own clock; `None` while it does not lead.
    pub(super) renewed: Option<Time>,
}

/// What a look at the lease came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// Somebody else leads.
    Standby,
    /// It has taken the lease.
    Gained,
    /// It has renewed the lease.
    Renewed,
    /// It has lost the lease to somebody else, or could not renew it in time.
    Lost,
    /// It still leads, but could not renew this time.
    Missed,
}

impl Elector {
    pub(super) fn new(timing: Timing, seeded: Seeded) -> Elector {
        Elector { timing, seeded, seen: None, renewed: None }
    }

    /// Until when something may be begun by the last renewal, by its own clock.
    pub(super) fn may_act_until(&self) -> Option<Time> {
        self.renewed.map(|renewed| renewed + self.timing.renew_deadline)
    }

    /// How long until the next look.
    pub(super) fn retry(&self) -> Duration {
        self.timing.retry
    }

    /// Looks at the lease, and takes or renews it if it may. `answered` says whether the API server does;
    /// `impatience` is how much too early this process believes the lease to be free.
    pub(super) fn look(
        &mut self,
        me: u64,
        now: Time,
        lease: &mut Lease,
        answered: bool,
        impatience: Duration,
    ) -> Look {
        if let Some(renewed) = self.renewed {
            let held = lease.holder == Some(me);
            if answered && held {
                lease.version += 1;
                self.renewed = Some(now);
                return Look::Renewed;
            }
            if (answered && !held) || now > renewed + self.timing.renew_deadline {
                return Look::Lost;
            }
            return Look::Missed;
        }
        if !answered {
            return Look::Standby;
        }
        let since = match self.seen {
            Some((seen, since)) if seen == *lease => since,
            _ => {
                self.seen = Some((*lease, now));
                now
            }
        };
        let honored = self.timing.honored(lease.duration, self.seeded);
        let free = lease.holder.is_none() || now.since(since) + impatience > honored;
        if !free {
            return Look::Standby;
        }
        *lease = Lease { holder: Some(me), version: lease.version + 1, duration: self.timing.lease };
        self.renewed = Some(now);
        Look::Gained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elector() -> Elector {
        Elector::new(Timing::default(), Seeded::NONE)
    }

    #[test]
    fn a_standby_takes_over_only_when_the_lease_has_stood_still_for_its_whole_time() {
        let mut lease = Lease::default();
        let (mut a, mut b) = (elector(), elector());
        let at = |seconds: u64| Time::from_millis(seconds * 1_000);
        let mut look = |elector: &mut Elector, me, seconds| {
            elector.look(me, at(seconds), &mut lease, true, Duration::ZERO)
        };
        assert_eq!(look(&mut a, 1, 0), Look::Gained);
        assert_eq!(look(&mut b, 2, 1), Look::Standby);
        assert_eq!(look(&mut a, 1, 2), Look::Renewed);
        assert_eq!(look(&mut b, 2, 3), Look::Standby);
        assert_eq!(look(&mut b, 2, 18), Look::Standby);
        assert_eq!(look(&mut b, 2, 19), Look::Gained);
        assert_eq!(look(&mut a, 1, 20), Look::Lost);
    }

    #[test]
    fn a_standby_with_a_shorter_lease_waits_for_the_longer_one() {
        let mut lease = Lease::default();
        let longer = configured_timing(Duration::from_secs(60), Seeded::NONE);
        let (mut a, mut b) = (Elector::new(longer, Seeded::NONE), elector());
        let at = |seconds: u64| Time::from_millis(seconds * 1_000);
        assert_eq!(a.look(1, at(0), &mut lease, true, Duration::ZERO), Look::Gained);
        assert_eq!(a.may_act_until(), Some(at(40)));
        assert_eq!(b.look(2, at(1), &mut lease, true, Duration::ZERO), Look::Standby);
        assert_eq!(b.look(2, at(61), &mut lease, true, Duration::ZERO), Look::Standby);
        assert_eq!(b.look(2, at(62), &mut lease, true, Duration::ZERO), Look::Gained);
    }

    #[test]
    fn a_refused_lease_duration_is_configured_as_the_longest() {
        let lease = |seconds| configured_timing(Duration::from_secs(seconds), Seeded::NONE).lease.as_secs();
        assert_eq!([60, 300, 301, 600].map(lease), [60, 300, 300, 300]);
    }

    #[test]
    fn a_leader_without_an_api_server_gives_up_at_its_renewal_deadline() {
        let mut lease = Lease::default();
        let mut a = elector();
        let at = |seconds: u64| Time::from_millis(seconds * 1_000);
        assert_eq!(a.look(1, at(0), &mut lease, true, Duration::ZERO), Look::Gained);
        assert_eq!(a.look(1, at(10), &mut lease, false, Duration::ZERO), Look::Missed);
        assert_eq!(a.look(1, at(11), &mut lease, false, Duration::ZERO), Look::Lost);
    }
}
