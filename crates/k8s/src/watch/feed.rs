//! One kind's task: sends what the cycle asks for, reads what comes, and tells it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::value::RawValue;
use sluice_model::event::Event;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::cycle::{Answer, Ask, Cycle, Turn, jittered};
use super::epoch::{DOUBT_MIN, Epoch, Verdict};
use super::gathered::Gathered;
use super::kinds::{self, Context, Watched};
use super::trouble::Setback;
use super::wire::{Line, Lines, Page};
use super::{Closed, Facts, Shared, requests};

/// A watch that brings not even a bookmark for so long is begun again: bookmarks come every minute or so.
const QUIET_LIMIT: Duration = Duration::from_secs(180);
/// While a list is streamed, so much silence means that its end will not come.
const LIST_QUIET_LIMIT: Duration = Duration::from_secs(30);
/// A watch that ends sooner has hardly begun.
const BRIEF: Duration = Duration::from_secs(1);
/// Other tasks get their turn after so many lines.
const LINES_IN_A_ROW: usize = 256;

/// One kind's list and watch.
pub(crate) struct Feed<K: Watched, F> {
    shared: Arc<Shared>,
    facts: F,
    cycle: Cycle,
    epoch: Epoch,
    context: Context,
    gathered: Gathered<K>,
    /// A list was asked for and begins then; until then the watch goes on.
    list_at: Option<Instant>,
}

impl<K: Watched, F: Facts> Feed<K, F> {
    /// A feed that has told nothing yet.
    pub(crate) fn new(shared: Arc<Shared>, facts: F) -> Feed<K, F> {
        Feed {
            cycle: Cycle::new(shared.streams()),
            epoch: Epoch::default(),
            context: Context { selection: shared.selection.clone(), words: Default::default() },
            gathered: Gathered::default(),
            list_at: None,
            shared,
            facts,
        }
    }

    /// Lists, watches and lists again, until nobody listens any more.
    pub(crate) async fn run(mut self) -> Closed {
        loop {
            let ask = self.cycle.ask();
            if ask.begins_list() {
                // Held no longer than needed: a pause may follow, and the objects may be many.
                self.gathered = Gathered::default();
                if ask == Ask::Stream && !self.shared.streams() {
                    self.cycle.page_lists();
                    continue;
                }
            }
            debug!(kind = K::RESOURCE, ?ask, "sending request");
            let ended = match ask {
                Ask::Page { .. } => self.page(&ask).await,
                Ask::Probe => Ok(self.probe(&ask).await),
                Ask::Stream | Ask::Watch { .. } => self.stream(&ask).await,
            };
            match ended {
                Ok(pause) => self.wait(pause).await,
                Err(closed) => return closed,
            }
        }
    }

    /// Asks for one page; the pause before the next request.
    async fn page(&mut self, ask: &Ask) -> Result<Duration, Closed> {
        let bytes = match requests::page::<K>(&self.shared.client, ask).await {
            Ok(bytes) => bytes,
            Err(setback) => return Ok(self.set_back(setback)),
        };
        let page = match Page::read(&bytes) {
            Ok(page) => page,
            Err(garbled) => return Ok(self.set_back(Setback::garbled::<K>(ask, garbled))),
        };
        for item in &page.items {
            if let Some(object) = self.read(item) {
                self.note(&object, Some(item));
                self.gathered.add(object);
            }
        }
        match self.cycle.heard(Answer::Page { version: page.version, next: page.next }) {
            Turn::Complete { version } => Ok(self.list_complete(version).await?.unwrap_or_default()),
            Turn::Ask { after } => Ok(after),
            Turn::GoOn => Ok(Duration::ZERO),
        }
    }

    /// Asks where the server stands; the pause before the next request.
    async fn probe(&mut self, ask: &Ask) -> Duration {
        let bytes = match requests::page::<K>(&self.shared.client, ask).await {
            Ok(bytes) => bytes,
            Err(setback) => return self.set_back(setback),
        };
        match Page::read(&bytes) {
            Ok(page) => match self.cycle.heard(Answer::Probed { version: page.version }) {
                Turn::Ask { after } => after,
                Turn::GoOn | Turn::Complete { .. } => Duration::ZERO,
            },
            Err(garbled) => self.set_back(Setback::garbled::<K>(ask, garbled)),
        }
    }

