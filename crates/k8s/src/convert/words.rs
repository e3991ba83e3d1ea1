//! Words that come again and again are kept once.

use std::collections::HashSet;
use std::sync::Arc;

/// Namespaces, node names and label values, each in one place.
///
/// 150,000 pods have as many names, but few namespaces, nodes and egresses. A word that nobody else
/// holds any more is dropped when the table has doubled.
#[derive(Debug, Default)]
pub(crate) struct Words {
    known: HashSet<Arc<str>>,
    swept_at: usize,
}

/// Below this the table is never swept.
const SMALL: usize = 1_024;

impl Words {
    /// The word, shared with everybody who has asked for it before.
    pub(crate) fn share(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.known.get(word) {
            return Arc::clone(known);
        }
        if self.known.len() >= SMALL.max(2 * self.swept_at) {
            self.known.retain(|word| Arc::strong_count(word) > 1);
            self.swept_at = self.known.len();
        }
        let word: Arc<str> = word.into();
        self.known.insert(Arc::clone(&word));
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_word_is_kept_once() {
        let mut words = Words::default();
        let (one, two) = (words.share("blue"), words.share("blue"));
        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn words_that_nobody_holds_are_dropped_and_held_ones_stay_shared() {
        let mut words = Words::default();
        let held = words.share("held");
        for number in 0..100_000 {
            words.share(&number.to_string());
        }
        assert!(words.known.len() <= 2 * SMALL, "{} words are kept", words.known.len());
        assert!(Arc::ptr_eq(&held, &words.share("held")));
    }
}
