//! Names in README.md, in the book and in messages exist: commands, options, keys, environment variables, metrics, error
//! codes and, in pages, paths of the API.
//!
//! Each is looked up in the page that is made from the code: `docs/reference/cli.md`, `docs/reference/configuration.md`,
//! `docs/reference/metrics.md`, `docs/reference/errors/`; paths among the routes themselves. So a command that only a cluster could run is still compared.

use std::collections::{BTreeMap, BTreeSet};

use super::commands::pages;
use super::literals::{self, PRINTED_BREAK};
use crate::markdown;
use crate::nearest;
use crate::tree::Tree;

const CLI: &str = "docs/reference/cli.md";
const CONFIGURATION: &str = "docs/reference/configuration.md";
const CONDITIONS: &str = "docs/reference/conditions.md";
const METRICS: &str = "docs/reference/metrics.md";

/// Pages that speak of what is not there any more, or not of the program at all.
const OF_OTHER_TIMES: [&str; 2] = ["docs/design/", "docs/decisions/"];

/// What looks like a key and is a name of something else, or a mistake that a page shows on purpose.
const NO_KEYS: [&str; 3] = ["sluice.dev", "sluice.yaml", "sluice.concurency"];

/// The simulator, which is a program with options of its own.
const SIMULATOR: &str = "crates/sim/";

/// Keys of earlier versions, each with its successor.
const OLD_KEYS: &str = "crates/commands/src/config/old.rs";

/// Programs whose options are not checked.
const OTHER_PROGRAMS: [&str; 6] = ["az", "cargo", "curl", "helm", "kubectl", "tail"];

/// An option of the cloud controller manager, which is named without a command.
const OTHER_OPTION: &str = "--controllers";

/// The environment variable that `sluice emulator --print-env` sets for scripts.
const OF_THE_EMULATOR: &str = "SLUICE_EMULATOR";

/// Reports names in README.md and the book that do not exist.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let known = Known::of(tree);
    let mut problems = Vec::new();
    for (path, text) in pages(tree) {
        if OF_OTHER_TIMES.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let mut wrong = known.odd_routes(line);
            wrong.extend(known.odd_names(line));
            problems.extend(wrong.into_iter().map(|why| format!("{path}:{}: {why}", at + 1)));
        }
    }
    problems
}

/// Reports names in the string literals of the program that do not exist.
pub(super) fn check_literals(tree: &Tree) -> Vec<String> {
    let known = Known::of(tree);
    let mut problems = Vec::new();
    for (path, literal) in literals::of_tree(tree) {
        if path.starts_with(SIMULATOR) || path == OLD_KEYS {
            continue;
        }
        let breaks = |text: &str| text.matches('\n').count();
        let mut above = literal.line;
        for line in literal.text.split(PRINTED_BREAK) {
            let number = above + breaks(&line[..line.len() - line.trim_start().len()]);
            let wrong = known.odd_names(&line.replace('\n', " "));
            problems.extend(wrong.into_iter().map(|why| format!("{path}:{number}: {why}")));
            above += breaks(line);
        }
    }
    problems
}

/// What the reference pages list.
struct Known {
    /// The options of each command, by its words: `bench calls`.
    commands: BTreeMap<String, BTreeSet<String>>,
    /// The options of all commands.
    options: BTreeSet<String>,
    keys: BTreeSet<String>,
    variables: BTreeSet<String>,
    metrics: BTreeSet<String>,
    codes: BTreeSet<String>,
    /// The paths that the listeners answer, with names in braces where anything may stand.
    routes: Vec<String>,
    /// Rust's names of our crates, which begin like metrics.
    crates: BTreeSet<String>,
}

