//! Which faults of Kubernetes are on, how often they strike, and how often they did.
//!
//! Some strike between the API server and us: watches, lists, writes, reads (K1-K7, K14, K15,
//! K19, K20); they are rolled here. The others are things that people do (K8-K13, K16-K18); they
//! come with the story, and the cluster counts them as they happen.

use std::collections::BTreeMap;
use std::time::Duration;

use sluice_model::Time;

use crate::rng::Rng;

/// The faults of Kubernetes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KubeFault {
    /// K1: a watch drops; then it is resumed or everything is listed again.
    WatchDrops,
    /// K2: a watch is too old to be resumed (`410 Gone`).
    HistoryGone,
    /// K3: a list comes from an API server that lags.
    StaleList,
    /// K4: a stretch of events is never seen, until the next list.
    EventsLost,
    /// K5: one kind's events come much later than another's.
    KindsReordered,
    /// K6: events come twice, or several become one.
    Repeated,
    /// K7: a deletion is seen only because a list lacks the object.
    SeenByAbsence,
    /// K8: an object has the name of another that is gone.
    NameReused,
    /// K9: a pod has the IP of another pod.
    AddressReused,
    /// K10: a node's IP changes, or the node goes.
    NodeChanged,
    /// K11: a pod's label goes from A to B and back.
    LabelReturned,
    /// K12: a Service goes from LoadBalancer to ClusterIP and back.
    TypeReturned,
    /// K13: several slices of one Service, overlaps, moves.
    SlicesOverlap,
    /// K14: the API server is slow or answers with 409 or 5xx.
    WriteFails,
    /// K15: a webhook or a missing permission refuses our write.
    WriteRefused,
    /// K16: somebody takes our finalizer off.
    FinalizerStripped,
    /// K17: a namespace vanishes with all that is in it.
    NamespaceDropped,
    /// K18: dual-stack, odd spellings, names in place of addresses.
    OddAddresses,
    /// K19: the clock is off while the lease is judged.
    LeaseSkew,
    /// K20: the API server is away for half an hour.
    ServerAway,
}

impl KubeFault {
    /// All of them, K1 first.
    pub const ALL: [KubeFault; 20] = [
        KubeFault::WatchDrops,
        KubeFault::HistoryGone,
        KubeFault::StaleList,
        KubeFault::EventsLost,
        KubeFault::KindsReordered,
        KubeFault::Repeated,
        KubeFault::SeenByAbsence,
        KubeFault::NameReused,
        KubeFault::AddressReused,
        KubeFault::NodeChanged,
        KubeFault::LabelReturned,
        KubeFault::TypeReturned,
        KubeFault::SlicesOverlap,
        KubeFault::WriteFails,
        KubeFault::WriteRefused,
        KubeFault::FinalizerStripped,
        KubeFault::NamespaceDropped,
        KubeFault::OddAddresses,
        KubeFault::LeaseSkew,
        KubeFault::ServerAway,
    ];

    /// Its name in the list of faults.
    pub const fn label(self) -> &'static str {
        const LABELS: [&str; 20] = [
            "K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11", "K12", "K13", "K14", "K15",
            "K16", "K17", "K18", "K19", "K20",
        ];
        LABELS[self as usize]
    }

    /// Rolled by [`KubeFaults`]. K7 is not: it follows from K1, K2 and K4.
    pub const fn is_rolled(self) -> bool {
        matches!(
            self,
            KubeFault::WatchDrops
                | KubeFault::HistoryGone
                | KubeFault::StaleList
                | KubeFault::EventsLost
                | KubeFault::KindsReordered
                | KubeFault::Repeated
                | KubeFault::WriteFails
                | KubeFault::WriteRefused
                | KubeFault::LeaseSkew
                | KubeFault::ServerAway
        )
    }

    /// How often it strikes at most, per chance it gets: an outage must not be all there is.
    const fn per_mille_max(self) -> u16 {
        match self {
            KubeFault::ServerAway => 4,
            KubeFault::WatchDrops | KubeFault::HistoryGone | KubeFault::EventsLost => 60,
            KubeFault::StaleList => 400,
            _ => 250,
        }
    }
}

/// How often each fault happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts([u64; KubeFault::ALL.len()]);

impl FaultCounts {
    /// One more.
    pub fn add(&mut self, fault: KubeFault) {
        self.0[fault as usize] += 1;
    }

    /// How often.
    pub fn of(&self, fault: KubeFault) -> u64 {
        self.0[fault as usize]
    }

    /// Takes another count in.
    pub fn merge(&mut self, other: &FaultCounts) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

/// What happens to one write of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteFault {
    /// Nothing; it is judged by its merits.
    None,
    /// Somebody else wrote in between.
    Conflict,
    /// It is written, but the answer is lost.
    AnswerLost,
    /// It is not written, and there is no answer.
    RequestLost,
    /// There is no answer, and it is written so much later.
    LandsLater(Duration),
    /// A webhook refuses it.
    Webhook,
    /// Our account may not do that.
    Forbidden,
}

/// The faults between the API server and us.
#[derive(Clone, Debug, Default)]
pub struct KubeFaults {
    per_mille: BTreeMap<KubeFault, u16>,
    away_until: Time,
    injected: FaultCounts,
}

