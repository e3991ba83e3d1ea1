//! A stage whose runner is gone ends itself and everything that it has started.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_stage_ends_with_its_children_when_the_runner_is_gone() {
    // Stands for a process that the stage has started: it has the same mark.
    let mark = format!("abandoned-{}", std::process::id());
    let mut child = Command::new("sh")
        .args(["-c", "echo started; exec sleep 1000"])
        .env("SLUICE_STAGE_MARK", &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut stage = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["stage", "--until-abandoned"])
        .env("SLUICE_STAGE_MARK", &mark)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The end of the runner, as the stage sees it.
    drop(stage.stdin.take());
    assert_eq!(stage.wait().unwrap().code(), Some(130));
    assert!(!child.wait().unwrap().success(), "the child was killed");
}
