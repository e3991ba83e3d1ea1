//! What to ask the API server next, decided from what it said last; no clock, no wire.
//!
//! ```text
//!        ┌────────── 410, asked to, or a watch that is refused again and again ───────────┐
//!        ▼                                                                                │
//!    listing ── streamed: watch with initial events, until the bookmark that ends them ──▶ watching ◀─▶ probing
//!        └───── in pages, where the server does not stream lists ─────────────────────────▶  │  ▲
//!                                                                                            └──┘
//!                                                                     the watch ended: again from there
//! ```
//!
//! A list that breaks off is begun anew and never told in part. A watch that ends is begun again where it
//! stood, so that nothing is missed. Every failure is followed by a pause that doubles; every
//! success ends that.
//!
//! A watch without a sound may be a quiet cluster. It may also be an etcd that was restored from a backup: an API
//! server takes a watch from a version that it has not reached yet, and says nothing, not even bookmarks, until it
//! has. So the server is asked where it stands, and if that is before us, a list follows.
//!
//! Missing on purpose: objects. Whoever reads the streams keeps them, and drops what it gathered
//! whenever [`Ask::begins_list`].

use std::time::Duration;

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(800);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How many objects a page has.
const PAGE: u32 = 500;
/// Pages grow to this when lists take so long that their tokens expire.
const PAGE_MAX: u32 = 8_000;
/// A watch that is refused so often at the same place is replaced by a list, and a list whose next page is by
/// one from the beginning.
const REFUSALS_MAX: u32 = 5;
/// A streamed list that broke off so often is fetched in pages.
const BREAKS_MAX: u32 = 3;

/// One request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// A watch that begins with all there is.
    Stream,
    /// A page of a list; the first without a token.
    Page {
        /// What the page before said.
        token: Option<String>,
        /// How many objects.
        limit: u32,
    },
    /// Where the server stands: the version of a list, of which the objects are not wanted.
    Probe,
    /// What happened after this version.
    Watch {
        /// The version.
        from: u64,
    },
}

impl Ask {
    /// Whether nothing that was gathered before belongs to what comes now.
    pub(crate) fn begins_list(&self) -> bool {
        matches!(self, Ask::Stream | Ask::Page { token: None, .. })
    }
}

/// What the API server said, or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// A page; without a token it was the last.
    Page {
        /// The list's version.
        version: u64,
        /// Where the next page begins.
        next: Option<String>,
    },
    /// Where the server stands.
    Probed {
        /// The version.
        version: u64,
    },
    /// The list that was complete is older than what has been seen, and was not told.
    ListOlder,
    /// The bookmark that ends the list part of a stream.
    ListEnded {
        /// The list's version.
        version: u64,
    },
    /// A change or a bookmark.
    Moved {
        /// Its version.
        version: u64,
    },
    /// The stream ended as streams do; `brief` when it had hardly begun.
    Ended {
        /// It lasted less than a second or so.
        brief: bool,
    },
    /// Nothing at all came for minutes.
    Quiet,
    /// `410 Gone`: the version, or the token of a page, is too old.
    Expired,
    /// The server does not stream lists.
    Unsupported,
    /// Anything else.
    Failed {
        /// The trouble may lie in the version that we ask for.
        suspicious: bool,
        /// The server asks for a pause.
        retry_after: Option<Duration>,
    },
    /// The engine wants a list, and [`Cycle::patience`] is over.
    RelistAsked,
}

/// What follows from an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Read on in the same stream.
    GoOn,
    /// The list is complete. A stream is read on; after a page comes the next request.
    Complete {
        /// The list's version.
        version: u64,
    },
    /// Leave this request and send [`Cycle::ask`] after a pause.
    Ask {
        /// The pause, before jitter.
        after: Duration,
    },
}

/// Where we stand with one kind.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    at: At,
    streams: bool,
    limit: u32,
    /// Failures in a row.
    failures: u32,
    /// Lists that were begun because the one before led to nothing.
    unsettled: u32,
    /// Suspicious refusals of a watch, or of a page, in a row.
    refusals: u32,
    /// Streamed lists in a row that broke off.
    breaks: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum At {
    Listing,
    Paging { token: String, version: u64 },
    Watching { from: u64 },
    Probing { from: u64 },
}

impl Cycle {
    /// A cycle that knows nothing yet.
    pub(crate) fn new(streams: bool) -> Cycle {
        Cycle { at: At::Listing, streams, limit: PAGE, failures: 0, unsettled: 0, refusals: 0, breaks: 0 }
    }

    /// The next request.
    pub(crate) fn ask(&self) -> Ask {
        match &self.at {
            At::Listing if self.streams => Ask::Stream,
            At::Listing => Ask::Page { token: None, limit: self.limit },
            At::Paging { token, .. } => Ask::Page { token: Some(token.clone()), limit: self.limit },
            At::Watching { from } => Ask::Watch { from: *from },
            At::Probing { .. } => Ask::Probe,
        }
    }

    /// Lists come in pages from now on: another kind has learnt that this server does not stream them.
    pub(crate) fn page_lists(&mut self) {
        self.streams = false;
    }

    /// Whether a complete list has been read that we still stand on.
    pub(crate) fn is_watching(&self) -> bool {
        matches!(self.at, At::Watching { .. } | At::Probing { .. })
    }

    /// How long a watch goes on before a list in its place: none for the first, longer and longer as long as
    /// lists settle nothing.
    pub(crate) fn patience(&self) -> Duration {
        match self.unsettled {
            0 => Duration::ZERO,
            times => pause(times),
        }
    }

