//! The clock of one process: its own start, and a little too fast or too slow.

use sluice_model::Time;

/// How one process's monotonic clock follows from the world's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// What it showed when the world began.
    offset_ms: u64,
    /// How many of its milliseconds pass in a thousand of the world's.
    rate_permille: u64,
}

impl Clock {
    /// A clock that shows the world's time.
    pub const EXACT: Clock = Clock { offset_ms: 0, rate_permille: 1_000 };

    /// A clock that is off and goes wrong.
    pub const fn skewed(offset_ms: u64, rate_permille: u64) -> Clock {
        Clock { offset_ms, rate_permille }
    }

    /// What it shows.
    pub const fn local(self, world: Time) -> Time {
        Time::from_millis(self.offset_ms + world.as_millis() * self.rate_permille / 1_000)
    }

    /// The first moment of the world at which it shows that time or a later one.
    pub const fn world(self, local: Time) -> Time {
        if local.as_millis() == u64::MAX {
            return Time::NEVER;
        }
        let passed = local.as_millis().saturating_sub(self.offset_ms);
        Time::from_millis(passed.saturating_mul(1_000).div_ceil(self.rate_permille))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_the_world_is_never_too_early_for_the_process() {
        for clock in [Clock::EXACT, Clock::skewed(5_000, 990), Clock::skewed(123, 1_013)] {
            for ms in [0, 1, 7, 999, 1_000, 123_456] {
                let local = Time::from_millis(clock.local(Time::ZERO).as_millis() + ms);
                let world = clock.world(local);
                assert!(clock.local(world) >= local, "{clock:?} {ms}");
                if world > Time::ZERO {
                    let before = Time::from_millis(world.as_millis() - 1);
                    assert!(clock.local(before) < local, "{clock:?} {ms}");
                }
            }
        }
    }
}
