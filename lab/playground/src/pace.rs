//! Emulated time: how much of it has passed, and how it is printed.
//!
//! At a factor of 10, 30 s of emulated time take 3 s. A story prints emulated time, which is also the time of the
//! emulator and of the controller.

use std::time::{Duration, Instant};

/// A clock that starts with the playground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    began: Instant,
    factor: f64,
}

impl Pace {
    /// Starts the clock now.
    pub(super) fn begin(factor: f64) -> Pace {
        Pace { began: Instant::now(), factor }
    }

    /// The emulated time since the start.
    pub(super) fn now(self) -> Duration {
        self.began.elapsed().mul_f64(self.factor)
    }

    /// The real duration of a span of emulated time.
    pub(super) fn real(self, emulated: Duration) -> Duration {
        emulated.div_f64(self.factor)
    }

    /// The emulated duration of a span of real time.
    pub(super) fn emulated(self, real: Duration) -> Duration {
        real.mul_f64(self.factor)
    }

    /// How to read the times of a story.
    pub(super) fn label(self) -> String {
        if self.is_real() {
            return "Times are real; the emulated clock is not accelerated.".to_owned();
        }
        format!("Times are emulated; {} s = 1 s real.", self.factor)
    }

    /// How to read real times in a story, to end a sentence; empty if both clocks run at the same speed.
    pub(super) fn real_label(self) -> String {
        if self.is_real() {
            String::new()
        } else {
            format!(", in real time (1 s = {} s emulated)", self.factor)
        }
    }

    fn is_real(self) -> bool {
        self.factor.to_bits() == 1.0_f64.to_bits()
    }
}

/// A time of a story: `0:07`, `12:30`.
pub(super) fn moment(at: Duration) -> String {
    format!("{}:{:02}", at.as_secs() / 60, at.as_secs() % 60)
}

/// A duration: `7 s`, `2 min 5 s`.
pub(super) fn span(of: Duration) -> String {
    let seconds = of.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "less than 1 s".to_owned(),
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_minutes_and_seconds() {
        assert_eq!(moment(Duration::from_millis(7_900)), "0:07");
        assert_eq!(moment(Duration::from_secs(750)), "12:30");
        assert_eq!(span(Duration::from_millis(200)), "less than 1 s");
        assert_eq!(span(Duration::from_millis(7_400)), "7 s");
        assert_eq!(span(Duration::from_secs(120)), "2 min");
        assert_eq!(span(Duration::from_secs(125)), "2 min 5 s");
    }

    #[test]
    fn the_first_line_says_how_fast_the_clock_runs() {
        assert_eq!(Pace::begin(10.0).label(), "Times are emulated; 10 s = 1 s real.");
        assert_eq!(Pace::begin(2.5).label(), "Times are emulated; 2.5 s = 1 s real.");
        assert!(Pace::begin(1.0).label().starts_with("Times are real"));
        assert_eq!(Pace::begin(10.0).emulated(Duration::from_secs(7)), Duration::from_secs(70));
    }
}
