//! What one lock keeps together: the cloud's surface and the clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response};
use sluice_cloud::Fault;

use crate::clock::Clock;
use crate::options::Prepared;
use crate::surface::Surface;

/// The world, shared by all connections.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

/// Everything that a request can see or change.
pub(crate) struct World {
    pub(crate) surface: Surface,
    pub(crate) clock: Clock,
}

impl Shared {
    pub(crate) fn new(world: World) -> Shared {
        Shared(Arc::new(Mutex::new(world)))
    }

    /// Nobody holds it across an await, so nobody waits long.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        // A panic in one request must not take everybody else's cloud away.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// One request to the resource manager, now.
    pub(crate) fn handle(
        &mut self,
        request: &Request<Bytes>,
        origin: &str,
        fault: Option<&Fault>,
    ) -> Option<Response<Bytes>> {
        let handled = self.surface.handle(self.clock.now(), request, origin, self.clock.factor(), fault);
        handled.answer
    }

    /// Makes a resource group, as anybody could.
    pub(crate) fn prepare(&mut self, prepared: &Prepared) {
        let Prepared { subscription, group } = prepared;
        let uri = format!("/subscriptions/{subscription}/resourcegroups/{group}?api-version=2021-04-01");
        let request = Request::builder()
            .method(Method::PUT)
            .uri(uri)
            .header("content-type", "application/json")
            .body(Bytes::from_static(br#"{"location":"eastus"}"#))
            .expect("a parsed subscription and group make a path");
        self.handle(&request, "https://localhost", None);
    }
}
