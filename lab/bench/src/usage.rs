//! How much of the machine a measurement used, to see that it did not measure itself.

use std::time::Duration;

/// Clock ticks in a second, as Linux counts CPU time for processes.
const TICKS_PER_SECOND: u64 = 100;

/// What a run cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Real time.
    pub real: Duration,
    /// CPU time of this process, where it can be known.
    pub own: Option<Duration>,
    /// CPU time of the emulator, likewise.
    pub emulator: Option<Duration>,
    /// Calls that were made.
    pub calls: u64,
    /// How long they were on their way together, in real time.
    pub in_calls: Duration,
}

impl Usage {
    /// How long a call was on its way on average, in real time.
    pub fn per_call(&self) -> Duration {
        self.in_calls / u32::try_from(self.calls).unwrap_or(u32::MAX).max(1)
    }
}

/// The CPU time that a process, or this one, has used so far; `None` where there is no `/proc`.
pub fn cpu_time(pid: Option<u32>) -> Option<Duration> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    in_stat(&text)
}

/// User and system time out of a line of `/proc/…/stat`.
fn in_stat(text: &str) -> Option<Duration> {
    // The name in brackets may have spaces in it; behind it are the state and then numbers.
    let (_, rest) = text.rsplit_once(')')?;
    let mut numbers = rest.split_whitespace().skip(11);
    let user: u64 = numbers.next()?.parse().ok()?;
    let system: u64 = numbers.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1_000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_brackets_and_spaces_in_its_name_is_read_too() {
        let line = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        assert_eq!(in_stat(line), Some(Duration::from_secs(2)));
        assert_eq!(in_stat("nonsense"), None);
    }
}
