//! A Kubernetes that does not always do what it is asked.

use std::sync::{Arc, Mutex};

use sluice_controller::memory::Cluster;
use sluice_controller::{Kube, StatusWrite};
use sluice_model::effect::{Existence, KubeOutcome, Notice};
use sluice_model::kube::{Kind, ObjectRef};

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whim {
    /// It is carried out.
    Obey,
    /// It never ends.
    Hang,
    /// It panics.
    Panic,
}

/// How many notices it claims to have held back.
pub(crate) const HELD_BACK: u64 = 3;

const PANIC: &str = "a Kubernetes that was told to panic";

type Whims = Box<dyn FnMut(&str) -> Whim + Send>;

pub(crate) struct Whimsical {
    cluster: Arc<Cluster>,
    whims: Mutex<Whims>,
}

impl Whimsical {
    pub(crate) fn new(cluster: Arc<Cluster>, whims: impl FnMut(&str) -> Whim + Send + 'static) -> Whimsical {
        Whimsical { cluster, whims: Mutex::new(Box::new(whims)) }
    }

    fn whim(&self, what: &str) -> Whim {
        (self.whims.lock().unwrap())(what)
    }

    async fn consider(&self, what: &str) {
        match self.whim(what) {
            Whim::Obey => {}
            Whim::Hang => std::future::pending().await,
            Whim::Panic => panic!("{PANIC}"),
        }
    }
}

impl Kube for Whimsical {
    async fn add_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.consider("add_finalizer").await;
        self.cluster.add_finalizer(object).await
    }

    async fn remove_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.consider("remove_finalizer").await;
        self.cluster.remove_finalizer(object).await
    }

    async fn write_status(&self, write: StatusWrite) -> KubeOutcome {
        self.consider("write_status").await;
        self.cluster.write_status(write).await
    }

    async fn look_for(&self, object: ObjectRef) -> Existence {
        self.consider("look_for").await;
        self.cluster.look_for(object).await
    }

    async fn notify(&self, notice: Notice) {
        self.consider("notify").await;
        self.cluster.notify(notice).await;
    }

    fn relist(&self, kind: Kind) {
        match self.whim("relist") {
            Whim::Obey => self.cluster.relist(kind),
            Whim::Hang => {}
            Whim::Panic => panic!("{PANIC}"),
        }
    }

    fn notices_held_back(&self) -> u64 {
        HELD_BACK
    }
}
