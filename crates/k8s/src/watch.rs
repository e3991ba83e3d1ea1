//! Lists, watches, and lists again: one task per kind.
