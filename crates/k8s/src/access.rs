//! What we may do, asked of the API server itself.