    /// Opens a stream and reads it to its end; the pause before the next request.
    async fn stream(&mut self, ask: &Ask) -> Result<Duration, Closed> {
        let mut body = match requests::open::<K>(&self.shared.client, ask, random()).await {
            Ok(body) => body,
            Err(setback) => return Ok(self.set_back(setback)),
        };
        if self.cycle.is_watching() {
            self.no_trouble();
        }
        let begun = Instant::now();
        let mut lines = Lines::default();
        let mut in_a_row = 0usize;
        loop {
            let chunk = match self.next_chunk(ask, &mut body, begun).await {
                Ok(chunk) => chunk,
                Err(setback) => match self.heard(setback) {
                    Turn::Ask { after } => return Ok(after),
                    Turn::GoOn | Turn::Complete { .. } => continue,
                },
            };
            if let Err(garbled) = lines.push(&chunk) {
                return Ok(self.set_back(Setback::garbled::<K>(ask, garbled)));
            }
            while let Some(line) = lines.next() {
                let answer = match Line::read(line) {
                    Ok(line) => self.line(ask, &line).await?,
                    Err(garbled) => Err(Setback::garbled::<K>(ask, garbled)),
                };
                let turn = match answer {
                    Ok(None) => Turn::GoOn,
                    Ok(Some(answer)) => self.cycle.heard(answer),
                    Err(setback) => self.heard(setback),
                };
                match turn {
                    Turn::GoOn => {}
                    Turn::Complete { version } => {
                        if let Some(after) = self.list_complete(version).await? {
                            return Ok(after);
                        }
                    }
                    Turn::Ask { after } => return Ok(after),
                }
                in_a_row += 1;
                if in_a_row.is_multiple_of(LINES_IN_A_ROW) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// The next bytes of a stream, or why there are none.
    async fn next_chunk(&mut self, ask: &Ask, body: &mut Body, begun: Instant) -> Result<Bytes, Setback> {
        let is_watching = self.cycle.is_watching();
        let limit = if is_watching { QUIET_LIMIT } else { LIST_QUIET_LIMIT };
        let routine = |answer| Setback { answer, sentence: None, is_passing: true, is_denied: false };
        let frame = loop {
            let list_at = self.list_at;
            tokio::select! {
                // A busy watch must not keep the wish for a list waiting; the list has all that it would bring.
                biased;
                () = until(list_at), if is_watching => {
                    self.list_at = None;
                    return Err(routine(Answer::RelistAsked));
                }
                () = self.shared.relist_asked(K::KIND), if is_watching && list_at.is_none() => {
                    self.list_at = Some(Instant::now() + jittered(self.cycle.patience(), random()));
                }
                frame = tokio::time::timeout(limit, body.frame()) => break frame,
            }
        };
        match frame {
            Err(_) => Err(routine(Answer::Quiet)),
            Ok(None) => Err(routine(Answer::Ended { brief: begun.elapsed() < BRIEF })),
            Ok(Some(Err(error))) if is_watching => Err(Setback::unreachable::<K>(ask, &error)),
            // It could be reached; if its streamed lists break off again and again, pages are better.
            Ok(Some(Err(error))) => {
                let sentence = Setback::unreachable::<K>(ask, &error).sentence;
                Err(Setback {
                    answer: Answer::Ended { brief: true },
                    sentence,
                    is_passing: true,
                    is_denied: false,
                })
            }
            Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
        }
    }

    /// Takes in one line of a stream: into the list while there is one, else straight to whoever listens.
    async fn line(&mut self, ask: &Ask, line: &Line<'_>) -> Result<Result<Option<Answer>, Setback>, Closed> {
        let raw = match line {
            Line::Added(raw) | Line::Changed(raw) | Line::Gone(raw) => raw,
            Line::Bookmark { version, ends_list: true } => {
                return Ok(Ok(Some(Answer::ListEnded { version: *version })));
            }
            Line::Bookmark { version, ends_list: false } => {
                self.saw(*version);
                return Ok(Ok(Some(Answer::Moved { version: *version })));
            }
            Line::Error(status) => return Ok(Err(Setback::of_status::<K>(ask, status))),
            Line::Unknown => return Ok(Ok(None)),
        };
        let Some(mut object) = self.read(raw) else { return Ok(Ok(None)) };
        let version = K::version(&object);
        self.saw(version);
        self.note(&object, Some(*raw).filter(|_| !matches!(line, Line::Gone(_))));
        if self.cycle.is_watching() {
            self.count(line);
        }
        match (self.cycle.is_watching(), line) {
            (true, Line::Gone(_)) => self.facts.tell(K::deleted(object)).await?,
            (true, _) => {
                K::set_version(&mut object, self.epoch.told(version));
                self.facts.tell(K::applied(object)).await?;
            }
            (false, Line::Gone(_)) => self.gathered.remove(&object),
            (false, Line::Changed(_)) => self.gathered.change(object),
            (false, _) => self.gathered.add(object),
        }
        Ok(Ok(Some(Answer::Moved { version })))
    }

    /// How many objects there are after a line of a watch.
    fn count(&self, line: &Line<'_>) {
        match line {
            Line::Added(_) => self.shared.note(K::KIND, |kind| kind.objects += 1),
            Line::Gone(_) => self.shared.note(K::KIND, |kind| kind.objects = kind.objects.saturating_sub(1)),
            _ => {}
        }
    }

    /// An object in the engine's words; one that cannot be read is skipped and counted.
    fn read(&mut self, raw: &RawValue) -> Option<K::Object> {
        match kinds::read::<K>(raw, &mut self.context) {
            Ok(object) => Some(object),
            Err(why) => {
                self.shared.note(K::KIND, |kind| {
                    kind.skipped += 1;
                    if kind.last_skipped.as_ref() != Some(&why) {
                        warn!(kind = K::RESOURCE, error = why.as_str(), "object skipped");
                    }
                    kind.last_skipped = Some(why);
                });
                None
            }
        }
    }

    /// Keeps what a write to an object starts from; `None`: it is gone.
    fn note(&self, object: &K::Object, raw: Option<&RawValue>) {
        K::note(object, self.epoch.told(K::version(object)), raw, &self.shared.seen);
    }

    /// What a watch that stands on a list has shown; the versions in a list say nothing about its own.
    fn saw(&mut self, version: u64) {
        if self.cycle.is_watching() {
            self.epoch.saw(version);
        }
    }

    /// The list is complete, and is told if it can be believed; else the pause before the next one.
    async fn list_complete(&mut self, version: u64) -> Result<Option<Duration>, Closed> {
        let newest = self.epoch.newest();
        let doubt = match self.epoch.listed(Instant::now(), version) {
            Verdict::Current => {
                self.tell_list(version).await?;
                return Ok(None);
            }
            Verdict::Older => format!(
                "the API server lags, or etcd was restored from a backup; a restored state is accepted after {} min, \
                 or restart Sluice to accept it now",
                DOUBT_MIN.as_secs() / 60
            ),
            Verdict::Restored => match self.shared.doubt_about_cluster().await {
                None => {
                    self.shared.offsets.set(K::KIND, self.epoch.begin(version));
                    warn!(
                        kind = K::RESOURCE,
                        version, newest, "etcd was restored from a backup; accepting the older state"
                    );
                    self.tell_list(version).await?;
                    return Ok(None);
                }
                Some(why) => format!("{why}; restart Sluice to use this cluster"),
            },
        };
        let words = format!("the list of {} is stale: older than the last known state; {doubt}", K::RESOURCE);
        self.gathered = Gathered::default();
        let turn = self.heard(Setback::disbelieved(words));
        Ok(Some(if let Turn::Ask { after } = turn { after } else { Duration::ZERO }))
    }

    /// One event for all of the list.
    async fn tell_list(&mut self, version: u64) -> Result<(), Closed> {
        let mut objects = self.gathered.take();
        for object in &mut objects {
            let version = self.epoch.told(K::version(object));
            K::set_version(object, version);
        }
        K::note_all(&objects, &self.shared.seen);
        let version = self.epoch.told(version);
        let count = objects.len();
        // Who asked for a list before now gets this one.
        self.shared.forget_asked(K::KIND);
        self.list_at = None;
        self.facts.tell(Event::Relisted { version, objects: K::relist(objects) }).await?;
        info!(kind = K::RESOURCE, version, objects = count, "listed");
        self.shared.note(K::KIND, |kind| {
            kind.listed = true;
            kind.objects = count;
            kind.lists += 1;
            kind.trouble = None;
        });
        Ok(())
    }

    /// A request came to nothing; the pause before the next one.
    fn set_back(&mut self, setback: Setback) -> Duration {
        match self.heard(setback) {
            Turn::Ask { after } => after,
            Turn::GoOn | Turn::Complete { .. } => Duration::ZERO,
        }
    }

    fn heard(&mut self, setback: Setback) -> Turn {
        if setback.answer == Answer::Unsupported {
            info!(kind = K::RESOURCE, "streaming lists not supported by the API server; using paged lists");
            self.shared.page_lists();
        }
        if setback.sentence.is_some() && setback.answer != Answer::ListOlder {
            self.epoch.interrupted();
        }
        let was_watching = self.cycle.is_watching() && setback.answer != Answer::ListOlder;
        let turn = self.cycle.heard(setback.answer);
        self.shared.note(K::KIND, |kind| {
            kind.restarts += u64::from(was_watching && turn != Turn::GoOn);
            if let Some(sentence) = setback.sentence {
                if kind.trouble.as_ref() != Some(&sentence) {
                    warn!(kind = K::RESOURCE, error = sentence.as_str(), "list or watch failed; retrying");
                }
                kind.trouble = Some(sentence);
            }
        });
        turn
    }

    fn no_trouble(&self) {
        self.shared.note(K::KIND, |kind| kind.trouble = None);
    }

    /// Waits, unless a list is asked for meanwhile that is better than the watch we wait for.
    async fn wait(&mut self, pause: Duration) {
        if pause.is_zero() {
            return;
        }
        let until = Instant::now() + jittered(pause, random());
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.shared.relist_asked(K::KIND), if self.cycle.is_watching() => {
                self.cycle.heard(Answer::RelistAsked);
                // The pause is for the server's sake, whatever is asked of it next.
                tokio::time::sleep_until(until).await;
            }
        }
    }
}

/// Waits until then; for ever without a time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A number that is another one each time; jitter needs no more than that.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