impl Known {
    fn of(tree: &Tree) -> Known {
        let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut variables = BTreeSet::from([OF_THE_EMULATOR.to_string()]);
        let mut current = String::new();
        for line in tree.text(CLI).unwrap_or("").lines() {
            if let Some(words) = line.strip_prefix("## sluice") {
                current = words.trim().to_string();
                commands.entry(current.clone()).or_default();
            } else if let Some(options) = commands.get_mut(&current) {
                // An option is defined where a line begins with it; elsewhere it is only mentioned.
                let definition = line.trim_start().starts_with('-').then(|| options_of(line).next());
                options.extend(definition.flatten().map(str::to_string));
            }
            let variable = line.trim().strip_prefix("[env: ").and_then(|rest| rest.strip_suffix(']'));
            variables.extend(variable.map(str::to_string));
        }
        let options = commands.values().flatten().cloned().chain([OTHER_OPTION.to_string()]).collect();
        let cells = |page: &str| -> BTreeSet<String> {
            let rows = markdown::rows(tree.text(page).unwrap_or(""));
            let first = rows.iter().filter_map(|(_, cells)| cells.first());
            first.flat_map(|cell| markdown::code_spans(cell)).map(str::to_string).collect()
        };
        let codes = tree.below("docs/reference/errors/").filter_map(|(path, _)| path.strip_suffix(".md"));
        let codes = codes.filter_map(|path| path.rsplit('/').next());
        // A status reason has a section instead of a page.
        let sections = tree.text(CONDITIONS).unwrap_or("").lines();
        let sections = sections.filter_map(|line| line.strip_prefix("### ")?.split(':').next());
        let codes = codes.chain(sections).map(str::to_string).collect();
        let crates =
            tree.below("crates/").chain(tree.below("lab/")).filter_map(|(path, _)| path.split('/').nth(1));
        let crates = crates.map(|name| format!("sluice_{}", name.replace('-', "_"))).collect();
        let sources = tree.below("crates/controller/src/admin/").flat_map(|(_, text)| text.lines());
        let routes = sources.filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'));
        let routes = routes.map(|(route, _)| route.to_string()).collect();
        let keys = cells(CONFIGURATION);
        variables.extend(keys.iter().filter_map(|key| variable_of(key)));
        Known { routes, commands, options, keys, variables, metrics: cells(METRICS), codes, crates }
    }

    /// Commands, options, keys, environment variables, metrics and codes of a line that do not exist.
    fn odd_names(&self, line: &str) -> Vec<String> {
        let mut odd = self.odd_words(line);
        odd.extend(said(line).iter().filter_map(|command| self.odd_command(command)));
        for part in line.split('`') {
            let words = part.split_whitespace();
            let ours =
                words.take_while(|word| !OTHER_PROGRAMS.contains(&word.trim_start_matches(['(', '$'])));
            let unknown = ours.flat_map(options_of).filter(|option| !self.options.contains(*option));
            odd.extend(unknown.map(|option| {
                format!("no command has {option}; the nearest is {}", nearest_of(option, &self.options))
            }));
        }
        odd
    }

    /// Paths of a line at which nothing answers.
    fn odd_routes(&self, line: &str) -> Vec<String> {
        let is_part = |letter: char| is_part(letter) || matches!(letter, '/' | '-');
        let paths = line.split(|letter| !is_part(letter));
        let ours = paths.filter(|path| ["/api/", "/livez", "/readyz"].iter().any(|it| path.starts_with(it)));
        ours.filter(|path| !self.has_route(path)).map(|path| format!("nothing answers at {path}")).collect()
    }

    /// Keys, environment variables, metrics and codes of a line that do not exist.
    fn odd_words(&self, line: &str) -> Vec<String> {
        let mut odd = Vec::new();
        for word in line.split(|letter| !is_part(letter)) {
            let word = word.trim_end_matches('.');
            if word.starts_with("sluice.") && !NO_KEYS.contains(&word) && !self.has_key(word) {
                odd.push(format!("there is no key {word}; the nearest is {}", nearest_of(word, &self.keys)));
            }
            // A name that ends with `_` is the start of several.
            if word.starts_with("SLUICE_") && !word.ends_with('_') && !self.variables.contains(word) {
                let near = nearest_of(word, &self.variables);
                odd.push(format!("there is no environment variable {word}; the nearest is {near}"));
            }
            if word.starts_with("sluice_") && !word.ends_with('_') && !self.has_metric(word) {
                let near = nearest_of(word, &self.metrics);
                odd.push(format!("there is no metric {word}; the nearest is {near}"));
            }
            let digits = word.strip_prefix("SGW").filter(|rest| rest.len() == 4);
            if digits.is_some_and(|it| it.bytes().all(|digit| digit.is_ascii_digit()))
                && !self.codes.contains(word)
            {
                odd.push(format!("there is no page about {word}"));
            }
        }
        odd
    }

    /// A key, or a section of keys.
    fn has_key(&self, word: &str) -> bool {
        self.keys.contains(word) || self.keys.iter().any(|key| key.starts_with(&format!("{word}.")))
    }

