//! Light objects in the engine's words; pure.
