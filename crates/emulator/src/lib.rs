//! The cloud model behind HTTPS: an Azure for people without a subscription, and for our tests.
//!
//! [`Emulator::start`] opens the doors and hands back a [`Running`]; the binary and the tests use the
//! same one. A request goes through it from the outside to the inside:
//!
//! ```text
//! doors      sockets, TLS, limits on time and size                      async
//! front      whose request is it: tokens, metadata, control, ARM        async
//! faults     what goes wrong with it, decided by rules and a seed       pure
//! surface    ARM's paths, headers and JSON over the model of the cloud  pure
//! journal    every write on its way to the state file                   before the answer leaves
//! ```
//!
//! One lock keeps surface, faults, request log and journal together, so a request sees and leaves a
//! whole world, and the journal has the writes in the order in which they happened. Nothing below the
//! front reads a clock or draws chance; that is what makes the journal replay exactly.
//!
//! Missing on purpose: users and roles (any credentials do, unless some are named), budgets by region, and
//! everything that [`surface`] does not serve; `SUPPORT.md` lists it.

mod answers;
mod calls;
mod certificates;
mod clock;
mod control;
mod dates;
mod doors;
mod emulator;
mod faults;
mod front;
mod journal;
mod managed_identity;
mod metadata;
mod oauth;
mod options;
mod request_log;
mod settings;
pub mod surface;
mod tokens;
mod wire;
mod world;

pub use certificates::CA_FILE;
pub use emulator::{Emulator, Running, StartError};
pub use journal::JournalError;
pub use options::{Credentials, Limits, Options, Prepared};
