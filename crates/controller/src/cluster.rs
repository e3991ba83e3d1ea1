//! A real cluster behind the loop's two doors to Kubernetes: writes go to the writer, the wish for
//! another list to the watches, and what the watches see to the inbox.

use sluice_k8s::watch::{Facts, Watches};
use sluice_k8s::write::Writer;
use sluice_model::Event;
use sluice_model::effect::{Existence, KubeOutcome, Notice};
use sluice_model::kube::{Kind, ObjectRef};

use crate::inbox::Handle;
use crate::kube::{Kube, StatusWrite};

/// A Kubernetes API server.
pub struct ApiServer {
    writer: Writer,
    watches: Watches,
}

impl ApiServer {
    /// Writes with this writer; lists are these watches' affair.
    pub fn new(writer: Writer, watches: Watches) -> ApiServer {
        let writer = writer.with_offsets(watches.offsets()).with_last_seen(watches.last_seen());
        ApiServer { writer, watches }
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl Kube for ApiServer {
    async fn add_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.writer.add_finalizer(&object).await
    }

    async fn remove_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.writer.remove_finalizer(&object).await
    }

    async fn write_status(&self, write: StatusWrite) -> KubeOutcome {
        let StatusWrite { object, ingress, retract, conditions } = &write;
        self.writer.write_status(object, *ingress, *retract, conditions).await
    }

    async fn look_for(&self, object: ObjectRef) -> Existence {
        self.writer.look_for(&object).await
    }

    async fn notify(&self, notice: Notice) {
        self.writer.notify(&notice).await;
    }

    fn relist(&self, kind: Kind) {
        self.watches.relist(kind);
    }

    fn notices_held_back(&self) -> u64 {
        self.writer.notices_held_back()
    }
}

impl Facts for Handle {
    async fn tell(&self, event: Event) -> Result<(), sluice_k8s::watch::Closed> {
        self.post(event).await.map_err(|_| sluice_k8s::watch::Closed)
    }
}
