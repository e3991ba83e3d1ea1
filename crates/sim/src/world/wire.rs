//! What is under way between a process and the two worlds.

use sluice_model::EffectId;
use sluice_model::call::{Reply, Request};
use sluice_model::effect::{Existence, KubeOutcome};
use sluice_model::kube::ObjectRef;
use sluice_updater::CallId;

use crate::cluster::KubeWrite;

/// Something that arrives at a process.
#[derive(Clone, Debug)]
pub(super) enum Incoming {
    /// Azure's answer.
    Reply {
        /// To which call.
        call: CallId,
        /// What.
        reply: Reply,
    },
    /// The API server's answer to a write.
    Written {
        /// Of which effect.
        effect: EffectId,
        /// Which write.
        write: KubeWrite,
        /// How it ended.
        outcome: KubeOutcome,
    },
    /// The API server's answer to a question.
    Looked {
        /// Of which effect.
        effect: EffectId,
        /// What it says.
        existence: Existence,
    },
}

/// A request on its way to Azure.
#[derive(Clone, Debug)]
pub(super) struct OnTheWire {
    pub(super) slot: usize,
    pub(super) life: u64,
    pub(super) call: CallId,
    pub(super) request: Request,
    /// Its sender died before it arrived.
    pub(super) late: bool,
}

/// Something on its way to the API server.
#[derive(Clone, Debug)]
pub(super) struct ToKube {
    pub(super) slot: usize,
    pub(super) life: u64,
    pub(super) effect: EffectId,
    pub(super) what: KubeCall,
}

/// What a process asks of the API server.
#[derive(Clone, Debug)]
pub(super) enum KubeCall {
    Write(KubeWrite),
    Look(ObjectRef),
}
