//! The playground's time: how much of it has passed, and how people read it.
//!
//! Azure's thirty seconds are three real ones at a factor of ten, so a story tells the time that Azure and
//! the controller believe in, never that of the machine.

use std::time::{Duration, Instant};

/// A clock that began with the playground.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    began: Instant,
    factor: f64,
}

impl Pace {
    /// Begins now.
    pub(super) fn begin(factor: f64) -> Pace {
        Pace { began: Instant::now(), factor }
    }

    /// The time of Azure since the beginning.
    pub(super) fn now(self) -> Duration {
        self.began.elapsed().mul_f64(self.factor)
    }

    /// How long a span of Azure's time is for us.
    pub(super) fn real(self, emulated: Duration) -> Duration {
        emulated.div_f64(self.factor)
    }
}

/// A moment of a story: `0:07`, `12:30`.
pub(super) fn moment(at: Duration) -> String {
    format!("{}:{:02}", at.as_secs() / 60, at.as_secs() % 60)
}

/// A span in words: `7 s`, `2 min 5 s`.
pub(super) fn span(of: Duration) -> String {
    let seconds = of.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "less than a second".to_owned(),
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_people_read_them() {
        assert_eq!(moment(Duration::from_millis(7_900)), "0:07");
        assert_eq!(moment(Duration::from_secs(750)), "12:30");
        assert_eq!(span(Duration::from_millis(200)), "less than a second");
        assert_eq!(span(Duration::from_millis(7_400)), "7 s");
        assert_eq!(span(Duration::from_secs(120)), "2 min");
        assert_eq!(span(Duration::from_secs(125)), "2 min 5 s");
    }
}
