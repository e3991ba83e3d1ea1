//! The stories, end to end: a real API server, the emulator as a process, and the shipped binary.

fn main() {}
