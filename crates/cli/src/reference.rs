//! `docs/reference/cli.md`, made from what `--help` prints.

use clap::{Command, CommandFactory as _};

use super::Arguments;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");

const HEAD: &str = "# Command line

This page has the output of `--help` for every command. `-h` prints a shorter form.

Installed under the name `kubectl-sluice`, the program is also a kubectl plugin: `kubectl sluice COMMAND`.

This page is generated; `UPDATE_EXPECT=1 cargo test -p sluice --bin sluice reference` updates it.
";

/// Of a terminal on which nobody has to scroll sideways.
const WIDTH: usize = 100;

fn page() -> String {
    let mut root = Arguments::command().term_width(WIDTH);
    root.build();
    let mut text = HEAD.to_string();
    describe(&mut text, &root, "sluice");
    text
}

fn describe(text: &mut String, command: &Command, path: &str) {
    // What the environment of whoever runs the test says is no part of the page.
    let mut shown = command.clone().bin_name(path).mut_args(|argument| argument.hide_env_values(true));
    let help = shown.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    text.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", lines.join("\n")));
    for below in command.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
        describe(text, below, &format!("{path} {}", below.get_name()));
    }
}

#[test]
fn the_page_shows_what_help_prints() {
    let shown = std::fs::read_to_string(PAGE).unwrap_or_default();
    let page = page();
    if shown == page {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    let differs = shown.lines().zip(page.lines()).find(|(one, two)| one != two);
    panic!(
        "docs/reference/cli.md is behind the program; run `UPDATE_EXPECT=1 cargo test -p sluice --bin sluice reference`. \
         First difference: {differs:#?}"
    );
}

/// The longest first line of a help text.
const HELP_MAX: usize = 72;

/// The first line of each help text of a command, its arguments and their values, with where it is.
fn first_lines(command: &Command, path: &str) -> Vec<(String, String)> {
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let about = command.get_about().map(|about| first(about.to_string()));
    let mut lines = vec![(path.to_owned(), about.unwrap_or_default())];
    for argument in command.get_arguments() {
        let at = format!("{path} {argument}");
        for value in argument.get_possible_values() {
            if let Some(help) = value.get_help() {
                lines.push((format!("{at} {}", value.get_name()), first(help.to_string())));
            }
        }
        let help = argument.get_help().map(|help| first(help.to_string()));
        lines.push((at, help.unwrap_or_default()));
    }
    for below in command.get_subcommands().filter(|it| it.get_name() != "help") {
        lines.extend(first_lines(below, &format!("{path} {}", below.get_name())));
    }
    lines
}

#[test]
fn the_first_line_of_every_help_text_is_short() {
    let mut root = Arguments::command();
    root.build();
    let lines = first_lines(&root, "sluice");
    assert!(lines.iter().any(|(at, _)| at == "sluice run --set <KEY=VALUE>"), "{lines:#?}");
    for (at, line) in lines {
        let is_short = !line.is_empty() && line.chars().count() <= HELP_MAX;
        assert!(is_short && !line.contains(';') && !line.ends_with('.'), "{at}: {line}");
    }
}

#[test]
fn nothing_of_one_machine_is_on_the_page() {
    let page = page();
    assert!(page.contains("## sluice run\n") && page.contains("## sluice bench calls\n"), "{page}");
    assert!(!page.contains("[env: RUST_LOG=") && page.contains("[env: RUST_LOG]"), "{page}");
}