    /// What follows from an answer.
    pub(crate) fn heard(&mut self, answer: Answer) -> Turn {
        match answer {
            Answer::Page { version, next } => self.page(version, next),
            Answer::Probed { version } => self.probed(version),
            Answer::ListOlder => self.list_again(),
            Answer::ListEnded { version } if !self.is_watching() => self.complete(version),
            Answer::ListEnded { version } | Answer::Moved { version } => self.moved(version),
            Answer::Ended { brief } => self.ended(brief),
            Answer::Quiet => self.quiet(),
            Answer::Expired => self.expired(),
            Answer::Unsupported if self.ask() == Ask::Stream => {
                self.streams = false;
                Turn::Ask { after: Duration::ZERO }
            }
            Answer::Unsupported => self.failed(true, None),
            Answer::Failed { suspicious, retry_after } => self.failed(suspicious, retry_after),
            // A list that is under way will do; if it does not, the engine asks again.
            Answer::RelistAsked if self.is_watching() => {
                self.list_again();
                Turn::Ask { after: Duration::ZERO }
            }
            Answer::RelistAsked => Turn::GoOn,
        }
    }

    fn page(&mut self, version: u64, next: Option<String>) -> Turn {
        // All pages show the same moment. Should they not, the oldest one is safe to watch from.
        let version = match &self.at {
            At::Paging { version: first, .. } => version.min(*first),
            _ => version,
        };
        match next {
            None => self.complete(version),
            Some(token) => {
                self.at = At::Paging { token, version };
                self.refusals = 0;
                Turn::Ask { after: Duration::ZERO }
            }
        }
    }

    fn complete(&mut self, version: u64) -> Turn {
        self.at = At::Watching { from: version };
        self.limit = PAGE;
        self.failures = 0;
        self.refusals = 0;
        self.breaks = 0;
        Turn::Complete { version }
    }

    fn moved(&mut self, version: u64) -> Turn {
        if let At::Watching { from } = &mut self.at {
            *from = version.max(*from);
            self.failures = 0;
            self.refusals = 0;
        }
        Turn::GoOn
    }

    fn ended(&mut self, brief: bool) -> Turn {
        if !self.is_watching() {
            return self.broke_off(None);
        }
        if brief {
            return self.pause_after_failure(None);
        }
        self.settled();
        Turn::Ask { after: Duration::ZERO }
    }

    fn quiet(&mut self) -> Turn {
        if let At::Watching { from } | At::Probing { from } = self.at {
            self.settled();
            self.at = At::Probing { from };
        } else {
            // A server that knows the words but not their meaning never sends the bookmark.
            self.streams = false;
            self.at = At::Listing;
        }
        Turn::Ask { after: Duration::ZERO }
    }

    fn probed(&mut self, version: u64) -> Turn {
        match self.at {
            At::Probing { from } if version >= from => {
                self.at = At::Watching { from };
                Turn::Ask { after: Duration::ZERO }
            }
            At::Probing { .. } => self.list_again(),
            _ => Turn::GoOn,
        }
    }

    fn expired(&mut self) -> Turn {
        match self.at {
            At::Watching { .. } | At::Probing { .. } => self.list_again(),
            At::Paging { .. } => {
                self.limit = self.limit.saturating_mul(4).min(PAGE_MAX);
                self.at = At::Listing;
                self.pause_after_failure(None)
            }
            At::Listing => self.pause_after_failure(None),
        }
    }

    fn failed(&mut self, suspicious: bool, retry_after: Option<Duration>) -> Turn {
        match self.at {
            At::Watching { .. } if suspicious => {
                self.refusals += 1;
                if self.refusals >= REFUSALS_MAX {
                    return self.list_again();
                }
            }
            At::Listing if self.streams && suspicious => return self.broke_off(retry_after),
            // To watch is better than to know for certain.
            At::Probing { from } => self.at = At::Watching { from },
            At::Paging { .. } if suspicious => {
                self.refusals += 1;
                if self.refusals >= REFUSALS_MAX {
                    // Whoever gave us the token does not know it any more.
                    self.refusals = 0;
                    self.at = At::Listing;
                }
            }
            // The token of the next page is as good as before.
            At::Watching { .. } | At::Paging { .. } | At::Listing => {}
        }
        self.pause_after_failure(retry_after)
    }

    /// A streamed list that did not come to its end.
    fn broke_off(&mut self, retry_after: Option<Duration>) -> Turn {
        self.breaks += 1;
        if self.breaks >= BREAKS_MAX {
            self.streams = false;
        }
        self.pause_after_failure(retry_after)
    }

    /// A list in place of a watch that has come to nothing.
    fn list_again(&mut self) -> Turn {
        let after = self.patience();
        self.at = At::Listing;
        self.refusals = 0;
        self.unsettled = self.unsettled.saturating_add(1);
        Turn::Ask { after }
    }

    fn pause_after_failure(&mut self, retry_after: Option<Duration>) -> Turn {
        self.failures = self.failures.saturating_add(1);
        Turn::Ask { after: pause(self.failures).max(retry_after.unwrap_or_default()) }
    }

    /// A watch has lived as long as watches do.
    fn settled(&mut self) {
        self.failures = 0;
        self.unsettled = 0;
    }
}

/// The pause after so many failures.
fn pause(failures: u32) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1).min(16));
    PAUSE_MIN.saturating_mul(doubled).min(PAUSE_MAX)
}

/// The pause with a quarter more or less, so that a hundred clients do not come back as one.
pub(crate) fn jittered(pause: Duration, random: u64) -> Duration {
    pause.mul_f64(0.75 + (random % 1_000) as f64 / 2_000.0)
}

#[cfg(test)]
mod tests;
