//! Which of the known names somebody may have meant.

/// The name that begins so, else the one with the fewest letters to change; the first of equals.
pub(crate) fn of<'a>(word: &str, names: &[&'a str]) -> &'a str {
    let far = |name: &&str| if name.starts_with(word) { 0 } else { strsim::levenshtein(word, name) };
    names.iter().copied().min_by_key(far).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_leads_to_the_task_that_was_meant() {
        let names = ["check", "test", "tidy", "bless", "conformance"];
        assert_eq!(of("tets", &names), "test");
        assert_eq!(of("conform", &names), "conformance");
        assert_eq!(of("tydi", &names), "tidy");
    }
}
