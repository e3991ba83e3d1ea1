//! Ends a stage, or a command, together with everything that it started, whatever process group its children are in.
//!
//! A stage runs as a process of its own. Its environment has a mark that all its descendants inherit, so that
//! they are found even after their parent has ended. A command in a stage can have a mark of its own, which begins
//! with that of the stage: then it is found by both. The runner holds the other end of the stage's standard
//! input: when the runner is gone (Ctrl-C, `kill -9`), the stage sees the end of its input and ends everything.

use std::io::Read as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The variable that has the mark.
pub(crate) const MARK: &str = "SLUICE_STAGE_MARK";

/// The exit code of a stage that the runner has abandoned.
const ABANDONED: i32 = 130;

/// Ends this process and its descendants as soon as the standard input ends.
pub(crate) fn end_with_the_runner() {
    let Some(mark) = std::env::var_os(MARK) else { return };
    let mark = mark.to_string_lossy().into_owned();
    std::thread::spawn(move || {
        let mut nothing = [0; 1];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
        end_all(&mark, std::process::id());
        std::process::exit(ABANDONED);
    });
}

/// Runs a command to its end, and then ends what it left running. The name makes its mark unique in this process.
pub(crate) fn run_whole(command: &mut Command, name: &str) -> std::io::Result<ExitStatus> {
    let outer = std::env::var(MARK).unwrap_or_default();
    let mark = format!("{outer}/{}-{name}", std::process::id());
    let status = command.env(MARK, &mark).stdin(Stdio::null()).status();
    end_all(&mark, std::process::id());
    status
}

/// The CPU time of this process and of its descendants that have ended, where the system tells.
pub(crate) fn cpu_time() -> Option<Duration> {
    // Everything after the name, which is in brackets: user and system time, then those of the children.
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    // A tick is a hundredth of a second on every Linux.
    Some(Duration::from_millis(ticks * 10))
}

/// How often the processes that are to end are looked for, and how often in all.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_MAX: u32 = 70;
/// So many looks give processes time to clear up, as a control plane does; then they are killed.
const LOOKS_GENTLE: u32 = 50;
/// So many looks in a row that find nothing are enough, even if some process could not be judged.
const LOOKS_EMPTY: u32 = 5;

/// Ends every process that has the mark, except one.
pub(crate) fn end_all(mark: &str, except: u32) {
    // Each process is asked once: many take a second signal as an order to end without clearing up.
    let mut asked = Vec::new();
    let mut empty = 0;
    // A process may start another one between the look and the signal: repeat until a look finds none.
    for look in 0..LOOKS_MAX {
        let Marked { found, unclear } = marked(mark);
        let mut found: Vec<String> =
            found.into_iter().filter(|id| *id != except).map(|id| id.to_string()).collect();
        empty = if found.is_empty() { empty + 1 } else { 0 };
        if found.is_empty() && (!unclear || empty == LOOKS_EMPTY) {
            return;
        }
        let mut signal = "-KILL";
        if look < LOOKS_GENTLE {
            signal = "-TERM";
            found.retain(|id| !asked.contains(id));
            asked.extend_from_slice(&found);
        }
        // The shell's own `kill`: small images have no program of that name.
        let mut kill = Command::new("sh");
        kill.args(["-c", "kill \"$@\"", "sh", signal]).args(&found).stderr(Stdio::null());
        if !found.is_empty()
            && let Err(error) = kill.status()
        {
            eprintln!("cannot end the processes {found:?}: {error}");
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    eprintln!("these processes did not end: {:?}", marked(mark).found);
}

/// The processes whose environment has the mark.
#[derive(Default)]
struct Marked {
    found: Vec<u32>,
    /// Some process may have it: in the middle of starting another program, and of ending, it shows no environment.
    unclear: bool,
}

impl Marked {
    /// Whether a variable is this mark, or one that begins with it.
    fn has(variable: &[u8], mark: &str) -> bool {
        let rest = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        let rest = rest.and_then(|rest| rest.strip_prefix(mark.as_bytes()));
        matches!(rest, Some([] | [b'/', ..]))
    }
}

#[cfg(target_os = "linux")]
fn marked(mark: &str) -> Marked {
    let mut marked = Marked::default();
    let Ok(entries) = std::fs::read_dir("/proc") else { return marked };
    for id in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        // That of a process of another user cannot be read, and is not ours.
        let Ok(environment) = std::fs::read(format!("/proc/{id}/environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| Marked::has(variable, mark)) {
            marked.found.push(id);
        }
        marked.unclear |= environment.is_empty() && is_alive(id);
    }
    marked
}

/// Whether a process runs a program: it has not ended, and is no thread of the kernel.
#[cfg(target_os = "linux")]
fn is_alive(id: u32) -> bool {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let Ok(text) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let Some((_, fields)) = text.rsplit_once(')') else { return false };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let flags: u64 = fields.get(6).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    !matches!(fields.first(), Some(&("Z" | "X"))) && flags & KERNEL_THREAD == 0
}

#[cfg(not(target_os = "linux"))]
fn marked(mark: &str) -> Marked {
    let Ok(output) = Command::new("ps").args(["-axEww", "-o", "pid=,command="]).output() else {
        return Marked::default();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let has_mark = |line: &&str| line.split_whitespace().any(|word| Marked::has(word.as_bytes(), mark));
    let ids = text.lines().filter(has_mark).filter_map(|line| line.split_whitespace().next()?.parse().ok());
    Marked { found: ids.collect(), unclear: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_leaves_running_is_ended_and_the_rest_is_not() {
        let start = "sleep 1000 > /dev/null 2>&1 & echo $!";
        let mut other = Command::new("sleep").arg("1000").env(MARK, "another").spawn().unwrap();
        let mut command = Command::new("sh");
        let output = std::env::temp_dir().join(format!("xtask-guard-{}", std::process::id()));
        command.args(["-c", start]).stdout(std::fs::File::create(&output).unwrap());
        let status = run_whole(&mut command, "test").unwrap();
        let id = std::fs::read_to_string(&output).unwrap();
        std::fs::remove_file(&output).unwrap();
        let state = Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output().unwrap().stdout;
        let other_runs = other.try_wait().unwrap().is_none();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(status.success() && !id.trim().is_empty());
        assert!(matches!(state.first(), None | Some(b'Z')), "the process {id} still runs");
        assert!(other_runs, "a process with another mark was ended");
    }

    #[test]
    fn a_mark_is_found_by_its_own_name_and_by_the_beginning_that_a_stage_gave_it() {
        let variable = format!("{MARK}=7-1-99/8-client");
        let is_found = |mark: &str| Marked::has(variable.as_bytes(), mark);
        assert!(is_found("7-1-99") && is_found("7-1-99/8-client"));
        assert!(!is_found("7-1-9") && !is_found("7-1-99/8") && !is_found("7-1-99/8-client/x"));
        assert!(!Marked::has(b"OTHER=7-1-99", "7-1-99"));
    }
}
