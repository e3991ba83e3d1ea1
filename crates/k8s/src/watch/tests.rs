//! The feeds against an API server that says what a test wrote down.
