//! Keeps one token at hand, renews it early, and believes Azure when it refuses one.
//!
//! ```text
//!  fetched ───────────── used ──────────────▶ renewal due ──▶ no longer used ─▶ expired
//!     ▲                                          │ in the background, once at a time;
//!     └──────────────────────────────────────────┘ while it fails, the old one stays in use
//! ```
//!
//! At most one fetch runs, whoever asks. It runs in a task of its own, so a caller that gives
//! up does not take it from the others. How long a token is good for is reckoned once, when it
//! comes, and then by the monotonic clock; a clock that is wrong shows as a 401, and
//! [`Tokens::refused`] says what that means: the first token of a streak is merely old, the
//! next one is refused for good.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use crate::secret::Secret;
use crate::settings::Limits;
use crate::trouble::seconds;

/// Renewed this long before the end, or a fifth of its life before it, whichever is earlier.
const RENEWAL_LEAD: Duration = Duration::from_secs(5 * 60);
/// Not used in its last moments, lest it expire on the way.
const LAST_MOMENTS: Duration = Duration::from_secs(30);
/// How long a renewal that failed, or a refusal of a fresh token, waits for the next fetch.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);
/// What a token that seems to be over when it comes is used for: our clock is wrong, not the token.
const DOUBTFUL_LIFE: Duration = Duration::from_secs(60);

/// Where tokens come from.
pub(crate) trait Source: Send + Sync + 'static {
    /// Fetches one, past every cache. The error is for people.
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + '_>>;
}

/// A token, fresh from its source.
pub(crate) struct Fetched {
    pub(crate) token: Secret,
    /// `None` when the local clock says that it is over already.
    pub(crate) good_for: Option<Duration>,
}

/// A token as a header, and which one it is.
#[derive(Clone)]
pub(crate) struct Bearer {
    pub(crate) header: HeaderValue,
    pub(crate) number: u64,
}

/// What a refusal means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The token was old; the next call gets another.
    OldToken,
    /// A token fetched after an earlier refusal is refused too: it is not the token's age.
    ForGood,
}

/// The one token of a client.
pub(crate) struct Tokens {
    shared: Arc<Shared>,
}

struct Shared {
    source: Box<dyn Source>,
    limit: Duration,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    flight: Option<watch::Receiver<Option<Landing>>>,
    /// The last failure, and until when it speaks for all.
    failed: Option<(Instant, Arc<str>)>,
    /// No renewal in the background before this.
    no_renewal_before: Option<Instant>,
    /// How many tokens have come so far; numbers them.
    fetched: u64,
    /// The token whose refusal began a streak that no acceptance has ended.
    first_refused: Option<u64>,
}

struct Held {
    bearer: Bearer,
    since: Instant,
    renew_at: Instant,
    unused_from: Instant,
}

type Landing = Result<Bearer, Arc<str>>;

impl Tokens {
    pub(crate) fn new(source: impl Source, limits: &Limits) -> Tokens {
        let (limit, pause) = (limits.token, limits.token_pause);
        let state = Mutex::default();
        Tokens { shared: Arc::new(Shared { source: Box::new(source), limit, pause, state }) }
    }

    /// A token that is good now; fetches one if need be. The error is for people.
    pub(crate) async fn bearer(&self) -> Result<Bearer, Arc<str>> {
        let mut flight = {
            let mut state = self.shared.state();
            let now = Instant::now();
            if let Some(held) = state.held.as_ref().filter(|held| now < held.unused_from) {
                let bearer = held.bearer.clone();
                let paused = state.no_renewal_before.is_some_and(|until| now < until);
                if held.renew_at <= now && !paused && state.flight.is_none() {
                    self.shared.take_off(&mut state);
                }
                return Ok(bearer);
            }
            if let Some((_, why)) = state.failed.as_ref().filter(|(until, _)| now < *until) {
                return Err(why.clone());
            }
            match &state.flight {
                Some(flight) => flight.clone(),
                None => self.shared.take_off(&mut state),
            }
        };
        match flight.wait_for(Option::is_some).await {
            Ok(landing) => landing.clone().expect("waited until it is there"),
            Err(_) => Err("the fetch of a token ended without a word; this is a bug of Sluice".into()),
        }
    }

