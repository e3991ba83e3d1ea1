//! The resource manager's surface: one HTTP request in, one HTTP answer out. No sockets, no clock.

use bytes::Bytes;
use http::{Request, Response};
use sluice_cloud::{Cloud, Config, Fault};
use sluice_model::Time;
use sluice_model::call::Method;

/// The resource manager as HTTP sees it: the cloud model, and the JSON documents beside it.
#[derive(Debug)]
pub struct Surface {
    cloud: Cloud,
}

/// What became of one HTTP request.
#[derive(Debug)]
pub struct Handled {
    /// The answer; `None`: nothing must come back (the connection is dropped).
    pub answer: Option<Response<Bytes>>,
    /// What it was for the model; `None` if it never got so far (malformed, unknown path).
    pub call: Option<Call>,
    /// The cloud may have changed, so the request belongs into the journal.
    pub is_write: bool,
}

/// What a request was for the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// What it did.
    pub method: Method,
    /// The kind that it was about, as it stands in ids: `loadBalancers`.
    pub kind: &'static str,
}

impl Surface {
    /// An empty cloud.
    pub fn new(config: Config) -> Surface {
        Surface { cloud: Cloud::new(config) }
    }

    /// Takes one request at a time of the emulated clock. `origin` is scheme, host and port as
    /// the client sees them, for links; `time_factor` turns emulated waits into real ones.
    pub fn handle(
        &mut self,
        _now: Time,
        _request: &Request<Bytes>,
        _origin: &str,
        _time_factor: f64,
        _fault: Option<&Fault>,
    ) -> Handled {
        Handled { answer: None, call: None, is_write: false }
    }

    /// The model, for the control API.
    pub fn cloud_mut(&mut self) -> &mut Cloud {
        &mut self.cloud
    }
}
