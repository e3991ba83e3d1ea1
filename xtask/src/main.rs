//! The one task runner: `cargo xtask` alone lists what it can do.
//!
//! A task is a row of [`TASKS`]; the stages of `check` and `test` are rows of
//! [`stages::STAGES`]. Both tables are the documentation too, so a new row is all that a
//! new check needs. There is no shell script behind it, and so little to compile that it starts within seconds.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner speaks to a terminal")]

mod baselines;
mod book;
mod browser;
mod cache;
mod checks;
mod conformance;
mod e2e;
mod features;
mod first_minute;
mod guard;
mod honest;
mod kubectl;
mod kubectl_session;
mod markdown;
mod nearest;
mod outputs;
mod packages;
mod parts;
mod playground;
mod production;
mod programs;
mod purity;
mod runner;
mod seed;
mod session;
mod stage;
mod stages;
mod testenv;
mod tidy;
mod tour;
mod tree;

use std::process::ExitCode;

use stage::Tier;
use tree::Tree;

/// One task of the command line.
struct Task {
    name: &'static str,
    group: &'static str,
    does: &'static str,
    run: fn(&[String]) -> ExitCode,
}

const TASKS: &[Task] = &[
    Task {
        name: "check",
        group: "every day",
        does: "format, lints, tidy, unit tests of the product: run it before every commit",
        run: |_| stage::run_all(Tier::Check),
    },
    Task {
        name: "test",
        group: "every day",
        does: "everything that CI runs; --all adds what is too long for every commit",
        run: |words| stage::run_all(if words.is_empty() { Tier::Test } else { Tier::All }),
    },
    Task {
        name: "bless",
        group: "every day",
        does: "accept the new snapshots of all tests, which include generated pages; then read the diff",
        run: |_| bless(),
    },
    Task {
        name: "tidy",
        group: "one check alone",
        does: "files that nobody reaches, arrows that point outward, dead links, forgotten words",
        run: |_| report("tidy", tidy::run(&Tree::read_repository())),
    },
    Task {
        name: "conformance",
        group: "one check alone",
        does: "the official Azure clients against the emulator; all of them, or those that are named",
        run: conformance::task,
    },
    Task {
        name: "e2e",
        group: "one check alone",
        does: "stories against a real API server: all of them, those that are named, or --list; --help tells more",
        run: e2e::task,
    },
    Task {
        name: "baselines",
        group: "one check alone",
        does: "start the controller from recorded states of an earlier version (e2e/baselines)",
        run: |_| report("baselines", baselines::run(&Tree::read_repository())),
    },
    Task {
        name: "honest",
        group: "one check alone",
        does: "stories of the simulator on its model of Kubernetes and on a real API server",
        run: |_| honest::task(),
    },
    Task {
        name: "kubectl-session",
        group: "one check alone",
        does: "one kubectl session against a real API server and the playground's; `record` writes the transcript",
        run: kubectl_session::task,
    },
    Task {
        name: "purity",
        group: "one check alone",
        does: "the pure crates depend on nothing but no_std containers",
        run: |_| report("purity", purity::run(&Tree::read_repository())),
    },
    Task {
        name: "book",
        group: "one check alone",
        does: "the commands of docs/ that need no cluster, and whether they print what the pages show",
        run: |_| report("book", book::run(&Tree::read_repository())),
    },
    Task {
        name: "tour",
        group: "one check alone",
        does: "every command of docs/try/tour.md, and whether it prints what the page shows",
        run: |_| report("tour", tour::run(&Tree::read_repository())),
    },
    Task {
        name: "browser",
        group: "one check alone",
        does: "the dashboard in headless Chromium: what people can do with it, and 10,000 services",
        run: |_| report("browser", browser::task()),
    },
    Task {
        name: "stage",
        group: "one check alone",
        does: "run one stage of check or test by its name; without a name, list them with what they need",
        run: stage::task,
    },
    Task {
        name: "testenv",
        group: "by hand",
        does: "a real Kubernetes control plane: `build` it, `up` for you, `try` whether it works",
        run: testenv::task,
    },
    Task {
        name: "part",
        group: "by hand",
        does: "install one prerequisite of the stages; without a name, list all",
        run: stage::part_task,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        list();
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        list();
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        let names: Vec<&str> = TASKS.iter().map(|task| task.name).collect();
        eprintln!("there is no task {name:?}; did you mean `cargo xtask {}`?", nearest::of(name, &names));
        eprintln!("`cargo xtask` lists them all");
        return ExitCode::from(2);
    };
    let rest = &arguments[1..];
    let is_known = |word: &&String| match task.name {
        "kubectl-session" => kubectl_session::WORDS.contains(&word.as_str()),
        "testenv" => testenv::WORDS.contains(&word.as_str()),
        // Its program says what it does not take.
        "e2e" | "stage" | "part" => true,
        "test" => *word == "--all",
        "conformance" => conformance::CLIENTS.iter().any(|client| client.name == *word),
        _ => false,
    };
    if let Some(odd) = rest.iter().find(|word| !is_known(word)) {
        eprintln!("`cargo xtask {name}` does not take {odd:?}");
        return ExitCode::from(2);
    }
    (task.run)(rest)
}

fn list() {
    println!("cargo xtask TASK");
    let mut group = "";
    for task in TASKS {
        if task.group != group {
            group = task.group;
            println!("\n{group}:");
        }
        println!("  {:<16}{}", task.name, task.does);
    }
}

fn report(name: &str, outcome: Result<String, Vec<String>>) -> ExitCode {
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("{name}: {} to mend", count(problems.len(), "problem"));
            ExitCode::FAILURE
        }
    }
}

fn bless() -> ExitCode {
    let done = stage::cargo(&["test", "--workspace"], &[("UPDATE_EXPECT", "1")], |_| Ok(()));
    match done {
        Ok(_) => {
            println!("\nsnapshots are as the code has them now; read them before you commit: git diff");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{}", why.join("\n"));
            ExitCode::FAILURE
        }
    }
}

/// `1 problem`, `2 problems`.
fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_group_stand_together_and_have_one_line() {
        let mut seen = Vec::new();
        for task in TASKS {
            if seen.last() != Some(&task.group) {
                assert!(!seen.contains(&task.group), "{} is listed twice", task.group);
                seen.push(task.group);
            }
            assert!(!task.does.is_empty() && !task.does.contains('\n'), "{}", task.name);
        }
    }
}
