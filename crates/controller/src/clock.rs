//! The one clock of the process.
//!
//! It only goes forward, and everybody who needs the time is given this one. In tests tokio's
//! paused time stands behind it; whoever runs against a cloud whose time goes faster brings a
//! clock that goes as fast.

use std::time::Duration;

use sluice_model::Time;
use tokio::time::Instant;

/// Tells the time and waits for it.
pub trait Clock: Clone + Send + Sync + 'static {
    /// How late it is.
    fn now(&self) -> Time;

    /// Comes back at that moment or a little later; at once if it has passed.
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send;
}

/// The monotonic clock of the machine, from zero.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    start: Instant,
}

impl Monotonic {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Monotonic {
        Monotonic { start: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    async fn sleep_until(&self, at: Time) {
        match self.start.checked_add(Duration::from_millis(at.as_millis())) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_sleeps_until_a_moment_is_never_woken_before_it() {
        let clock = Monotonic::start();
        for ms in [0, 1, 7, 60_000] {
            clock.sleep_until(Time::from_millis(ms)).await;
            assert!(clock.now() >= Time::from_millis(ms));
        }
        assert!(clock.now() < Time::from_millis(60_010));
    }

    #[tokio::test(start_paused = true)]
    async fn never_is_not_soon() {
        let clock = Monotonic::start();
        let sleep = clock.sleep_until(Time::NEVER);
        let limit = clock.sleep_until(Time::from_millis(1_000_000_000));
        tokio::select! {
            () = sleep => panic!("never came"),
            () = limit => {}
        }
    }
}
