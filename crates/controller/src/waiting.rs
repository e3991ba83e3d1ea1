//! Calls to Kubernetes that wait until fewer are in flight: values, one for each object and kind of call.
//!
//! A newer call replaces the one that waits and takes its place, so there are never more of them than objects and kinds,
//! however long the API server is away. Notices with different texts do not replace each other; beyond a limit the
//! oldest is dropped and counted.

use std::collections::{HashMap, VecDeque};

use sluice_model::effect::{About, Existence, KubeOutcome};
use sluice_model::reason::Reason;
use sluice_model::{Action, Effect, Event, Outcome, Uid};

/// Calls that wait, the oldest first.
#[derive(Default)]
pub(crate) struct Waiting {
    order: VecDeque<CallKey>,
    effects: HashMap<CallKey, Effect>,
    dropped: u64,
}

/// So many notices wait at most.
const NOTICES_MAX: usize = 20_000;

/// Two calls with the same key never wait at once.
#[derive(Clone, PartialEq, Eq, Hash)]
enum CallKey {
    /// A write to an object. All of them are one kind, since the engine has at most one under way.
    Write(Uid),
    /// A question whether an object is there.
    Look(Uid),
    /// What people should know.
    Notice(About, Reason, String),
}

impl CallKey {
    /// `None` for what is no call to Kubernetes.
    fn of(action: &Action) -> Option<CallKey> {
        match action {
            Action::AddFinalizer(object)
            | Action::RemoveFinalizer(object)
            | Action::WriteStatus { object, .. } => Some(CallKey::Write(object.uid)),
            Action::ConfirmGone(object) => Some(CallKey::Look(object.uid)),
            Action::Notify(notice) => {
                Some(CallKey::Notice(notice.about.clone(), notice.reason, notice.text.clone()))
            }
            Action::RunPlan(_)
            | Action::ResumePlan(_)
            | Action::SyncLocations(_)
            | Action::List(_)
            | Action::Relist(_) => None,
        }
    }
}

impl Waiting {
    /// Lets a call wait. The end of the one that it replaces is returned, if that has one: it was not made.
    pub(crate) fn put(&mut self, effect: Effect) -> Option<Event> {
        let key = CallKey::of(&effect.action)?;
        let replaced = self.effects.insert(key.clone(), effect);
        let Some(Effect { id, .. }) = replaced else {
            let is_notice = matches!(key, CallKey::Notice(..));
            self.order.push_back(key);
            if is_notice && self.order.len() > NOTICES_MAX && self.next().is_some() {
                self.dropped += 1;
            }
            return None;
        };
        let outcome = match key {
            CallKey::Write(_) => Outcome::Kube(KubeOutcome::Unavailable),
            CallKey::Look(_) => Outcome::Existence(Existence::Unclear),
            CallKey::Notice(..) => return None,
        };
        Some(Event::EffectFinished { id, outcome })
    }

    /// The one that has waited longest.
    pub(crate) fn next(&mut self) -> Option<Effect> {
        let key = self.order.pop_front()?;
        self.effects.remove(&key)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many notices were dropped, because too many waited.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Drops all of them.
    pub(crate) fn clear(&mut self) {
        *self = Waiting { dropped: self.dropped, ..Waiting::default() };
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::effect::{Cause, Notice};
    use sluice_model::kube::ObjectRef;
    use sluice_model::{EffectId, ObjectName};

    use super::*;

    fn object(number: u16) -> ObjectRef {
        let mut uid = [0; 16];
        uid[..2].copy_from_slice(&number.to_be_bytes());
        ObjectRef { uid: Uid(uid), name: ObjectName::new("shop", format!("web-{number}")) }
    }

    fn effect(id: u64, action: Action) -> Effect {
        Effect { id: EffectId(id), action, cause: Cause::Notice }
    }

    fn notice(id: u64, about: u16, reason: Reason, text: &str) -> Effect {
        let about = About::Service(object(about));
        effect(id, Action::Notify(Notice { about, warning: true, reason, text: text.into() }))
    }

    fn numbers(mut waiting: Waiting) -> Vec<u64> {
        std::iter::from_fn(|| waiting.next()).map(|effect| effect.id.0).collect()
    }

    #[test]
    fn a_newer_write_takes_the_place_of_the_one_that_waits_and_ends_it() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.put(effect(1, Action::AddFinalizer(object(1)))), None);
        assert_eq!(waiting.put(effect(2, Action::AddFinalizer(object(2)))), None);
        assert_eq!(waiting.put(effect(3, Action::ConfirmGone(object(1)))), None);
        let unavailable = Outcome::Kube(KubeOutcome::Unavailable);
        let ended = Event::EffectFinished { id: EffectId(1), outcome: unavailable };
        assert_eq!(waiting.put(effect(4, Action::RemoveFinalizer(object(1)))), Some(ended));
        let unclear = Outcome::Existence(Existence::Unclear);
        let ended = Event::EffectFinished { id: EffectId(3), outcome: unclear };
        assert_eq!(waiting.put(effect(5, Action::ConfirmGone(object(1)))), Some(ended));
        assert_eq!(numbers(waiting), [4, 2, 5]);
    }

    #[test]
    fn a_newer_notice_replaces_only_one_with_the_same_words_about_the_same() {
        let mut waiting = Waiting::default();
        for (id, about, reason, text) in [
            (1, 1, Reason::Conflict, "text"),
            (2, 2, Reason::Conflict, "text"),
            (3, 1, Reason::Forbidden, "text"),
            (4, 1, Reason::Conflict, "other text"),
            (5, 1, Reason::Conflict, "text"),
        ] {
            assert_eq!(waiting.put(notice(id, about, reason, text)), None);
        }
        assert_eq!(numbers(waiting), [5, 2, 3, 4]);
    }

    #[test]
    fn beyond_the_limit_the_oldest_notices_are_dropped_and_counted() {
        let mut waiting = Waiting::default();
        for round in 0..50 {
            for number in 0..500 {
                waiting.put(notice(round, number, Reason::Conflict, &format!("round {round}")));
            }
        }
        assert_eq!((waiting.len(), waiting.dropped()), (NOTICES_MAX, 25_000 - NOTICES_MAX as u64));
        assert_eq!(numbers(waiting).last(), Some(&49));
    }
}
