//! What people do, as data: one closed enum of actions, named stories, and a dice player.
//!
//! An action names objects by their names and is played on whatever is there at that moment, so a
//! story can be shortened or reordered and still makes sense. Each prints as one readable line.

mod action;
mod named;
mod random;
mod trouble;

pub use action::{Oddity, OthersHave, OwnerBy, SliceDraft, TagChange, Tagged, UserAction, apply};
pub use named::{FirstGateway, Storm, Story, named, storms};
pub use random::{random_action, taken_over};
pub use trouble::{Part, Requests, Trouble, service_named};
