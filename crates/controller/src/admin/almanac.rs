//! Wall time for people, from the loop's own clock.
//!
//! The engine's moments are milliseconds of a clock that only goes forward. One pair of such a
//! moment and the wall time that belonged to it, taken at the start, turns all others into wall
//! time. The machine's wall clock may be set meanwhile; ours does not jump with it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use sluice_model::Time;
use sluice_view::{Due, Since};

use crate::clock::Clock;

/// Knows which wall time belongs to which moment.
#[derive(Clone)]
pub struct Almanac {
    now: Arc<dyn Fn() -> Time + Send + Sync>,
    /// A moment of the loop's clock…
    anchor: Time,
    /// …and the wall time that belonged to it.
    wall: SystemTime,
    /// How many times faster than the wall the loop's clock goes.
    factor: f64,
}

impl std::fmt::Debug for Almanac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Almanac")
            .field("anchor", &self.anchor)
            .field("wall", &self.wall)
            .finish_non_exhaustive()
    }
}

impl Almanac {
    /// Of the loop's clock, at a moment when the wall clock says this.
    pub fn new(clock: impl Clock, wall: SystemTime) -> Almanac {
        let anchor = clock.now();
        Almanac { now: Arc::new(move || clock.now()), anchor, wall, factor: 1.0 }
    }

    /// Of a loop whose clock goes so many times faster than the wall's.
    pub fn faster(self, factor: f64) -> Almanac {
        let factor = if factor.is_finite() && factor > 0.0 { factor } else { 1.0 };
        Almanac { factor, ..self }
    }

    /// A page for one answer, so that everything in it is seen from one moment.
    pub(crate) fn today(&self) -> Today<'_> {
        Today { almanac: self, now: (self.now)() }
    }

    /// How late it is on the loop's clock.
    pub(crate) fn time(&self) -> Time {
        (self.now)()
    }

    /// When it was begun, in seconds since 1970.
    pub(crate) fn begun_seconds(&self) -> f64 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    fn stretched(&self, span: Duration) -> Duration {
        if self.factor == 1.0 { span } else { span.div_f64(self.factor) }
    }
}

/// How late it is, and what that says about other moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Today<'a> {
    almanac: &'a Almanac,
    now: Time,
}

impl Today<'_> {
    /// Wall time now, as RFC 3339.
    pub(crate) fn now(&self) -> String {
        self.written(self.now)
    }

    /// When the almanac was begun.
    pub(crate) fn begun(&self) -> Since {
        self.since(self.almanac.anchor)
    }

    /// A moment that has been.
    pub(crate) fn since(&self, at: Time) -> Since {
        let age_seconds = self.almanac.stretched(self.now.since(at)).as_secs();
        Since { at: self.written(at), age_seconds }
    }

    /// A moment that is to come; nothing if it never comes.
    pub(crate) fn due(&self, at: Time) -> Option<Due> {
        if at == Time::NEVER {
            return None;
        }
        // What is due within the next second is not due yet, so it is rounded up.
        let span = self.almanac.stretched(at.since(self.now));
        let in_seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
        Some(Due { at: self.written(at), in_seconds })
    }

    fn written(&self, at: Time) -> String {
        let Almanac { anchor, wall, .. } = self.almanac;
        let moment = match at >= *anchor {
            true => wall.checked_add(self.almanac.stretched(at.since(*anchor))),
            false => wall.checked_sub(self.almanac.stretched(anchor.since(at))),
        };
        let ms =
            moment.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_millis());
        let written =
            ms.and_then(|ms| i64::try_from(ms).ok()).and_then(|ms| Timestamp::from_millisecond(ms).ok());
        // A wall clock from before 1970 or after 9999 is shown as the beginning of time, not as a crash.
        written.unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Stopped(Time);

    impl Clock for Stopped {
        fn now(&self) -> Time {
            self.0
        }

        async fn sleep_until(&self, _: Time) {}
    }

    const NOON: Duration = Duration::from_secs(1_794_830_400);

    #[test]
    fn moments_before_and_after_the_anchor_are_shown_in_wall_time() {
        let almanac = Almanac::new(Stopped(Time::from_millis(60_000)), UNIX_EPOCH + NOON);
        let today = almanac.today();
        assert_eq!(today.now(), "2026-11-16T12:00:00Z");
        let since = today.since(Time::from_millis(500));
        assert_eq!((since.at.as_str(), since.age_seconds), ("2026-11-16T11:59:00.5Z", 59));
        let due = today.due(Time::from_millis(61_001)).unwrap();
        assert_eq!((due.at.as_str(), due.in_seconds), ("2026-11-16T12:00:01.001Z", 2));
        assert_eq!(today.due(Time::from_millis(60_000)).unwrap().in_seconds, 0);
        assert_eq!(today.due(Time::NEVER), None);
    }

    #[test]
    fn a_clock_that_goes_faster_is_shown_as_the_wall_saw_it() {
        let almanac = Almanac::new(Stopped(Time::from_millis(600_000)), UNIX_EPOCH + NOON).faster(60.0);
        let since = almanac.today().since(Time::ZERO);
        assert_eq!((since.at.as_str(), since.age_seconds), ("2026-11-16T11:59:50Z", 10));
    }

    #[test]
    fn a_wall_clock_that_makes_no_sense_is_no_reason_to_fall() {
        let almanac = Almanac::new(Stopped(Time::ZERO), UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(almanac.today().now(), "1970-01-01T00:00:00Z");
        assert_eq!(almanac.begun_seconds(), 0.0);
    }
}
