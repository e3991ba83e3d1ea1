//! Deliberate bugs, for tests of the tests.
//!
//! Without the feature `seeded-bugs` the switch is empty and every question answers `false`
//! at compile time. With it, the simulator plants one bug at a time and must catch it.

/// Whether this build can plant bugs. The product asserts that it cannot.
pub const ENABLED: bool = cfg!(feature = "seeded-bugs");

/// One small, plausible mistake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bug {
    /// Engine: a trigger that arrives while an operation runs is dropped.
    DropTrigger,
    /// Engine: a Service is known by its name, whatever its UID.
    ForgetUidCheck,
    /// Engine: the teardown starts without waiting for the addresses.
    DeleteWithoutDrain,
    /// Engine: the finalizer goes when the teardown starts.
    FinalizerBeforeGone,
    /// Engine: the IP is published before the service is registered.
    PublishBeforeRegistered,
    /// Engine and updater: orphans are recognised by name alone, and deleted without a look at their tags.
    DeleteWithoutTagCheck,
    /// Engine: after three failures the service is left as it is.
    GiveUpAfterThree,
    /// Engine: what is parked never re-arms.
    ParkForever,
    /// Engine: a failed listing of Azure counts as an empty one.
    TrustFailedList,
    /// Engine: a Kubernetes list older than the newest seen is believed.
    TrustStaleList,
    /// Engine: an object missing from a list is torn down without asking for it.
    SkipConfirmGone,
    /// Engine: an orphan is removed at its first sighting.
    OrphanAtFirstSight,
    /// Engine: a spec that changed during the operation is forgotten.
    ForgetNewSpec,
    /// Engine: work starts before Azure has been listed.
    ActBeforeListing,
    /// Engine: resources are made before the finalizer is on.
    SkipFinalizer,
    /// Engine: nothing holds a mass deletion.
    NoBrake,
    /// Engine: after a change of the leader, deletions count as a mass deletion although they were asked for, had
    /// begun, or were watched.
    BrakeForgetsEvidence,
    /// Engine: objects that vanish from a newer list do not count as a mass deletion.
    VanishedFromListNotHeld,
    /// Engine: the operator's consent to some held deletions counts for all.
    ConsentCountsForAll,
    /// Engine: what is already right is written again at start-up.
    RewriteOnAdopt,
    /// Engine: a failed status write is not repeated.
    ForgetStatus,
    /// Engine: a service wanted again in the middle of its teardown is taken for created.
    ReviveInTeardown,
    /// Engine: inbound services are unregistered before their load balancer is deleted.
    UnregisterFirst,
    /// Engine: the public IP is left behind.
    LeavePublicIp,
    /// Engine: drift is never looked for.
    NoDriftSweep,
    /// Engine: source ranges and the internal annotation are ignored, which opens a Service to the Internet.
    ServeRefused,
    /// Engine: a Service that carries only inherited finalizers is ignored, and is never released.
    ForgetInheritedFinalizer,
    /// Engine: a Service that is rejected during its creation is published and served all the same.
    PublishRefusedCreation,
    /// Engine: a gateway of others is claimed by writing the few fields that we know.
    ClaimByPut,
    /// Engine: a gateway whose last write failed is written again with the few fields that we know.
    RepairByPut,
    /// Engine: a load balancer that was found untagged is served, and left behind with its Service.
    LeaveAdoptedBehind,
    /// Engine: a public IP that somebody released is tagged again together with its load balancer.
    TagReleasedIp,
    /// Addresses: of several slices, the last one written is all there is.
    LastSliceWins,
    /// Addresses: pods are counted instead of kept as a set.
    CountPods,
    /// Addresses: a failed sync counts as done.
    FailureIsSuccess,
    /// Addresses: an unknown sync counts as failed.
    UnknownIsFailure,
    /// Addresses: the gate does not count what is in flight.
    GateForgetsInFlight,
    /// Addresses: a node that moves leaves its old location behind.
    NodeMoveForgetsOld,
    /// Addresses: a refused batch is sent again whole, for ever.
    NoBisect,
    /// Addresses: a service that becomes ready does not make its addresses dirty.
    NoPromotion,
    /// Addresses: the late end of an old pod takes the address from its new owner.
    LateDeleteTakesAddress,
    /// Addresses: terminating endpoints count even when others are ready.
    CountTerminating,
    /// Addresses: a slice counts for the Service of its owner reference, whatever namespace either is in.
    SliceOfAnotherNamespace,
    /// Engine: a record makes the addresses under its name managed, whoever has registered the name.
    RecordIsManaged,
    /// Engine: addresses of an unknown name are removed before Azure was asked about it.
    DrainUnread,
    /// Engine: what the look at an unknown name finds is torn down without a confirmation or the brake.
    TearDownAfterLook,
    /// Addresses: the names of unmanaged services are dropped when their entry is written.
    DrainOthers,
    /// Addresses: a location is emptied as a whole although others may have used it since the last listing.
    EmptyUnlistedLocation,
    /// Addresses: an entry with names of others is written as an old listing showed it.
    WriteUnlistedNames,
    /// Addresses: what one listing has shown of others is overwritten before the second.
    ForgetFirstSighting,
    /// Addresses: an egress gets an address that an egress of others has.
    TakeAddressOfOthers,
    /// Updater: what exists is deleted by what a listing once said about its tags.
    DeleteOnStaleTags,
    /// Updater: a write of what exists carries our tags alone.
    WipeTagsOfOthers,
    /// Updater: the 200 of a poll is success whatever it says.
    PollOkIsSuccess,
    /// Updater: the 200 of a gateway call is success whatever it says.
    PostOkIsSuccess,
    /// Updater: `Retry-After` is not obeyed.
    IgnoreRetryAfter,
    /// Updater: there is no budget.
    NoBudget,
    /// Updater: an empty page ends a list.
    EmptyPageEndsList,
    /// Updater: one service can be twice in one commit.
    TwiceInOneCommit,
    /// Updater: a lost answer counts as success.
    LostIsSuccess,
    /// Updater: requests are begun although the lease has run out.
    SendAfterLease,
    /// Election: the Lease of another replica is honored for our own lease duration, although its own is longer.
    HonorLeaseTooShort,
    /// Election: a lease duration is accepted that is longer than other replicas honor.
    AcceptTooLongLease,
}

/// The switch: at most one bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seeded {
    #[cfg(feature = "seeded-bugs")]
    bug: Option<Bug>,
}

impl Seeded {
    /// No bug but our own.
    pub const NONE: Seeded = Seeded {
        #[cfg(feature = "seeded-bugs")]
        bug: None,
    };

    /// Exactly this bug.
    #[cfg(feature = "seeded-bugs")]
    pub const fn with(bug: Bug) -> Seeded {
        Seeded { bug: Some(bug) }
    }

    /// Whether this bug is planted.
    #[inline(always)]
    pub fn has(self, bug: Bug) -> bool {
        #[cfg(feature = "seeded-bugs")]
        return self.bug == Some(bug);
        #[cfg(not(feature = "seeded-bugs"))]
        {
            let _ = bug;
            false
        }
    }
}
