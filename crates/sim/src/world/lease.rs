//! Leader election by one Lease, as in Kubernetes.
//!
//! Who holds the lease renews it every two seconds. Who does not looks at it as often, and takes
//! it when it has not changed for fifteen seconds of its own clock. Nobody compares clocks.

use core::time::Duration;

use sluice_model::Time;

/// Unchanged for so long, a lease is free.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// So long after its last renewal a leader begins nothing more.
pub(super) const RENEWAL_DEADLINE: Duration = Duration::from_secs(10);
/// How often everybody looks.
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// The Lease object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lease {
    /// Who holds it: the number of a process's life, never used twice.
    pub(super) holder: Option<u64>,
    /// Changes with every renewal.
    pub(super) version: u64,
}

/// What one process knows of the lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Elector {
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
            if (answered && !held) || now > renewed + RENEWAL_DEADLINE {
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
        let free = lease.holder.is_none() || now.since(since) + impatience > LEASE;
        if !free {
            return Look::Standby;
        }
        *lease = Lease { holder: Some(me), version: lease.version + 1 };
        self.renewed = Some(now);
        Look::Gained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_takes_over_only_when_the_lease_has_stood_still_for_its_whole_time() {
        let mut lease = Lease::default();
        let (mut a, mut b) = (Elector::default(), Elector::default());
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
    fn a_leader_without_an_api_server_gives_up_at_its_renewal_deadline() {
        let mut lease = Lease::default();
        let mut a = Elector::default();
        let at = |seconds: u64| Time::from_millis(seconds * 1_000);
        assert_eq!(a.look(1, at(0), &mut lease, true, Duration::ZERO), Look::Gained);
        assert_eq!(a.look(1, at(10), &mut lease, false, Duration::ZERO), Look::Missed);
        assert_eq!(a.look(1, at(11), &mut lease, false, Duration::ZERO), Look::Lost);
    }
}
