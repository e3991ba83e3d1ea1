//! Colours, for terminals that want them.

use std::io::IsTerminal as _;

/// Colours, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint {
    colours: bool,
}

impl Paint {
    /// No colours.
    pub const NONE: Paint = Paint { colours: false };
    /// Colours, whoever reads.
    pub const ALWAYS: Paint = Paint { colours: true };

    /// Colours if the standard output is a terminal and nobody said NO_COLOR.
    pub fn for_stdout() -> Paint {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { colours: std::io::stdout().is_terminal() && !unwanted }
    }

    /// For headings.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// For what is less important.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// All is well.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Something is under way.
    pub fn busy(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Somebody should look.
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_a_text_is_what_it_was() {
        assert_eq!(Paint::NONE.bad("parked"), "parked");
        assert_eq!(Paint::ALWAYS.bad("parked"), "\x1b[31mparked\x1b[0m");
    }
}
