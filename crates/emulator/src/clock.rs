//! The emulated time: as fast as one likes, and never backwards.

use std::time::{Duration, Instant};

use sluice_model::Time;

use crate::request_log::Moment;

/// Real time since the start, times a factor, on top of what an earlier life had reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    base: Time,
    factor: f64,
}

impl Clock {
    /// Starts now, where an earlier life stopped.
    pub(crate) fn starting_at(base: Time, factor: f64) -> Clock {
        Clock { started: Instant::now(), base, factor }
    }

    /// The emulated time.
    pub(crate) fn now(&self) -> Time {
        self.at(self.started.elapsed().as_secs_f64())
    }

    /// This moment on both clocks.
    pub(crate) fn moment(&self) -> Moment {
        let elapsed = self.started.elapsed();
        let real_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        Moment { real_us, emulated_ms: self.at(elapsed.as_secs_f64()).as_millis() }
    }

    /// Lets so much emulated time pass at once.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.base = self.base + time;
    }

    /// How many emulated seconds a real one has.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    fn at(&self, real_seconds: f64) -> Time {
        // A float becomes a whole number by saturation, so no factor can turn the clock back.
        let elapsed_ms = (real_seconds * 1_000.0 * self.factor) as u64;
        Time::from_millis(self.base.as_millis().saturating_add(elapsed_ms).min(Time::NEVER.as_millis() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_time_goes_on_from_the_base_by_the_factor() {
        let clock = Clock::starting_at(Time::from_millis(500), 100.0);
        assert_eq!(clock.at(0.0), Time::from_millis(500));
        assert_eq!(clock.at(1.25), Time::from_millis(125_500));
        assert_eq!(clock.at(f64::MAX), Time::from_millis(u64::MAX - 1));
        let mut later = clock;
        later.skip(Duration::from_secs(9));
        assert_eq!(later.at(0.0), Time::from_millis(9_500));
    }
}
