//! Claims about the model of Azure, one test each.

mod resources;
mod support;
