//! Finds the API server and says clearly why it cannot be reached.
