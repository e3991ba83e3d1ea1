//! Calls to Kubernetes that wait until fewer are in flight: values, one for each object and kind.
//!
//! A newer one replaces the one that waits and takes its place, so there are never more of them than objects and kinds,
//! however long the API server is away, and nobody loses its turn by being replaced.

use std::collections::{HashMap, VecDeque};

use sluice_model::effect::{About, Existence, KubeOutcome};
use sluice_model::reason::Reason;
use sluice_model::{Action, Effect, Event, Outcome, Uid};

/// Calls that wait, the oldest first.
#[derive(Default)]
pub(crate) struct Waiting {
    turns: VecDeque<Kind>,
    effects: HashMap<Kind, Effect>,
}

/// Two calls of one kind never wait at once.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    /// A write to an object. All of them are one kind, since the engine has at most one under way.
    Write(Uid),
    /// A question whether an object is there.
    Look(Uid),
    /// What people should know.
    Notice(About, Reason),
}

impl Kind {
    /// `None` for what is no call to Kubernetes.
    fn of(action: &Action) -> Option<Kind> {
        match action {
            Action::AddFinalizer(object)
            | Action::RemoveFinalizer(object)
            | Action::WriteStatus { object, .. } => Some(Kind::Write(object.uid)),
            Action::ConfirmGone(object) => Some(Kind::Look(object.uid)),
            Action::Notify(notice) => Some(Kind::Notice(notice.about.clone(), notice.reason)),
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
        let kind = Kind::of(&effect.action)?;
        let replaced = self.effects.insert(kind.clone(), effect);
        let Some(Effect { id, .. }) = replaced else {
            self.turns.push_back(kind);
            return None;
        };
        let outcome = match kind {
            Kind::Write(_) => Outcome::Kube(KubeOutcome::Unavailable),
            Kind::Look(_) => Outcome::Existence(Existence::Unclear),
            Kind::Notice(..) => return None,
        };
        Some(Event::EffectFinished { id, outcome })
    }

    /// The one that has waited longest.
    pub(crate) fn next(&mut self) -> Option<Effect> {
        let kind = self.turns.pop_front()?;
        self.effects.remove(&kind)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Drops all of them.
    pub(crate) fn clear(&mut self) {
        *self = Waiting::default();
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
    fn a_newer_notice_replaces_only_one_with_the_same_reason_about_the_same() {
        let mut waiting = Waiting::default();
        for (id, about, reason) in [
            (1, 1, Reason::Conflict),
            (2, 2, Reason::Conflict),
            (3, 1, Reason::Forbidden),
            (4, 1, Reason::Conflict),
        ] {
            assert_eq!(waiting.put(notice(id, about, reason, "text")), None);
        }
        assert_eq!(numbers(waiting), [4, 2, 3]);
    }

    #[test]
    fn there_are_never_more_than_objects_and_kinds() {
        let mut waiting = Waiting::default();
        for round in 0..20 {
            for number in 0..500 {
                waiting.put(notice(round, number, Reason::Conflict, &format!("round {round}")));
            }
        }
        assert_eq!(waiting.len(), 500);
    }
}
