//! `docs/cli.md`, made from what `--help` prints.

use clap::{Command, CommandFactory as _};

use super::Arguments;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");

const HEAD: &str = "# Command line

What `--help` prints of every command, in full. This page is made from the program; a test fails when they differ, and
`UPDATE_EXPECT=1 cargo test -p sluice --bin sluice reference` writes it anew.

Installed as `kubectl-sluice`, the same program is `kubectl sluice …`. `-h` prints a summary of the same.
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
        "docs/cli.md is behind the program; run `UPDATE_EXPECT=1 cargo test -p sluice --bin sluice reference`. \
         First difference: {differs:#?}"
    );
}

#[test]
fn nothing_of_one_machine_is_on_the_page() {
    let page = page();
    assert!(page.contains("## sluice run\n") && page.contains("## sluice bench calls\n"), "{page}");
    assert!(!page.contains("[env: RUST_LOG=") && page.contains("[env: RUST_LOG]"), "{page}");
}
