//! A moment on the one clock that the process has.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// Milliseconds since some start that everybody in the process shares.
///
/// Monotonic by intent; whoever is handed a time that went backwards keeps the newest it has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(u64);

impl Time {
    /// The start of the clock.
    pub const ZERO: Time = Time(0);
    /// A moment that never comes.
    pub const NEVER: Time = Time(u64::MAX);

    /// The moment `ms` milliseconds after the start.
    pub const fn from_millis(ms: u64) -> Time {
        Time(ms)
    }

    /// Milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(ms))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(ms))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 100)
    }
}
