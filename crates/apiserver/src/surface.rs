//! HTTP: what a request asks for, and how the answer looks on the wire.
//!
//! A path becomes a target, the store does what is asked of it, and the answer is written in the form
//! that the client accepts: an object, a list, a table, or the lines of a watch.
//!
//! Missing on purpose: CBOR, YAML, and answers in protobuf. Every client that speaks them takes JSON too.

mod answer;
mod columns;
mod discovery;
mod listing;
mod negotiate;
mod openapi;
mod query;
mod reviews;
mod route;
mod serve;
mod shape;
mod tables;
mod watching;
mod writing;

pub(crate) use serve::{Surface, serve};
