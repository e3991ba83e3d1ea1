//! Sends requests to Azure Resource Manager over HTTPS, with a credential. Decides nothing.
//!
//! [`Client::send`] takes one typed request and gives one typed reply. A request is sent once:
//! when to try again, to poll or to ask for the next page is decided without I/O, in the updaters.
//! What the client owes them is an honest word about what happened: answered, certainly not sent,
//! or nobody knows; and to people a sentence that names who, what, and what to do.
//!
//! Nothing secret can be printed: secrets are of types that redact, and what others wrote is
//! cleaned before it is shown.
//!
//! Missing on purpose: retries, polling, paging, budgets; JSON, which is `sluice-arm-wire`'s; any
//! reading of configuration, which comes in as plain [`Settings`].

mod certificate;
mod client;
mod clouds;
mod connection;
mod credential;
mod error;
mod issuer_transport;
mod record;
mod secret;
mod settings;
mod tls;
mod tokens;
mod trouble;

pub use client::{Client, Document};
pub use clouds::Cloud;
pub use error::{NoCredential, SetupError};
pub use record::{CallRecord, Observer, Outcome};
pub use secret::Secret;
pub use settings::{Credential, Limits, Pem, Proxy, Settings, UserAssigned};
