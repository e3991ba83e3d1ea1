//! The cloud model behind HTTPS: an Azure for people without a subscription, and for our tests.

pub mod surface;
