//! What one process sees of the cluster: lists and watches turned into the engine's events.
//!
//! Each kind has a feed of its own. A feed lists first; the list's version is where its watch
//! begins. What the watch brings waits in a queue until its time has come, in order within the
//! kind, while the kinds overtake each other freely. A watch may drop, be too old, go blind for a
//! stretch or stutter; a list may be stale. When the engine refuses a list
//! (`Action::Relist`), [`Informer::relist`] throws away what stood on it and lists again.
//!
//! Once faults are calm, everything that is true has been told within [`Informer::SETTLES_WITHIN`].
//! An informer belongs to one process: after a crash there is a new one, which knows nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sluice_model::event::Event;
use sluice_model::kube::{Kind, ObjectRef};
use sluice_model::{ObjectName, Time, Uid};

use super::Cluster;
use super::convert::WatchEvent;
use super::faults::{KubeFault, KubeFaults};
use crate::rng::Rng;

/// The longest that one kind's events are held up.
const HOLD_UP_MAX_MS: u64 = 20_000;
/// A feed that has missed events lists again within this time.
const BLIND_MAX_MS: u64 = 60_000;
/// The longest pause before a list or a resumed watch.
const PAUSE_MAX_MS: u64 = 5_000;

/// The watch client of one process.
#[derive(Clone, Debug)]
pub struct Informer {
    feeds: [Feed; 4],
}

impl Informer {
    /// After faults have become calm, all is told within this time.
    pub const SETTLES_WITHIN: Duration =
        Duration::from_millis(HOLD_UP_MAX_MS + BLIND_MAX_MS + 2 * PAUSE_MAX_MS);

    /// The watch client of a process that starts now.
    pub fn new(now: Time, rng: &Rng) -> Informer {
        let feed = |kind, label| Feed::new(kind, now, rng.fork(label));
        Informer {
            feeds: [
                feed(Kind::Service, "services"),
                feed(Kind::Slice, "slices"),
                feed(Kind::Node, "nodes"),
                feed(Kind::Pod, "pods"),
            ],
        }
    }

    /// When [`Informer::poll`] should be called next; `None` as long as nothing changes.
    /// A poll at that time may well bring nothing.
    pub fn next_event_at(&self, now: Time, cluster: &Cluster, faults: &KubeFaults) -> Option<Time> {
        let due = self.feeds.iter().filter_map(|feed| feed.next_at(now, cluster)).min()?;
        Some(if faults.is_away(now) { due.max(faults.away_until()) } else { due.max(now) })
    }

    /// The next event that has arrived by now, if there is one. Call again until there is none.
    pub fn poll(&mut self, now: Time, cluster: &Cluster, faults: &mut KubeFaults) -> Option<Event> {
        if faults.is_away(now) {
            self.feeds.iter_mut().for_each(|feed| feed.cut_off = true);
            return None;
        }
        for feed in &mut self.feeds {
            feed.read(now, cluster, faults);
        }
        // One feed may be due without having anything to tell (a list that failed), so ask the next.
        let mut order: Vec<usize> = (0..self.feeds.len()).collect();
        order.sort_by_key(|at| self.feeds[*at].due_at());
        order.into_iter().find_map(|at| self.feeds[at].take(now, cluster, faults))
    }

    /// The engine has refused the last list of this kind: list again, and believe nothing meanwhile.
    pub fn relist(&mut self, now: Time, kind: Kind) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.kind == kind) {
            feed.list_soon(now);
        }
    }

    /// The next list of this kind comes at this moment.
    pub fn list_at(&mut self, at: Time, kind: Kind) {
        for feed in self.feeds.iter_mut().filter(|feed| feed.kind == kind) {
            feed.list_at = Some(at);
        }
    }

    /// The resourceVersion in which this incarnation of a Service was last told.
    pub fn last_seen(&self, object: &ObjectRef) -> Option<u64> {
        let feed = self.feeds.iter().find(|feed| feed.kind == Kind::Service)?;
        feed.told.get(&(object.name.clone(), object.uid)).copied()
    }
}

/// One kind's list and watch.
#[derive(Clone, Debug)]
struct Feed {
    kind: Kind,
    rng: Rng,
    /// When to list; `None` while a watch runs.
    list_at: Option<Time>,
    /// When a watch that has missed something notices and is replaced by a list.
    mend_at: Option<Time>,
    /// The version up to which the watch was read.
    cursor: u64,
    /// What was read and has not arrived yet, in order.
    queue: VecDeque<Due>,
    /// Nothing that is read from now on arrives before this.
    not_before: Time,
    /// How many events are still to be missed.
    blind_for: u64,
    /// The API server was away since the last read.
    cut_off: bool,
    /// The objects that were told, with their versions.
    told: BTreeMap<(ObjectName, Uid), u64>,
}

#[derive(Clone, Debug)]
struct Due {
    at: Time,
    watched: WatchEvent,
}

impl Feed {
    fn new(kind: Kind, now: Time, mut rng: Rng) -> Feed {
        let first = now + Duration::from_millis(rng.between(5, 200));
        Feed {
            kind,
            rng,
            list_at: Some(first),
            mend_at: None,
            cursor: 0,
            queue: VecDeque::new(),
            not_before: first,
            blind_for: 0,
            cut_off: false,
            told: BTreeMap::new(),
        }
    }