    /// A path that is answered, or the beginning of some.
    fn has_route(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.trim_end_matches(['/', '.']).split('/').collect();
        self.routes.iter().any(|route| {
            let route: Vec<&str> = route.split('/').collect();
            let is_whole = route.len() == parts.len() || path.ends_with('/') && route.len() > parts.len();
            is_whole && route.iter().zip(&parts).all(|(known, part)| known == part || known.starts_with('{'))
        })
    }

    fn has_metric(&self, word: &str) -> bool {
        let series = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        self.metrics.contains(word)
            || series.is_some_and(|word| self.metrics.contains(word))
            || self.crates.contains(word)
    }

    /// What is wrong with the words behind `sluice`.
    fn odd_command(&self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let first = words.first()?;
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        if first.starts_with('-') || !first.chars().all(is_name) {
            // An option of all commands, or dots that stand for one.
            return None;
        }
        let pair = words.get(1).map(|second| format!("{first} {second}"));
        let name = pair.filter(|pair| self.commands.contains_key(pair)).unwrap_or(first.to_string());
        let Some(options) = self.commands.get(&name) else {
            let names: BTreeSet<String> = self.commands.keys().filter(|it| !it.is_empty()).cloned().collect();
            return Some(format!(
                "there is no `sluice {first}`; the nearest is {}",
                nearest_of(first, &names)
            ));
        };
        let odd = words.iter().flat_map(|word| options_of(word)).find(|option| !options.contains(*option));
        odd.map(|odd| format!("`sluice {name}` has no {odd}"))
    }
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')
}

/// The environment variable of a key: `SLUICE_LOG_LEVEL` of `sluice.log.level`.
fn variable_of(key: &str) -> Option<String> {
    let mut name = "SLUICE_".to_string();
    for letter in key.strip_prefix("sluice.")?.chars() {
        name.extend(letter.is_ascii_uppercase().then_some('_'));
        name.push(if letter == '.' { '_' } else { letter.to_ascii_uppercase() });
    }
    Some(name)
}

/// The long options of a text.
fn options_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let words = text.split(move |letter: char| !is_part(letter));
    words.filter(|word| word.len() > 2 && word.starts_with("--") && !word.ends_with('-'))
}

/// The commands of a line, each without the `sluice` that it begins with: at the beginning of the line or of a code
/// span, or after `-- `, a pipe, a colon or `<(`.
fn said(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let line = line.trim_start().trim_start_matches("$ ");
    let starts = ["`", "-- ", "| ", ": ", "<(", "kubectl "];
    let mut rest = line;
    let mut at_start = true;
    while let Some(at) = rest.find("sluice ") {
        let before = &rest[..at];
        let is_one = (at_start && before.is_empty()) || starts.iter().any(|start| before.ends_with(start));
        let after = &rest[at + "sluice ".len()..];
        if is_one {
            let end = after.find(['`', '|', '>', '#', ';', '&', ')']).unwrap_or(after.len());
            found.push(after[..end].trim());
        }
        at_start = false;
        rest = after;
    }
    found
}

