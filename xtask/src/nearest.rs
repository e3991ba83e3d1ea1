//! Which of the known names somebody may have meant.

/// The name that begins so, else the one with the fewest letters to change; the first of equals.
pub(crate) fn of<'a>(word: &str, names: &[&'a str]) -> &'a str {
    let far = |name: &&str| if name.starts_with(word) { 0 } else { distance(word, name) };
    names.iter().copied().min_by_key(far).unwrap_or("")
}

/// Letters to insert, delete or replace.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_leads_to_the_task_that_was_meant() {
        let names = ["check", "test", "tidy", "bless", "coverage-check"];
        assert_eq!(of("tets", &names), "test");
        assert_eq!(of("coverage", &names), "coverage-check");
        assert_eq!(of("tydi", &names), "tidy");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
