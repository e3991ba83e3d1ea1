//! Emulated time: a clock that goes as fast as the emulator's, and waits that are turned into it.
//!
//! The emulator's latencies, buckets and windows go by its time factor, so the controller's clock
//! must too. `Retry-After` is always real seconds; whoever reads it on the fast clock has to turn
//! it into emulated ones. That happens here, around the sender, and nowhere else. What concerns the
//! real wire and the real lease stays real: [`stretched`] makes a limit that much longer on the fast
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluice_controller::{Azure, Clock, Config};
use sluice_model::Time;
use sluice_model::call::{Reply, Request};
use tokio::time::Instant;

/// A clock that goes some times as fast as the real one.
#[derive(Clone, Copy, Debug)]
pub struct FastClock {
    start: Instant,
    factor: f64,
}

impl FastClock {
    /// A clock that starts now.
    pub fn start(factor: f64) -> FastClock {
        FastClock { start: Instant::now(), factor }
    }
}

/// A span of real time as it is on a clock that goes so many times as fast.
pub fn stretched(real: Duration, factor: f64) -> Duration {
    real.mul_f64(factor)
}

/// The settings of a loop on such a clock: limits that concern the real wire are as much longer.
pub(crate) fn settings(mut settings: Config, factor: f64) -> Config {
    let limits = &mut settings.limits;
    for limit in
        [&mut settings.updaters.answer_limit, &mut limits.call, &mut limits.kube_call, &mut limits.grace]
    {
        *limit = stretched(*limit, factor);
    }
    settings
}

/// How many times as fast as real time.
pub fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=1000.0).contains(&factor) => Ok(factor),
        Ok(_) => Err("expected a factor from 1 to 1000".into()),
        Err(error) => Err(error.to_string()),
    }
}

impl Clock for FastClock {
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed().mul_f64(self.factor)
    }

    async fn sleep_until(&self, at: Time) {
        // Some years are enough, and more would overflow.
        let ms = at.as_millis().min(100_000_000_000);
        let real = Duration::from_millis(ms).div_f64(self.factor);
        tokio::time::sleep_until(self.start + real).await;
        // What was rounded away may be missing.
        while self.now() < at && at != Time::NEVER {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    }
}

/// A sender whose answers speak of emulated time.
#[derive(Debug)]
pub struct Paced<A> {
    azure: A,
    factor: f64,
    waited: Waited,
}

/// How long calls were on their way together, in real time.
#[derive(Clone, Debug, Default)]
pub struct Waited(Arc<AtomicU64>);

impl Waited {
    /// How long so far.
    pub fn so_far(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

impl<A: Azure> Paced<A> {
    /// A sender for a time that goes so many times as fast.
    pub fn new(azure: A, factor: f64) -> Paced<A> {
        Paced { azure, factor, waited: Waited::default() }
    }

    /// How long its calls are on their way.
    pub fn waited(&self) -> Waited {
        self.waited.clone()
    }
}

impl<A: Azure> Azure for Paced<A> {
    async fn send(&self, request: Request, may_begin: impl FnOnce() -> bool + Send) -> Reply {
        let began = Instant::now();
        let mut reply = self.azure.send(request, may_begin).await;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waited.0.fetch_add(micros, Ordering::Relaxed);
        if let Reply::Answered(answer) = &mut reply {
            answer.retry_after = answer.retry_after.map(|wait| stretched(wait, self.factor));
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::azure::ArmId;
    use sluice_model::call::{Answer, Method, Payload};

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_shows_and_awaits_emulated_time() {
        let clock = FastClock::start(20.0);
        let real = Instant::now();
        clock.sleep_until(Time::from_millis(10_000)).await;
        assert!(clock.now() >= Time::from_millis(10_000));
        assert!((499..=502).contains(&real.elapsed().as_millis()), "{:?}", real.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_after_of_real_seconds_is_longer_on_the_fast_clock() {
        struct Busy;
        impl Azure for Busy {
            async fn send(&self, _: Request, _: impl FnOnce() -> bool + Send) -> Reply {
                let retry_after = Some(Duration::from_secs(3));
                Reply::Answered(Answer { retry_after, ..Answer::new(429, Payload::None) })
            }
        }
        let reply = Paced::new(Busy, 20.0).send(Request::bare(Method::Get, ArmId::new("/")), || true).await;
        let Reply::Answered(answer) = reply else { panic!("{reply:?}") };
        assert_eq!(answer.retry_after, Some(Duration::from_secs(60)));
    }
}
