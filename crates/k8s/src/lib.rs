//! Watches in, status, finalizers and events out: the side that speaks to Kubernetes.
//!
//! Reading: [`watch`] keeps one task per kind that lists, watches and lists again, cuts every object
//! down (`light`) and turns it into the engine's words ([`convert`], pure). Writing: [`mod@write`] puts
//! finalizers and status, [`notices`] tells people by events. [`lease`] is leader election without a
//! clock of its own, [`access`] asks what we may do, [`connect`] finds the API server, and
//! [`migrate`] removes the finalizer of our predecessor from pods.
//!
//! Missing on purpose: decisions. Nothing here knows what Azure has, and no call is repeated by itself
//! but a list or a watch.

pub mod access;
mod call;
pub mod connect;
pub mod convert;
pub mod lease;
mod light;
pub mod migrate;
pub mod notices;
#[cfg(test)]
mod scripted;
mod seen;
pub mod strings;
pub mod watch;
pub mod write;

pub use call::Trouble;
