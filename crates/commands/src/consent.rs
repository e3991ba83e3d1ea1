//! Asks a person before anything is changed.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

/// Whether it may go on: because `--yes` was said, or because somebody at a terminal says so now.
pub fn given(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("no changes made: not a terminal; review the plan above and re-run with --yes");
    }
    print!("{question} [yes/no] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    answer.trim().eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_yes_is_one() {
        for yes in ["yes\n", "YES", " Yes "] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "y", "no", "yes please", "\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