    /// Azure answered 401 to the token of this number.
    pub(crate) fn refused(&self, number: u64) -> Refusal {
        let mut state = self.shared.state();
        let is_held = state.held.as_ref().is_some_and(|held| held.bearer.number == number);
        match state.first_refused {
            Some(first) if number > first => {
                // A new one for every call would only annoy the issuer, so it is kept for a while.
                if is_held && state.held.as_ref().is_some_and(|held| held.since.elapsed() >= RENEWAL_PAUSE) {
                    state.held = None;
                }
                Refusal::ForGood
            }
            Some(_) => Refusal::OldToken,
            None => {
                state.first_refused = Some(number);
                if is_held {
                    state.held = None;
                }
                Refusal::OldToken
            }
        }
    }

    /// Azure itself has looked at the token of this number and had nothing against it.
    pub(crate) fn accepted(&self, number: u64) {
        let mut state = self.shared.state();
        if state.first_refused.is_some_and(|first| number > first) {
            state.first_refused = None;
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a fetch.
    fn take_off(self: &Arc<Shared>, state: &mut State) -> watch::Receiver<Option<Landing>> {
        let (report, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        let end = FlightEnd(self.clone());
        tokio::spawn(async move {
            let fetched = match timeout(end.0.limit, end.0.source.fetch()).await {
                Ok(fetched) => fetched,
                Err(_) => {
                    Err(format!("no token within {}: check the way to its issuer", seconds(end.0.limit)))
                }
            };
            let landing = end.0.land(fetched);
            drop(end);
            // Nobody listens to a renewal; whoever asks next finds the token.
            let _ = report.send(Some(landing));
        });
        flight
    }

    fn land(&self, fetched: Result<Fetched, String>) -> Landing {
        let mut state = self.state();
        let now = Instant::now();
        let header = fetched.and_then(|fetched| {
            let text = Zeroizing::new(format!("Bearer {}", fetched.token.reveal()));
            let mut header = HeaderValue::from_str(&text)
                .map_err(|_| "the token has characters that no token has: check who issues it".to_owned())?;
            header.set_sensitive(true);
            Ok((header, fetched.good_for))
        });
        match header {
            Ok((header, good_for)) => {
                if good_for.is_none() {
                    tracing::warn!("the new token is over by the clock of this machine: check the clock");
                }
                let good_for = good_for.unwrap_or(DOUBTFUL_LIFE);
                state.fetched += 1;
                let bearer = Bearer { header, number: state.fetched };
                let lead = RENEWAL_LEAD.max(good_for / 5).min(good_for / 2);
                state.held = Some(Held {
                    bearer: bearer.clone(),
                    since: now,
                    renew_at: now + (good_for - lead),
                    unused_from: now + (good_for - LAST_MOMENTS.min(good_for / 10)),
                });
                state.failed = None;
                state.no_renewal_before = None;
                tracing::debug!(good_for_s = good_for.as_secs(), "a token has come");
                Ok(bearer)
            }
            Err(why) => {
                let left = state.held.as_ref().map(|held| held.unused_from.saturating_duration_since(now));
                match left.filter(|left| !left.is_zero()) {
                    Some(left) => {
                        let left_s = left.as_secs();
                        tracing::warn!(left_s, "the token could not be renewed and stays in use: {why}");
                        state.no_renewal_before = Some(now + RENEWAL_PAUSE);
                    }
                    None => tracing::warn!("there is no token: {why}"),
                }
                let why: Arc<str> = why.into();
                state.failed = Some((now + self.pause, why.clone()));
                Err(why)
            }
        }
    }
}

/// Clears the flight when its task ends, by a panic of the source too.
struct FlightEnd(Arc<Shared>);

impl Drop for FlightEnd {
    fn drop(&mut self) {
        self.0.state().flight = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{advance, sleep};

    #[derive(Clone)]
    enum Step {
        /// A token that is good for so many seconds; 0 is over when it comes.
        Token(u64),
        Fail,
        Hang,
        Panic,
    }

    /// Takes a second for every fetch. The last step repeats.
    struct Script {
        steps: Mutex<VecDeque<Step>>,
        fetches: Arc<AtomicUsize>,
    }

    impl Source for Script {
        fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + '_>> {
            Box::pin(async {
                let number = self.fetches.fetch_add(1, Ordering::SeqCst) + 1;
                let step = {
                    let mut steps = self.steps.lock().unwrap();
                    if steps.len() > 1 { steps.pop_front().unwrap() } else { steps[0].clone() }
                };
                sleep(Duration::from_secs(1)).await;
                match step {
                    Step::Token(life) => Ok(Fetched {
                        token: Secret::new(format!("t{number}")),
                        good_for: Some(Duration::from_secs(life)).filter(|life| !life.is_zero()),
                    }),
                    Step::Fail => Err(format!("failure {number}")),
                    Step::Hang => std::future::pending().await,
                    Step::Panic => panic!("the source breaks"),
                }
            })
        }
    }

    struct World {
        tokens: Tokens,
        fetches: Arc<AtomicUsize>,
    }

    fn world(steps: impl IntoIterator<Item = Step>) -> World {
        let fetches = Arc::new(AtomicUsize::new(0));
        let steps = Mutex::new(steps.into_iter().collect());
        let tokens = Tokens::new(Script { steps, fetches: fetches.clone() }, &Limits::default());
        World { tokens, fetches }
    }

    impl World {
        /// The number of the token that one gets, or the text of the failure.
        async fn ask(&self) -> Result<u64, String> {
            self.tokens.bearer().await.map(|bearer| bearer.number).map_err(|why| why.to_string())
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::SeqCst)
        }
    }

    /// Lets time pass, in steps that let tasks run.
    async fn pass(seconds: u64) {
        sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_share_one_fetch() {
        let world = world([Step::Token(3600)]);
        let (one, two, three) = tokio::join!(world.ask(), world.ask(), world.ask());
        assert_eq!((one, two, three), (Ok(1), Ok(1), Ok(1)));
        assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_header_does_not_print_the_token() {
        let bearer = world([Step::Token(3600)]).tokens.bearer().await.unwrap();
        assert_eq!(
            (bearer.header.to_str().unwrap(), format!("{:?}", bearer.header)),
            ("Bearer t1", "Sensitive".into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_does_not_stop_the_fetch_for_the_others() {
        let world = world([Step::Token(3600)]);
        let gave_up = timeout(Duration::from_millis(500), world.ask()).await;
        assert!(gave_up.is_err());
        assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_in_the_background_when_a_fifth_of_its_life_is_left() {
        let world = world([Step::Token(3600)]);
        assert_eq!(world.ask().await, Ok(1));
        pass(3600 * 4 / 5 - 2).await;
        assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
        pass(3).await;
        // The old one is handed out at once; nobody waits for the new one.
        let before = Instant::now();
        assert_eq!((world.ask().await, before.elapsed()), (Ok(1), Duration::ZERO));
        pass(2).await;
        assert_eq!((world.ask().await, world.fetches()), (Ok(2), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_token_is_renewed_five_minutes_before_its_end_or_at_half_time() {
        for (life, renewal) in [(1000, 700), (60, 30)] {
            let world = world([Step::Token(life)]);
            assert_eq!(world.ask().await, Ok(1));
            pass(renewal - 1).await;
            assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1), "{life}");
            pass(2).await;
            let _ = world.ask().await;
            pass(2).await;
            assert_eq!((world.ask().await, world.fetches()), (Ok(2), 2), "{life}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_fails_leaves_the_old_token_in_use_and_is_tried_again_later() {
        let world = world([Step::Token(3600), Step::Fail, Step::Fail, Step::Token(3600)]);
        assert_eq!(world.ask().await, Ok(1));
        pass(3000).await;
        for fetches in [2, 3] {
            for _ in 0..5 {
                assert_eq!(world.ask().await, Ok(1));
                pass(2).await;
            }
            assert_eq!(world.fetches(), fetches);
            advance(RENEWAL_PAUSE).await;
        }
        assert_eq!(world.ask().await, Ok(1));
        pass(2).await;
        assert_eq!(world.ask().await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_token_is_not_handed_out() {
        let world = world([Step::Token(3600), Step::Fail]);
        assert_eq!(world.ask().await, Ok(1));
        pass(3600 - 29).await;
        assert_eq!(world.ask().await, Err("failure 2".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_speaks_for_all_who_ask_within_a_moment() {
        let world = world([Step::Fail, Step::Token(3600)]);
        let (one, two) = tokio::join!(world.ask(), world.ask());
        assert_eq!((one, two), (Err("failure 1".into()), Err("failure 1".into())));
        assert_eq!((world.ask().await, world.fetches()), (Err("failure 1".into()), 1));
        pass(1).await;
        assert_eq!(world.ask().await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_hangs_ends_at_the_limit_and_one_that_breaks_ends_at_once() {
        let hangs = world([Step::Hang, Step::Token(3600)]);
        let before = Instant::now();
        let why = hangs.ask().await.unwrap_err();
        assert!(why.contains("no token within 20 s"), "{why}");
        assert_eq!(before.elapsed(), Limits::default().token);
        pass(1).await;
        assert_eq!(hangs.ask().await, Ok(1));

        let breaks = world([Step::Panic, Step::Token(3600)]);
        assert!(breaks.ask().await.unwrap_err().contains("bug"));
        assert_eq!(breaks.ask().await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_seems_over_when_it_comes_is_used_all_the_same() {
        let world = world([Step::Token(0)]);
        assert_eq!((world.ask().await, world.ask().await, world.fetches()), (Ok(1), Ok(1), 1));
        pass(60).await;
        assert_eq!(world.ask().await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_refusal_drops_the_token_and_the_next_is_for_good() {
        let world = world([Step::Token(3600)]);
        assert_eq!(world.ask().await, Ok(1));
        assert_eq!(world.tokens.refused(1), Refusal::OldToken);
        assert_eq!(world.ask().await, Ok(2));
        // Calls that left with the old token do not count against the new one.
        assert_eq!(world.tokens.refused(1), Refusal::OldToken);
        assert_eq!(world.tokens.refused(2), Refusal::ForGood);
        assert_eq!(world.tokens.refused(2), Refusal::ForGood);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_refused_for_good_is_replaced_only_after_a_while() {
        let world = world([Step::Token(3600)]);
        assert_eq!(world.ask().await, Ok(1));
        world.tokens.refused(1);
        assert_eq!(world.ask().await, Ok(2));
        world.tokens.refused(2);
        assert_eq!(world.ask().await, Ok(2));
        advance(RENEWAL_PAUSE).await;
        assert_eq!(world.tokens.refused(2), Refusal::ForGood);
        assert_eq!(world.ask().await, Ok(3));
        assert_eq!(world.tokens.refused(3), Refusal::ForGood);
    }

    #[tokio::test(start_paused = true)]
    async fn an_acceptance_of_a_newer_token_ends_the_streak() {
        let world = world([Step::Token(3600)]);
        assert_eq!(world.ask().await, Ok(1));
        world.tokens.refused(1);
        world.tokens.accepted(1);
        assert_eq!(world.ask().await, Ok(2));
        assert_eq!(world.tokens.refused(2), Refusal::ForGood, "an old acceptance does not count");
        world.tokens.accepted(2);
        assert_eq!(world.tokens.refused(2), Refusal::OldToken);
        assert_eq!(world.ask().await, Ok(3));
    }
}
