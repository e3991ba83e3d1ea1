//! How a command prints its answer.

use clap::ValueEnum;

/// The form of the output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Human-readable text.
    Text,
    /// JSON for scripts.
    Json,
}

/// Writes a line to the terminal; a reader that has closed the pipe is no error.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}
