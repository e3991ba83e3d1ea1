//! What carries one request to Azure and one reply back.

use std::sync::Arc;

use sluice_model::call::{Reply, Request};

/// Sends requests. Each once: whether to send again is decided by the updaters.
pub trait Azure: Send + Sync + 'static {
    /// Sends one request and gives what came back.
    fn send(&self, request: Request) -> impl Future<Output = Reply> + Send;
}

impl Azure for sluice_arm::Client {
    async fn send(&self, request: Request) -> Reply {
        sluice_arm::Client::send(self, &request).await
    }
}

impl<A: Azure> Azure for Arc<A> {
    fn send(&self, request: Request) -> impl Future<Output = Reply> + Send {
        A::send(self, request)
    }
}
