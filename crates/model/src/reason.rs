//! The fixed words for why something is as it is.

use core::fmt;

/// A reason, as it stands in conditions, events, metrics and explanations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Its resources are being made.
    Provisioning,
    /// All is there.
    Provisioned,
    /// Its resources are being changed.
    Updating,
    /// Its addresses are being taken off before anything is deleted.
    Draining,
    /// Its resources are being deleted.
    Deleting,
    /// A named port cannot be resolved, or the endpoints disagree about it.
    PortUnresolved,
    /// Azure asked for a pause.
    Throttled,
    /// A quota of the subscription is used up.
    QuotaExceeded,
    /// Azure does not accept the credential, or a role, lock or policy denies the request.
    Forbidden,
    /// The Service or pod asks for what cannot be.
    InvalidSpec,
    /// A resource that is not ours stands in the way.
    Conflict,
    /// Azure refuses the request and does not say what to mend.
    Refused,
    /// Azure does not answer, or answers with errors.
    AzureUnavailable,
    /// A bug: an invariant would have been broken, so nothing was done.
    InternalError,
    /// Kubernetes refuses our write (a webhook, a missing permission).
    KubernetesRefused,
    /// More services would be torn down at once than is plausible.
    MassDeletionHeld,
    /// The service gateway is missing or belongs to another cluster.
    GatewayUnavailable,
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Reason; 17] = [
        Reason::Provisioning,
        Reason::Provisioned,
        Reason::Updating,
        Reason::Draining,
        Reason::Deleting,
        Reason::PortUnresolved,
        Reason::Throttled,
        Reason::QuotaExceeded,
        Reason::Forbidden,
        Reason::InvalidSpec,
        Reason::Conflict,
        Reason::Refused,
        Reason::AzureUnavailable,
        Reason::InternalError,
        Reason::KubernetesRefused,
        Reason::MassDeletionHeld,
        Reason::GatewayUnavailable,
    ];

    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Provisioning => "Provisioning",
            Reason::Provisioned => "Provisioned",
            Reason::Updating => "Updating",
            Reason::Draining => "Draining",
            Reason::Deleting => "Deleting",
            Reason::PortUnresolved => "PortUnresolved",
            Reason::Throttled => "Throttled",
            Reason::QuotaExceeded => "QuotaExceeded",
            Reason::Forbidden => "Forbidden",
            Reason::InvalidSpec => "InvalidSpec",
            Reason::Conflict => "Conflict",
            Reason::Refused => "Refused",
            Reason::AzureUnavailable => "AzureUnavailable",
            Reason::InternalError => "InternalError",
            Reason::KubernetesRefused => "KubernetesRefused",
            Reason::MassDeletionHeld => "MassDeletionHeld",
            Reason::GatewayUnavailable => "GatewayUnavailable",
        }
    }

    /// Whether it can stand in a condition of a Service. A write that Kubernetes refuses cannot tell of itself
    /// there, so that is an event alone.
    pub const fn stands_in_conditions(self) -> bool {
        !matches!(self, Reason::KubernetesRefused)
    }

    /// The code, under which `sluice explain` and `docs/errors/` have a page. A code is never given to another reason.
    pub const fn code(self) -> &'static str {
        match self {
            Reason::Provisioning => "SGW0001",
            Reason::Provisioned => "SGW0002",
            Reason::Updating => "SGW0003",
            Reason::Draining => "SGW0004",
            Reason::Deleting => "SGW0005",
            Reason::PortUnresolved => "SGW0006",
            Reason::Throttled => "SGW0007",
            Reason::QuotaExceeded => "SGW0008",
            Reason::Forbidden => "SGW0009",
            Reason::InvalidSpec => "SGW0010",
            Reason::Conflict => "SGW0011",
            Reason::Refused => "SGW0012",
            Reason::AzureUnavailable => "SGW0013",
            Reason::InternalError => "SGW0014",
            Reason::KubernetesRefused => "SGW0015",
            Reason::MassDeletionHeld => "SGW0016",
            Reason::GatewayUnavailable => "SGW0017",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