fn nearest_of(word: &str, known: &BTreeSet<String>) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if known.is_empty() { "unknown".to_string() } else { nearest::of(word, &known).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLI_PAGE: &str = "# C\n\n## sluice\n\n```text\n--log <F>\n--help\n```\n\n## sluice plan\n\n```text\nUsage: sluice plan\n  -o, \
        --output <OUTPUT>  How\n```\n\n## sluice bench\n\n## sluice bench calls\n\n```text\n  --count <N>\n      [env: SLUICE_ADDRESS]\n```\n";

    /// What is wrong with a page, or with a source file of the program.
    fn found_in(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (path, text),
            (CLI, CLI_PAGE),
            (CONFIGURATION, "| key | v |\n|---|---|\n| `sluice.retry.burstPark` | number |\n"),
            (METRICS, "| metric | t |\n|---|---|\n| `sluice_leader` | gauge |\n"),
            ("docs/reference/errors/SGW0001.md", "# SGW0001\n"),
            ("crates/arm-wire/src/lib.rs", ""),
            ("crates/controller/src/admin/api.rs", "  .route(\"/api/v1/egresses/{name}/explain\", get(x))\n"),
        ]);
        [check(&tree), check_literals(&tree)].concat()
    }

    fn found(text: &str) -> Vec<String> {
        found_in("docs/a.md", text)
    }

    /// What is wrong with a message.
    fn found_in_message(message: &str) -> String {
        let source = format!(
            "// `sluice plam`\nconst A: &str = \"\\\n    {message}\";\n#[cfg(test)]\nconst B: &str = \"SGW0009\";\n"
        );
        let found = found_in("crates/a/src/lib.rs", &source).join("\n");
        assert_eq!(found_in(OLD_KEYS, &source), [""; 0]);
        found
    }

    #[test]
    fn what_there_is_may_be_named() {
        let text = "`sluice.retry.burstPark` of `sluice.retry`, sluice_leader, `sluice_leader_count`, SGW0001, sluice_arm_wire,\n\
            deploy/sluice.yaml and sluice.dev/cleanup. `sluice plan --output json`; `sluice --help`, `sluice …`.\n\
            sluice bench calls --count 3 | tail --lines=1\n\
            kubectl exec deploy/sluice -- sluice plan --output json > x\n\
            GET `/api/v1/egresses/my-blue/explain?x=y`, `/api/v1/…`.\n";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn what_there_is_not_is_named_with_its_line_and_the_nearest() {
        let one = |text: &str| found(text).join("\n");
        assert!(
            one("x\n`sluice.retry.burstParc`")
                .starts_with("docs/a.md:2: there is no key sluice.retry.burstParc; the nearest")
        );
        assert!(one("`sluice_leaders`").contains("the nearest is sluice_leader"));
        assert!(one("`/api/v1/egresses/x`").contains("nothing answers at /api/v1/egresses/x"));
        assert!(one("SGW0009").contains("no page about SGW0009"));
        assert!(one("run `sluice plam`").contains("no `sluice plam`; the nearest is plan"));
        assert!(one("$ sluice plan --json").contains("`sluice plan` has no --json"));
        assert!(one("```text\nkubectl sluice plan --json\n```").contains("has no --json"));
        assert!(
            one("x exec deploy/sluice -- sluice bench calls --all")
                .contains("`sluice bench calls` has no --all")
        );
    }

    #[test]
    fn a_message_may_name_what_exists() {
        for message in [
            "set sluice.retry.burstPark (SLUICE_RETRY_BURST_PARK), SLUICE_{name} or sluice_{name}; see SGW0001",
            "use --log, --output or SLUICE_ADDRESS, or run `sluice plan --output {format}`",
            "Examples:\\n  sluice plan --output json\\n  sluice bench calls --count 3",
            "run `sluice bench \\\n  calls --count 3`, source <(sluice bench calls)",
            "run `az role list --scope {scope}` or kubectl \\\n  -n x get lease --watch; GET /api/v1/pods",
        ] {
            assert_eq!(found_in_message(message), "", "{message}");
        }
    }

    #[test]
    fn an_invented_name_in_a_message_is_reported() {
        for (message, problem) in [
            ("set sluice.retry.burstParc", "there is no key sluice.retry.burstParc; the nearest is "),
            ("set SLUICE_RETRY_BURST", "no environment variable SLUICE_RETRY_BURST; the nearest is "),
            ("see sluice_leaders", "there is no metric sluice_leaders; the nearest is sluice_leader"),
            ("see SGW0009", "there is no page about SGW0009"),
            ("use --azure-ca FILE", "no command has --azure-ca; the nearest is "),
            ("run `az x --y` or `x --outputs`", "no command has --outputs; the nearest is --output"),
            ("run `sluice plam`", "there is no `sluice plam`; the nearest is plan"),
            ("Run `sluice plan-x` again", "there is no `sluice plan-x`; the nearest is plan"),
            ("Example: sluice plan --count 3", "`sluice plan` has no --count"),
            ("Examples:\\n  sluice bench calls --output x", "`sluice bench calls` has no --output"),
        ] {
            let found = found_in_message(message);
            assert!(
                found.contains(problem) && found.starts_with("crates/a/src/lib.rs:"),
                "{message}: {found}"
            );
        }
        let source = "const A: &str = \"a\\n \\\n  SGW0001 \\\n  SGW0001\n SGW0009\";\n";
        assert_eq!(
            found_in("crates/a/src/lib.rs", source),
            ["crates/a/src/lib.rs:4: there is no page about SGW0009"]
        );
        assert_eq!(found_in("crates/sim/src/lib.rs", source), [""; 0]);
    }

    #[test]
    fn an_option_that_only_the_help_mentions_is_reported() {
        let page = format!("{CLI_PAGE}Like --mentioned\n");
        let found = check(&Tree::of(&[(CLI, &page)])).join("\n");
        assert!(found.contains("no command has --mentioned"), "{found}");
    }
}
