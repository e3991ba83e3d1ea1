//! The dashboard: pages for people about a running controller, as HTML from the views.
//!
//! Everything here is a function from views to text, without a clock, a socket or a request. The
//! admin server asks the loop, calls one of [`page`], [`summary`] or [`detail`], and sends what it
//! gets; it also serves the [`assets`], whose names carry a hash of what is in them.
//!
//! It thinks in this order: what is wrong and what to do ([`findings()`]), how everything stands
//! ([`rows`], the diagram of states), how it went ([`History`], as charts). The pages are whole
//! without JavaScript: search, filters, order and pages of the table are links and a form. The one
//! module of ours, `live.js`, adds what a page cannot do by itself: it follows `/api/v1/events`,
//! filters while one types, shows ten thousand rows, and listens to the keyboard.
//!
//! Missing on purpose: any way to change something; scripts and styles inside the HTML, so that the
//! content-security policy can forbid them; and files from other hosts or of other people.

mod advice;
pub mod assets;
mod charts;
mod detail;
mod diagram;
pub mod findings;
mod front;
pub mod history;
mod layout;
pub mod rows;
mod words;

pub use assets::{Asset, POLICY};
pub use detail::{Detail, detail};
pub use findings::{Finding, Severity, findings};
pub use front::{Front, page, summary};
pub use history::{History, Sample};
pub use layout::message;
pub use rows::Filter;
