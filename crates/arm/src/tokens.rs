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
/// How long a renewal that failed, a refusal of a fresh token, or a refusal of our credential waits
/// for the next fetch; longer if the issuer asks for it.
const RENEWAL_PAUSE: Duration = Duration::from_secs(30);
/// What a token that seems to be over when it comes is used for: our clock is wrong, not the token.
const DOUBTFUL_LIFE: Duration = Duration::from_secs(60);

/// Where tokens come from.
pub(crate) trait Source: Send + Sync + 'static {
    /// Fetches one, past every cache.
    fn fetch(&self) -> Fetching<'_>;
}

/// A fetch on its way.
pub(crate) type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, NoToken>> + Send + 'a>>;

/// Why no token came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NoToken {
    /// For people: who, what, and what to do.
    pub(crate) text: String,
    /// How long the issuer wants to be left alone.
    pub(crate) wait: Option<Duration>,
    /// The issuer has looked at our credential and refuses it.
    pub(crate) for_people: bool,
}

/// Trouble that may pass by itself.
impl From<String> for NoToken {
    fn from(text: String) -> NoToken {
        NoToken { text, wait: None, for_people: false }
    }
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
    failed: Option<(Instant, Arc<NoToken>)>,
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

type Landing = Result<Bearer, Arc<NoToken>>;

impl Tokens {
    pub(crate) fn new(source: impl Source, limits: &Limits) -> Tokens {
        let (limit, pause) = (limits.token, limits.token_pause);
        let state = Mutex::default();
        Tokens { shared: Arc::new(Shared { source: Box::new(source), limit, pause, state }) }
    }

    /// A token that is good now; fetches one if need be.
    pub(crate) async fn bearer(&self) -> Result<Bearer, Arc<NoToken>> {
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
            Err(_) => {
                let why =
                    "the token request ended without a result; this is a bug in Sluice, please report it"
                        .to_owned();
                Err(Arc::new(why.into()))
            }
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
                    let limit = seconds(end.0.limit);
                    Err(format!("no token within {limit}; check the network to the token issuer").into())
                }
            };
            let landing = end.0.land(fetched);
            drop(end);
            // Nobody listens to a renewal; whoever asks next finds the token.
            let _ = report.send(Some(landing));
        });
        flight
    }

    fn land(&self, fetched: Result<Fetched, NoToken>) -> Landing {
        let mut state = self.state();
        let now = Instant::now();
        let header = fetched.and_then(|fetched| {
            let text = Zeroizing::new(format!("Bearer {}", fetched.token.reveal()));
            let mut header = HeaderValue::from_str(&text)
                .map_err(|_| "the token contains invalid characters; check the token issuer".to_owned())
                .map_err(NoToken::from)?;
            header.set_sensitive(true);
            Ok((header, fetched.good_for))
        });
        match header {
            Ok((header, good_for)) => {
                if good_for.is_none() {
                    tracing::warn!("access token already expired by local clock; check NTP");
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
                tracing::debug!(good_for_s = good_for.as_secs(), "received an access token");
                Ok(bearer)
            }
            Err(why) => {
                // Who refuses our credential does not think better of it within a second.
                let least = if why.for_people { RENEWAL_PAUSE } else { self.pause };
                let pause = why.wait.unwrap_or_default().max(least);
                let left = state.held.as_ref().map(|held| held.unused_from.saturating_duration_since(now));
                match left.filter(|left| !left.is_zero()) {
                    Some(left) => {
                        let left_s = left.as_secs();
                        tracing::warn!(
                            left_s,
                            error = why.text.as_str(),
                            "token renewal failed; keeping the current token"
                        );
                        state.no_renewal_before = Some(now + pause.max(RENEWAL_PAUSE));
                    }
                    None => tracing::warn!(error = why.text.as_str(), "token request failed"),
                }
                let why = Arc::new(why);
                state.failed = Some((now + pause, why.clone()));
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
mod tests;
