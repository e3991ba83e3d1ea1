//! The lifecycle of a service as a table: every state, every trigger, no empty cell.
//!
//! ```text
//! NotStarted ──▶ CreationInProgress ──▶ Created ◀──▶ UpdateInProgress
//!     ▲                 │                  │                │
//!     │                 └──────────────────┼────────────────┘
//!     │                                    ▼
//! (forgotten) ◀── DeletionInProgress ◀──▶ DeletionPending
//! ```
//!
//! The table is data: the engine looks every step up in it, the matrix and the graph are
//! snapshot-tested, and the simulator counts how often each cell was exercised. A trigger is a
//! fact whose guard has been evaluated ("no address refers to it any more"), never a wish.

use core::fmt;

/// Where a service is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// Nothing has been begun, or the last attempt to make it has failed.
    NotStarted,
    /// Its resources are being made.
    CreationInProgress,
    /// It is registered, and as wanted or left as it is because its spec is rejected.
    Created,
    /// It is live and differs from what is wanted.
    UpdateInProgress,
    /// It is not wanted; its operation ends and its addresses drain.
    DeletionPending,
    /// Its resources are being deleted, in order.
    DeletionInProgress,
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All of them, in order.
    pub const ALL: [State; State::COUNT] = [
        State::NotStarted,
        State::CreationInProgress,
        State::Created,
        State::UpdateInProgress,
        State::DeletionPending,
        State::DeletionInProgress,
    ];

    /// The fixed word for metrics, status and dashboard.
    pub const fn word(self) -> &'static str {
        match self {
            State::NotStarted => "NotStarted",
            State::CreationInProgress => "CreationInProgress",
            State::Created => "Created",
            State::UpdateInProgress => "UpdateInProgress",
            State::DeletionPending => "DeletionPending",
            State::DeletionInProgress => "DeletionInProgress",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A fact about one service that may move it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trigger {
    /// It is wanted (again).
    Desired,
    /// It is not wanted (any more), and something of it may be in Azure.
    NoLongerDesired,
    /// A plan that makes it has been handed to the service updater.
    CreationStarted,
    /// A plan that changes it has been handed to the service updater.
    UpdateStarted,
    /// All is in Azure as wanted; there is nothing to write.
    FoundInSync,
    /// It is live in Azure and differs from what is wanted.
    FoundOutOfSync,
    /// It is live in Azure and its spec is rejected, or a named port of it unresolved.
    FoundRejected,
    /// The spec is rejected, no client can use the Service, and it may have resources in Azure.
    RejectedUnserved,
    /// What is wanted of it has changed.
    SpecChanged,
    /// Two listings showed it other than we knew it.
    DriftFound,
    /// Its operation came to its end.
    OperationSucceeded,
    /// Its operation failed.
    OperationFailed,
    /// Nobody knows how its operation ended.
    OutcomeUnknown,
    /// The wait or park before its next attempt is over.
    RetryDue,
    /// Its endpoints or pods changed.
    AddressesChanged,
    /// None of its operations is in flight and no address in Azure may refer to it.
    Drained,
    /// Azure says that addresses still refer to it.
    StillMapped,
    /// Nothing of it is left in Azure, proven, and it is not wanted.
    FullyDeleted,
    /// Nothing of it is left in Azure, proven, and it is wanted again.
    DeletedButDesired,
}

impl Trigger {
    /// How many there are.
    pub const COUNT: usize = 19;
    /// All of them, in order.
    pub const ALL: [Trigger; Trigger::COUNT] = [
        Trigger::Desired,
        Trigger::NoLongerDesired,
        Trigger::CreationStarted,
        Trigger::UpdateStarted,
        Trigger::FoundInSync,
        Trigger::FoundOutOfSync,
        Trigger::FoundRejected,
        Trigger::RejectedUnserved,
        Trigger::SpecChanged,
        Trigger::DriftFound,
        Trigger::OperationSucceeded,
        Trigger::OperationFailed,
        Trigger::OutcomeUnknown,
        Trigger::RetryDue,
        Trigger::AddressesChanged,
        Trigger::Drained,
        Trigger::StillMapped,
        Trigger::FullyDeleted,
        Trigger::DeletedButDesired,
    ];

    /// A fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Trigger::Desired => "Desired",
            Trigger::NoLongerDesired => "NoLongerDesired",
            Trigger::CreationStarted => "CreationStarted",
            Trigger::UpdateStarted => "UpdateStarted",
            Trigger::FoundInSync => "FoundInSync",
            Trigger::FoundOutOfSync => "FoundOutOfSync",
            Trigger::FoundRejected => "FoundRejected",
            Trigger::RejectedUnserved => "RejectedUnserved",
            Trigger::SpecChanged => "SpecChanged",
            Trigger::DriftFound => "DriftFound",
            Trigger::OperationSucceeded => "OperationSucceeded",
            Trigger::OperationFailed => "OperationFailed",
            Trigger::OutcomeUnknown => "OutcomeUnknown",
            Trigger::RetryDue => "RetryDue",
            Trigger::AddressesChanged => "AddressesChanged",
            Trigger::Drained => "Drained",
            Trigger::StillMapped => "StillMapped",
            Trigger::FullyDeleted => "FullyDeleted",
            Trigger::DeletedButDesired => "DeletedButDesired",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a trigger does in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// It stays where it is; why, or what happens instead.
    Stay(&'static str),
    /// It goes there; why.
    Go(State, &'static str),
    /// Back to where it came from before it was unwanted; how that is found.
    Back(&'static str),
    /// It is forgotten; what precedes that.
    Forget(&'static str),
    /// This cannot happen; why. If it does, the service is parked as `InternalError`.
    Never(&'static str),
}

impl Cell {
    /// Whether the simulator can be expected to come by.
    pub const fn is_reachable(&self) -> bool {
        !matches!(self, Cell::Never(_))
    }
}

/// What a trigger does in a state.
pub const fn cell(state: State, trigger: Trigger) -> Cell {
    use Cell::{Back, Forget, Go, Never, Stay};
    use State::*;
    use Trigger::*;
    match (state, trigger) {
        (NotStarted, Desired) => {
            Stay("starts once Azure is listed, the finalizer is on, the spec is valid and nothing holds it")
        }
        (NotStarted, NoLongerDesired) => Go(DeletionPending, "something of it may be in Azure"),
        (NotStarted, CreationStarted) => Go(CreationInProgress, "a slot was free"),
        (NotStarted, UpdateStarted) => Never("a live service has left NotStarted when it was found"),
        (NotStarted, FoundInSync) => Go(Created, "adopted without a write"),
        (NotStarted, FoundOutOfSync) => {
            Go(UpdateInProgress, "it is live, so its addresses are kept in sync meanwhile")
        }
        (NotStarted, FoundRejected) => {
            Go(Created, "it is live, and stays as it is until its spec is corrected")
        }
        (NotStarted, RejectedUnserved) => Go(DeletionPending, "what an attempt has left is torn down"),
        (NotStarted, SpecChanged) => Stay("validated again; ends a park"),
        (NotStarted, DriftFound) => Stay("the next plan is made from what was found"),
        (NotStarted, OperationSucceeded) => Stay("only a look can have been in flight"),
        (NotStarted, OperationFailed) => Stay("only a look can have been in flight; it is repeated"),
        (NotStarted, OutcomeUnknown) => Stay("looks first"),
        (NotStarted, RetryDue) => Stay("queued for a slot"),
        (NotStarted, AddressesChanged) => Stay("wanted, and sent when it is registered"),
        (NotStarted, Drained) => Never("it is not draining"),
        (NotStarted, StillMapped) => Never("nothing is being deleted"),
        (NotStarted, FullyDeleted) => Forget("finalizer off"),
        (NotStarted, DeletedButDesired) => Never("it is where a wanted service without resources belongs"),

        (CreationInProgress, Desired) => Never("an unwanted service has left CreationInProgress before"),
        (CreationInProgress, NoLongerDesired) => Go(DeletionPending, "the operation runs to its end first"),
        (CreationInProgress, CreationStarted) => Never("one operation at a time"),
        (CreationInProgress, UpdateStarted) => Never("one operation at a time"),
        (CreationInProgress, FoundInSync) => Never("nothing is compared while the operation runs"),
        (CreationInProgress, FoundOutOfSync) => Never("nothing is compared while the operation runs"),
        (CreationInProgress, FoundRejected) => Never("nothing is compared while the operation runs"),
        (CreationInProgress, RejectedUnserved) => {
            Go(DeletionPending, "the operation runs to its end, and its result is torn down")
        }
        (CreationInProgress, SpecChanged) => Stay("remembered; compared when the operation ends"),
        (CreationInProgress, DriftFound) => Never("what we are writing is not compared with listings"),
        (CreationInProgress, OperationSucceeded) => Go(Created, "registered; its addresses are promoted"),
        (CreationInProgress, OperationFailed) => Go(NotStarted, "waits or is parked"),
        (CreationInProgress, OutcomeUnknown) => Go(NotStarted, "looks before it goes on"),
        (CreationInProgress, RetryDue) => Never("a running operation has no timer"),
        (CreationInProgress, AddressesChanged) => Stay("wanted, and sent when it is registered"),
        (CreationInProgress, Drained) => Never("it is not draining"),
        (CreationInProgress, StillMapped) => Never("nothing is being deleted"),
        (CreationInProgress, FullyDeleted) => Never("its operation is making something"),
        (CreationInProgress, DeletedButDesired) => Never("its operation is making something"),

        (Created, Desired) => Never("an unwanted service has left Created before"),
        (Created, NoLongerDesired) => Go(DeletionPending, "drains"),
        (Created, CreationStarted) => Never("it is there"),
        (Created, UpdateStarted) => Never("a difference has moved it to UpdateInProgress before"),
        (Created, FoundInSync) => Stay("nothing to write"),
        (Created, FoundOutOfSync) => Go(UpdateInProgress, "to be written"),
        (Created, FoundRejected) => Stay("it stays as it is until its spec is corrected"),
        (Created, RejectedUnserved) => {
            Go(DeletionPending, "its registration is deleted, and it serves no client")
        }
        (Created, SpecChanged) => Stay("compared; a difference moves it on"),
        (Created, DriftFound) => Stay("compared; a difference moves it on"),
        (Created, OperationSucceeded) => Stay("only a look can have been in flight"),
        (Created, OperationFailed) => Stay("only a look can have been in flight; it is repeated"),
        (Created, OutcomeUnknown) => Stay("looks again"),
        (Created, RetryDue) => Stay("looks again"),
        (Created, AddressesChanged) => Stay("sent at once"),
        (Created, Drained) => Never("it is not draining"),
        (Created, StillMapped) => Never("nothing is being deleted"),
        (Created, FullyDeleted) => Never("an unwanted service has left Created before"),
        (Created, DeletedButDesired) => Never("a missing resource is a difference"),

        (UpdateInProgress, Desired) => Never("an unwanted service has left UpdateInProgress before"),
        (UpdateInProgress, NoLongerDesired) => {
            Go(DeletionPending, "an operation in flight ends first; a wait or park is dropped")
        }
        (UpdateInProgress, CreationStarted) => Never("it is there"),
        (UpdateInProgress, UpdateStarted) => Stay("a slot was free"),
        (UpdateInProgress, FoundInSync) => Go(Created, "the difference has gone by itself"),
        (UpdateInProgress, FoundOutOfSync) => Stay("still to be written"),
        (UpdateInProgress, FoundRejected) => {
            Go(Created, "nothing is written, and it stays as it is until its spec is corrected")
        }
        (UpdateInProgress, RejectedUnserved) => {
            Go(DeletionPending, "its registration is deleted, and it serves no client")
        }
        (UpdateInProgress, SpecChanged) => Stay("remembered and applied next"),
        (UpdateInProgress, DriftFound) => Stay("the next plan is made from what was found"),
        (UpdateInProgress, OperationSucceeded) => Go(Created, "written"),
        (UpdateInProgress, OperationFailed) => Stay("waits or is parked; its addresses are kept in sync"),
        (UpdateInProgress, OutcomeUnknown) => Stay("looks before it goes on"),
        (UpdateInProgress, RetryDue) => Stay("queued for a slot"),
        (UpdateInProgress, AddressesChanged) => Stay("sent at once"),
        (UpdateInProgress, Drained) => Never("it is not draining"),
        (UpdateInProgress, StillMapped) => Never("nothing is being deleted"),
        (UpdateInProgress, FullyDeleted) => Never("an unwanted service has left UpdateInProgress before"),
        (UpdateInProgress, DeletedButDesired) => Never("a missing resource is a difference"),

        (DeletionPending, Desired) => {
            Back("its running operation's state, else NotStarted if it was never live, else Created")
        }
        (DeletionPending, NoLongerDesired) => Stay("drains"),
        (DeletionPending, CreationStarted) => Never("nothing is made for an unwanted service"),
        (DeletionPending, UpdateStarted) => Never("nothing is changed for an unwanted service"),
        (DeletionPending, FoundInSync) => Never("an unwanted service is not compared"),
        (DeletionPending, FoundOutOfSync) => Never("an unwanted service is not compared"),
        (DeletionPending, FoundRejected) => Never("what is torn down is not compared"),
        (DeletionPending, RejectedUnserved) => Never("it is torn down already"),
        (DeletionPending, SpecChanged) => Stay("matters only if it is wanted again"),
        (DeletionPending, DriftFound) => Stay("the teardown is made from what was found"),
        (DeletionPending, OperationSucceeded) => Stay("there is more to tear down"),
        (DeletionPending, OperationFailed) => Stay("what was confirmed is torn down"),
        (DeletionPending, OutcomeUnknown) => Stay("looks before it tears down"),
        (DeletionPending, RetryDue) => Stay("the gate is looked at again"),
        (DeletionPending, AddressesChanged) => Stay("nothing is added, the rest drains"),
        (DeletionPending, Drained) => Go(DeletionInProgress, "the last address has left"),
        (DeletionPending, StillMapped) => Never("the teardown has not begun, or has been answered"),
        (DeletionPending, FullyDeleted) => Forget("nothing was made; finalizer off"),
        (DeletionPending, DeletedButDesired) => Go(NotStarted, "nothing is left; begins anew"),

        (DeletionInProgress, Desired) => Stay("runs to its end first"),
        (DeletionInProgress, NoLongerDesired) => Stay("on its way"),
        (DeletionInProgress, CreationStarted) => Never("nothing is made in a teardown"),
        (DeletionInProgress, UpdateStarted) => Never("nothing is changed in a teardown"),
        (DeletionInProgress, FoundInSync) => Never("a teardown is not compared"),
        (DeletionInProgress, FoundOutOfSync) => Never("a teardown is not compared"),
        (DeletionInProgress, FoundRejected) => Never("a teardown is not compared"),
        (DeletionInProgress, RejectedUnserved) => Never("it is torn down already"),
        (DeletionInProgress, SpecChanged) => Stay("matters only if it is wanted again"),
        (DeletionInProgress, DriftFound) => Stay("the rest of the teardown is made from what was found"),
        (DeletionInProgress, OperationSucceeded) => Stay("then nothing is left"),
        (DeletionInProgress, OperationFailed) => Stay("waits or is parked, then goes on where it stopped"),
        (DeletionInProgress, OutcomeUnknown) => Stay("every step of a teardown can be repeated"),
        (DeletionInProgress, RetryDue) => Stay("queued for a slot"),
        (DeletionInProgress, AddressesChanged) => Stay("nothing is added"),
        (DeletionInProgress, Drained) => Never("it has drained before"),
        (DeletionInProgress, StillMapped) => Go(DeletionPending, "the addresses are read again from Azure"),
        (DeletionInProgress, FullyDeleted) => Forget("finalizer off"),
        (DeletionInProgress, DeletedButDesired) => Go(NotStarted, "made anew"),
    }
}