    /// When something is to be done here: a list, an event, or a look at the watch.
    fn next_at(&self, now: Time, cluster: &Cluster) -> Option<Time> {
        let unread =
            self.list_at.is_none() && cluster.last_change(self.kind).is_some_and(|v| v > self.cursor);
        let due = Some(self.due_at()).filter(|at| *at != Time::NEVER);
        due.into_iter().chain(unread.then_some(now)).chain(self.cut_off.then_some(now)).min()
    }

    /// When the next list or event is due.
    fn due_at(&self) -> Time {
        let arrives = self.queue.front().map(|due| due.at);
        [self.list_at, self.mend_at, arrives].into_iter().flatten().min().unwrap_or(Time::NEVER)
    }

    /// Throws away what was read and lists again after a short pause.
    fn list_soon(&mut self, now: Time) {
        self.queue.clear();
        self.blind_for = 0;
        self.mend_at = None;
        self.list_at = Some(now + self.pause());
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.between(20, PAUSE_MAX_MS))
    }

    /// Reads what the watch has brought and decides when it arrives.
    fn read(&mut self, now: Time, cluster: &Cluster, faults: &mut KubeFaults) {
        if std::mem::take(&mut self.cut_off) {
            self.watch_dropped(now, faults);
        }
        let unread = cluster.last_change(self.kind).is_some_and(|version| version > self.cursor);
        if self.list_at.is_some() || !unread {
            return;
        }
        let Ok(news) = cluster.watch(self.kind, self.cursor) else {
            faults.note(KubeFault::HistoryGone);
            self.list_soon(now);
            return;
        };
        for watched in news {
            if faults.strikes(KubeFault::WatchDrops, &mut self.rng) {
                self.watch_dropped(now, faults);
                return;
            }
            self.cursor = watched.version;
            if self.is_missed(now, faults) {
                continue;
            }
            self.enqueue(watched, faults);
        }
        // Changes that the selector hides move the watch on as well, by bookmarks.
        self.cursor = self.cursor.max(cluster.last_change(self.kind).unwrap_or(0));
    }

    /// The connection is gone. What was read stays read; the rest is resumed or listed.
    fn watch_dropped(&mut self, now: Time, faults: &mut KubeFaults) {
        if self.list_at.is_some() {
            return;
        }
        let gone = faults.strikes(KubeFault::HistoryGone, &mut self.rng);
        if gone || self.rng.chance(500) {
            self.list_soon(now);
        } else {
            self.not_before = self.not_before.max(now + self.pause());
        }
    }

    /// Whether the watch is blind to the next event.
    fn is_missed(&mut self, now: Time, faults: &mut KubeFaults) -> bool {
        if self.blind_for == 0 {
            if !faults.strikes(KubeFault::EventsLost, &mut self.rng) {
                return false;
            }
            self.blind_for = self.rng.between(1, 6);
            let mended = now + Duration::from_millis(self.rng.between(500, BLIND_MAX_MS));
            self.mend_at = Some(self.mend_at.map_or(mended, |at| at.min(mended)));
        }
        self.blind_for -= 1;
        true
    }

    fn enqueue(&mut self, watched: WatchEvent, faults: &mut KubeFaults) {
        let held_up = faults.strikes(KubeFault::KindsReordered, &mut self.rng);
        let longest_ms = if held_up { HOLD_UP_MAX_MS } else { 30 };
        let takes = Duration::from_millis(self.rng.between(1, longest_ms));
        let at = self.not_before.max(watched.at + takes);
        self.not_before = at;

        let same = |due: &Due| due.watched.name == watched.name && due.watched.uid == watched.uid;
        if self.queue.iter().any(same) && faults.strikes(KubeFault::Repeated, &mut self.rng) {
            // Several changes of one incarnation become the last of them.
            self.queue.retain(|due| !same(due));
        } else if faults.strikes(KubeFault::Repeated, &mut self.rng) {
            self.queue.push_back(Due { at, watched: watched.clone() });
        }
        self.queue.push_back(Due { at, watched });
    }

    /// What has arrived by now: a list or the next event.
    fn take(&mut self, now: Time, cluster: &Cluster, faults: &mut KubeFaults) -> Option<Event> {
        if self.mend_at.is_some_and(|at| at <= now) {
            self.list_soon(now);
        }
        match self.list_at {
            Some(at) if at <= now => return self.list(now, cluster, faults),
            Some(_) => return None,
            None => {}
        }
        let due = self.queue.pop_front_if(|due| due.at <= now)?;
        let key = (due.watched.name, due.watched.uid);
        if due.watched.present {
            self.told.insert(key, due.watched.version);
        } else {
            self.told.remove(&key);
        }
        Some(due.watched.event)
    }

    fn list(&mut self, now: Time, cluster: &Cluster, faults: &mut KubeFaults) -> Option<Event> {
        if faults.read_fails(now, &mut self.rng) {
            self.list_soon(now);
            return None;
        }
        let behind = self.rng.between(1, 12) as usize;
        // The fault counts only where there is a past to be served.
        let stale = cluster
            .stale_list(self.kind, behind)
            .filter(|_| faults.strikes(KubeFault::StaleList, &mut self.rng));
        let list = stale.unwrap_or_else(|| cluster.list(self.kind));
        let told = list.members.into_iter().map(|(name, uid, version)| ((name, uid), version)).collect();
        let before = std::mem::replace(&mut self.told, told);
        for _ in before.keys().filter(|key| !self.told.contains_key(*key)) {
            faults.note(KubeFault::SeenByAbsence);
        }
        self.list_at = None;
        self.cursor = list.version;
        self.not_before = self.not_before.max(now);
        Some(Event::Relisted { version: list.version, objects: list.objects })
    }
}