impl KubeFaults {
    /// How long an outage lasts.
    pub const OUTAGE: Duration = Duration::from_secs(30 * 60);
    /// A write without an answer lands at most so much later.
    pub const LANDS_WITHIN: Duration = Duration::from_secs(60);
    /// No answer takes longer.
    pub const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

    /// No faults.
    pub fn none() -> KubeFaults {
        KubeFaults::default()
    }

    /// Every rolled fault at its greatest strength.
    pub fn storm() -> KubeFaults {
        let mut faults = KubeFaults::none();
        for fault in KubeFault::ALL {
            faults.set(fault, fault.per_mille_max());
        }
        faults
    }

    /// About half of the faults, each with a strength of its own, so that every mixture occurs.
    pub fn random(rng: &mut Rng) -> KubeFaults {
        let mut faults = KubeFaults::none();
        for fault in KubeFault::ALL {
            let strength = rng.between(1, u64::from(fault.per_mille_max()));
            if rng.chance(500) {
                faults.set(fault, u16::try_from(strength).unwrap_or(0));
            }
        }
        faults
    }

    /// Sets how often a fault strikes; what is not rolled stays off.
    pub fn set(&mut self, fault: KubeFault, per_mille: u16) {
        if fault.is_rolled() {
            self.per_mille.insert(fault, per_mille);
        }
    }

    /// Sets one fault and gives itself back.
    pub fn with(mut self, fault: KubeFault, per_mille: u16) -> KubeFaults {
        self.set(fault, per_mille);
        self
    }

    /// How often a fault strikes.
    pub fn per_mille(&self, fault: KubeFault) -> u16 {
        self.per_mille.get(&fault).copied().unwrap_or(0)
    }

    /// Strikes as often as another mixture from now on; what has been counted stays.
    pub fn become_like(&mut self, other: &KubeFaults) {
        self.per_mille.clone_from(&other.per_mille);
    }

    /// Ends all faults, an outage too. What was delayed or must be listed again still comes.
    pub fn calm(&mut self) {
        self.per_mille.clear();
        self.away_until = Time::ZERO;
    }

    /// How often each fault was injected.
    pub fn injected(&self) -> &FaultCounts {
        &self.injected
    }

    /// Whether a fault strikes now; counts it if so.
    pub fn strikes(&mut self, fault: KubeFault, rng: &mut Rng) -> bool {
        let strikes = rng.chance(self.per_mille(fault));
        if strikes {
            self.injected.add(fault);
        }
        strikes
    }

    /// Counts a fault that nobody rolled.
    pub(crate) fn note(&mut self, fault: KubeFault) {
        self.injected.add(fault);
    }

    /// Perhaps begins an outage; called now and then by whoever plays the story.
    pub fn roll_outage(&mut self, now: Time, rng: &mut Rng) -> bool {
        let begins = !self.is_away(now) && self.strikes(KubeFault::ServerAway, rng);
        if begins {
            self.away_until = now + KubeFaults::OUTAGE;
        }
        begins
    }

    /// Begins an outage.
    pub fn begin_outage(&mut self, now: Time) {
        self.injected.add(KubeFault::ServerAway);
        self.away_until = now + KubeFaults::OUTAGE;
    }

    /// Whether the API server is out of our reach.
    pub fn is_away(&self, now: Time) -> bool {
        now < self.away_until
    }

    /// When the last outage ends or ended.
    pub fn away_until(&self) -> Time {
        self.away_until
    }

    /// What happens to a write that is sent now.
    pub fn write_fault(&mut self, now: Time, rng: &mut Rng) -> WriteFault {
        if self.is_away(now) {
            return WriteFault::RequestLost;
        }
        if self.strikes(KubeFault::WriteRefused, rng) {
            return if rng.chance(500) { WriteFault::Webhook } else { WriteFault::Forbidden };
        }
        if self.strikes(KubeFault::WriteFails, rng) {
            let landing = Duration::from_millis(rng.between(1, KubeFaults::LANDS_WITHIN.as_millis() as u64));
            let kinds = [
                WriteFault::Conflict,
                WriteFault::AnswerLost,
                WriteFault::RequestLost,
                WriteFault::LandsLater(landing),
            ];
            return rng.pick(&kinds).copied().unwrap_or(WriteFault::Conflict);
        }
        WriteFault::None
    }

    /// Whether a read that is sent now stays without an answer.
    pub fn read_fails(&mut self, now: Time, rng: &mut Rng) -> bool {
        self.is_away(now) || self.strikes(KubeFault::WriteFails, rng)
    }

    /// How long the API server takes to answer.
    pub fn answer_delay(&mut self, rng: &mut Rng) -> Duration {
        let slow = self.strikes(KubeFault::WriteFails, rng);
        let longest = if slow { KubeFaults::ANSWERS_WITHIN.as_millis() as u64 } else { 40 };
        Duration::from_millis(rng.between(2, longest))
    }

    /// How far off the clock is with which the lease is judged; none most of the time. With clocks of different speed,
    /// it is less than the time from the renewal deadline to the end of a lease: no election survives more.
    pub fn lease_skew(&mut self, rng: &mut Rng) -> Duration {
        if self.strikes(KubeFault::LeaseSkew, rng) {
            return Duration::from_millis(rng.between(100, 4_500));
        }
        Duration::ZERO
    }
}
