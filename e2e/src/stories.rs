//! All stories, by theme.

mod badstarts;
mod brake;
mod cleanup;
mod egress;
mod endpoints;
mod inbound;
mod large;
mod others;
mod permissions;
mod ports;
mod process;
mod rejected;
mod startup;
mod tamper;

use crate::story::Story;

/// Every story that is written.
pub(crate) fn all() -> Vec<&'static Story> {
    // What takes longest is begun first, so that nobody waits for it alone at the end.
    [
        large::STORIES,
        inbound::STORIES,
        ports::STORIES,
        rejected::STORIES,
        endpoints::STORIES,
        egress::STORIES,
        tamper::STORIES,
        others::STORIES,
        startup::STORIES,
        brake::STORIES,
        process::STORIES,
        badstarts::STORIES,
        cleanup::STORIES,
        permissions::STORIES,
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_for_the_command_line_and_told_once() {
        let mut names: Vec<&str> = all().iter().map(|story| story.name).collect();
        for name in &names {
            let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            assert!(name.chars().all(is_plain), "{name}");
        }
        let number = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), number, "a name stands for two stories");
    }

    #[test]
    fn at_most_a_third_of_the_stories_needs_the_lab_build() {
        let stories = all();
        let scaled: Vec<&str> = stories.iter().filter_map(|story| story.why_scaled()).collect();
        assert!(scaled.len() * 3 <= stories.len(), "{scaled:?}");
        assert!(
            scaled.iter().all(|why| !why.is_empty()),
            "a story does not say why it needs the scaled clock"
        );
    }
}
