//! Text that must not be seen: keys, client secrets, tokens.
//!
//! [`Secret`] has no `Display`, its `Debug` says `[redacted]`, and its memory is wiped at the
//! end. What others wrote (an error text of a token endpoint, a body in a trace) goes through
//! [`scrub`] before it is shown, because nobody promises what is in it.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// What is shown instead.
const REDACTED: &str = "[redacted]";

/// A text that is never printed and is wiped from memory when its last copy goes.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    /// Takes a text into care. White space at both ends goes: secrets come from files with a line end.
    pub fn new(text: impl Into<String>) -> Secret {
        let text = Zeroizing::new(text.into());
        match text.trim() {
            trimmed if trimmed.len() == text.len() => Secret(Arc::new(text)),
            trimmed => Secret(Arc::new(Zeroizing::new(trimmed.to_owned()))),
        }
    }

    /// The text itself. Every use of this is a place to look at when secrets leak.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Two secrets are compared in a time that depends on their length only.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        let (one, two) = (self.0.as_bytes(), other.0.as_bytes());
        one.len() == two.len() && one.iter().zip(two).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

/// The text without the secret, if it is in there, and without anything that looks like a signed token.
pub(crate) fn scrub(text: &str, secret: Option<&Secret>) -> String {
    let known = match secret {
        Some(secret) if !secret.is_empty() => text.replace(secret.reveal(), REDACTED),
        _ => text.to_owned(),
    };
    without_tokens(&known)
}

/// Replaces every JSON web token: three parts in base64 with dots between, the first beginning with `{"`.
fn without_tokens(text: &str) -> String {
    let is_part_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=' | '+');
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("eyJ") {
        let (before, token_and_rest) = rest.split_at(at);
        let end = token_and_rest.find(|c| !is_part_of_token(c)).unwrap_or(token_and_rest.len());
        let (word, after) = token_and_rest.split_at(end);
        clean.push_str(before);
        clean.push_str(if word.contains('.') { REDACTED } else { word });
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_says_nothing_about_itself() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "[redacted] Some([redacted])");
    }

    #[test]
    fn the_line_end_of_a_file_is_no_part_of_the_secret() {
        assert_eq!(Secret::new("hunter2\n").reveal(), "hunter2");
        assert_eq!(Secret::new("hunter2"), Secret::new(" hunter2 "));
        assert_ne!(Secret::new("hunter2"), Secret::new("hunter3"));
        assert!(Secret::new(" \n").is_empty());
    }

    #[test]
    fn what_others_wrote_is_shown_without_secrets_and_tokens() {
        let secret = Secret::new("hunter2");
        let text = "no: hunter2 with eyJhbGciOi.J9-_x.sig, and eyJust a word";
        assert_eq!(scrub(text, Some(&secret)), "no: [redacted] with [redacted], and eyJust a word");
        assert_eq!(scrub("nothing", Some(&Secret::new(""))), "nothing");
    }
}
