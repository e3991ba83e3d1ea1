//! What carries one request to Azure and one reply back.

use std::sync::Arc;

use sluice_model::call::{Reply, Request};

/// Sends requests. Each once: whether to send again is decided by the updaters.
pub trait Azure: Send + Sync + 'static {
    /// Sends one request and gives what came back. `may_begin` is asked when nothing but the
    /// connection is missing, a token for instance; if it says no, nothing is sent.
    fn send(
        &self,
        request: Request,
        may_begin: impl FnOnce() -> bool + Send,
    ) -> impl Future<Output = Reply> + Send;
}

impl Azure for sluice_arm::Client {
    async fn send(&self, request: Request, may_begin: impl FnOnce() -> bool + Send) -> Reply {
        self.send_while(&request, may_begin).await
    }
}

impl<A: Azure> Azure for Arc<A> {
    fn send(
        &self,
        request: Request,
        may_begin: impl FnOnce() -> bool + Send,
    ) -> impl Future<Output = Reply> + Send {
        A::send(self, request, may_begin)
    }
}
