//! The pages about codes, compiled in: `docs/reference/errors/` for problems, and for status reasons the sections of
//! `docs/reference/conditions.md`.

use sluice_model::reason::Reason;

macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        &[$(($code, include_str!(concat!("../../../../docs/reference/errors/", $code, ".md")))),*]
    };
}

/// The page with a section for each status reason.
const CONDITIONS: &str = include_str!("../../../../docs/reference/conditions.md");

/// Code and text of every page about a problem.
const PAGES: &[(&str, &str)] = pages![
    "SGW0006", "SGW0007", "SGW0008", "SGW0009", "SGW0010", "SGW0011", "SGW0012", "SGW0013", "SGW0014",
    "SGW0015", "SGW0016", "SGW0017", "SGW0101", "SGW0102", "SGW0103", "SGW0104", "SGW0105", "SGW0106",
];

/// Why a command can end before it has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// The configuration cannot be used.
    Configuration,
    /// An address to listen on cannot be used.
    CannotListen,
    /// The API server cannot be reached, or refuses us.
    KubernetesUnreachable,
    /// Azure refuses our credential.
    CredentialRejected,
    /// The lease was lost.
    LeaseLost,
    /// The emulator's state file cannot be used.
    StateFileUnusable,
}

impl Start {
    /// All of them.
    pub const ALL: [Start; 6] = [
        Start::Configuration,
        Start::CannotListen,
        Start::KubernetesUnreachable,
        Start::CredentialRejected,
        Start::LeaseLost,
        Start::StateFileUnusable,
    ];

    /// The code of its page. A code is never given to anything else.
    pub const fn code(self) -> &'static str {
        match self {
            Start::Configuration => "SGW0101",
            Start::CannotListen => "SGW0102",
            Start::KubernetesUnreachable => "SGW0103",
            Start::CredentialRejected => "SGW0104",
            Start::LeaseLost => "SGW0105",
            Start::StateFileUnusable => "SGW0106",
        }
    }

    /// What an exit code of the program means; 1 and 2 can mean many things.
    pub const fn of_exit(code: u8) -> Option<Start> {
        match code {
            3 => Some(Start::CannotListen),
            4 => Some(Start::StateFileUnusable),
            5 => Some(Start::KubernetesUnreachable),
            6 => Some(Start::CredentialRejected),
            7 => Some(Start::LeaseLost),
            _ => None,
        }
    }

    /// The word in the title of its page.
    pub const fn word(self) -> &'static str {
        match self {
            Start::Configuration => "Configuration",
            Start::CannotListen => "CannotListen",
            Start::KubernetesUnreachable => "KubernetesUnreachable",
            Start::CredentialRejected => "CredentialRejected",
            Start::LeaseLost => "LeaseLost",
            Start::StateFileUnusable => "StateFileUnusable",
        }
    }
}

/// The page about a code, or about a reason's word; in either case.
pub fn page(asked_for: &str) -> Option<&'static str> {
    let by_word = every().find(|(_, word)| word.eq_ignore_ascii_case(asked_for)).map(|(code, _)| code);
    let code = by_word.unwrap_or(asked_for);
    let problem = PAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(code)).map(|(_, page)| *page);
    problem.or_else(|| status_section(code))
}

/// The section about a status reason, with its heading; `None` for every other code.
fn status_section(code: &str) -> Option<&'static str> {
    let is_its = |part: &&str| part.split(':').next().is_some_and(|start| start.eq_ignore_ascii_case(code));
    let section = CONDITIONS.split("\n### ").skip(1).find(is_its)?;
    section.split("\n## ").next()
}

/// The meaning of a code: the first sentence of its page.
pub fn meaning(code: &str) -> Option<&'static str> {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    page(code).and_then(|page| page.lines().skip(1).find(is_text))
}

/// Whether something looks like a code.
pub(super) fn is_code(text: &str) -> bool {
    let digits = text.get(..3).filter(|start| start.eq_ignore_ascii_case("SGW")).and_then(|_| text.get(3..));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Every code with its word.
pub fn every() -> impl Iterator<Item = (&'static str, &'static str)> {
    let reasons = Reason::ALL.into_iter().map(|reason| (reason.code(), reason.word()));
    reasons.chain(Start::ALL.into_iter().map(|start| (start.code(), start.word())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let codes: BTreeSet<&str> = every().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), every().count(), "a code was given twice");
        let pages: BTreeSet<&str> = PAGES.iter().map(|(code, _)| *code).collect();
        let statuses: BTreeSet<&str> =
            CONDITIONS.lines().filter_map(|line| line.strip_prefix("### ")?.split(':').next()).collect();
        assert!(statuses.is_disjoint(&pages));
        assert_eq!(codes, statuses.union(&pages).copied().collect());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/errors");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(files, pages.iter().map(|code| format!("{code}.md")).collect());
    }

    /// The sections of a page about a problem.
    const PROBLEM: &[&str] =
        &["## Meaning", "## Impact", "## Causes", "## When Sluice retries", "## Where it appears"];

    #[test]
    fn every_page_has_a_title_and_the_sections_of_its_kind() {
        for (code, word) in every() {
            let page = page(code).unwrap();
            if ("SGW0001"..="SGW0005").contains(&code) {
                assert!(page.starts_with(&format!("{code}: {word}\n\n")), "{code}");
                assert!(!page.contains('#') && page.contains("What to do:"), "{code}");
                continue;
            }
            assert!(page.starts_with(&format!("# {code}: {word}\n\n## Meaning\n\n")), "{code}");
            let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
            assert_eq!(headings, PROBLEM, "{code}");
            assert!(page.contains("\n| Evidence | Cause | Fix |\n"), "{code}");
        }
    }

    #[test]
    fn pages_in_the_binary_name_no_repository_paths_or_links() {
        for (code, _) in every() {
            let page = page(code).unwrap();
            for part in ["docs/", "deploy/", "crates/", "](", "://", "```", "<"] {
                assert!(!page.contains(part), "{code}: {part}");
            }
        }
    }

    #[test]
    fn an_exit_code_leads_to_the_page_that_names_it() {
        for code in 0..=255 {
            if let Some(start) = Start::of_exit(code) {
                assert!(page(start.code()).unwrap().contains(&format!("exit code {code}")), "{start:?}");
            }
        }
    }

    #[test]
    fn the_index_has_every_page_with_its_meaning() {
        let index = include_str!("../../../../docs/reference/error-codes.md");
        for (code, word) in every() {
            let meaning = meaning(code).unwrap();
            assert!(index.contains(&format!(") | `{word}` | {meaning} |\n")), "{code}");
        }
    }

    #[test]
    fn a_page_is_found_by_code_and_by_word_in_either_case() {
        assert_eq!(page("sgw0008"), page("QuotaExceeded"));
        assert_eq!(page("quotaexceeded"), page("SGW0008"));
        assert_eq!(page("SGW9999"), None);
        assert_eq!(page("sgw0001"), page("Provisioning"));
        assert_eq!(page("SGW0"), None);
        assert!(is_code("sgw0008") && is_code("SGW9") && !is_code("SGW") && !is_code("service/a/b"));
    }
}
