//! What the engine would be told, in words in which the two sides can be compared.

use std::collections::BTreeMap;

use sluice_model::address::Family;
use sluice_model::kube::{ServiceSpec, SliceOwner};
use sluice_model::{Event, Uid};
use sluice_sim::cluster::stories::Story;

/// One event: what it is about, and how that is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Line {
    pub(crate) about: String,
    pub(crate) state: String,
}

/// What was heard in each step.
pub(crate) type Steps = Vec<Vec<Line>>;

/// Incarnations in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incarnations(BTreeMap<Uid, u128>);

impl Incarnations {
    /// Another one has been made.
    pub(crate) fn made(&mut self, uid: Uid) {
        let next = self.0.len() as u128 + 1;
        self.0.entry(uid).or_insert(next);
    }

    fn number(&self, uid: Uid) -> Uid {
        Uid::from_number(self.0.get(&uid).copied().unwrap_or(0))
    }
}

/// An event in words; `None` for lists, which begin a story and are empty.
pub(crate) fn line(event: Event, incarnations: &Incarnations) -> Option<Line> {
    let (about, state) = match event {
        Event::ServiceApplied(mut object) => {
            let uid = incarnations.number(object.uid);
            (object.uid, object.version) = (uid, 0);
            object.conditions.sort();
            if object.spec.families.is_empty() {
                object.spec.families = vec![Family::V4];
            }
            if !object.selected && !object.finalizer {
                // Of those that are not ours nothing else is kept.
                object.spec = ServiceSpec::default();
            }
            (format!("service {}", object.name), format!("{object:?}"))
        }
        Event::ServiceDeleted { uid, name } => {
            (format!("service {name}"), format!("gone, {:?}", incarnations.number(uid)))
        }
        Event::SliceApplied(mut slice) => {
            slice.version = 0;
            if let SliceOwner::Uid(uid) = slice.owner {
                slice.owner = SliceOwner::Uid(incarnations.number(uid));
            }
            (format!("slice {}", slice.name), format!("{slice:?}"))
        }
        Event::SliceDeleted(name) => (format!("slice {name}"), "gone".to_owned()),
        Event::NodeApplied(mut node) => {
            node.version = 0;
            (format!("node {}", node.name), format!("{node:?}"))
        }
        Event::NodeDeleted(name) => (format!("node {name}"), "gone".to_owned()),
        Event::PodApplied(mut pod) => {
            let uid = incarnations.number(pod.uid);
            (pod.uid, pod.version, pod.created) = (uid, 0, 0);
            (format!("pod {uid}"), format!("{pod:?}"))
        }
        Event::PodDeleted { uid } => (format!("pod {}", incarnations.number(uid)), "gone".to_owned()),
        _ => return None,
    };
    Some(Line { about, state })
}

/// Puts the lines of each step in an order in which they can be compared: kinds overtake each other, what
/// a kubelet does in several writes is one change, and what changes nothing that we keep of a pod is none.
pub(crate) fn settle(steps: Vec<Vec<Line>>) -> Steps {
    let mut pods: BTreeMap<String, String> = BTreeMap::new();
    let mut settled = Steps::new();
    for lines in steps {
        let mut by_object: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for line in lines {
            let is_pod = line.about.starts_with("pod ");
            if is_pod && pods.insert(line.about.clone(), line.state.clone()).as_ref() == Some(&line.state) {
                continue;
            }
            let of = by_object.entry(line.about.clone()).or_default();
            match of.last_mut() {
                Some(last) if is_pod && last.state != "gone" && line.state != "gone" => *last = line,
                _ => of.push(line),
            }
        }
        settled.push(by_object.into_values().flatten().collect());
    }
    settled
}

/// The first steps in which the two sides differ.
pub(crate) fn compare(story: &Story, model: &Steps, real: &Steps) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, (_, action)) in story.steps.iter().enumerate() {
        let (model, real) = (&model[at], &real[at]);
        if model != real {
            problems.push(format!("  step {}: {action}", at + 1));
            let only = |these: &[Line], those: &[Line], side: &str| {
                let lines = these.iter().filter(|line| !those.contains(line));
                lines
                    .map(|line| format!("    only {side}: {} {}", line.about, line.state))
                    .collect::<Vec<_>>()
            };
            let mut lines = only(model, real, "the model");
            lines.extend(only(real, model, "the API server"));
            if lines.is_empty() {
                lines.push("    the same lines in another order".to_owned());
            }
            problems.extend(lines);
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(about: &str, state: &str) -> Line {
        Line { about: about.into(), state: state.into() }
    }

    #[test]
    fn several_writes_of_a_kubelet_are_one_change_and_those_of_a_service_are_not() {
        let heard = vec![
            line("pod 1", "bare"),
            line("service a", "x"),
            line("pod 1", "placed"),
            line("service a", "y"),
        ];
        let settled = vec![line("pod 1", "placed"), line("service a", "x"), line("service a", "y")];
        assert_eq!(settle(vec![heard]), [settled]);
    }

    #[test]
    fn an_end_is_never_swallowed() {
        let heard = vec![line("pod 1", "there"), line("pod 1", "gone"), line("pod 1", "there")];
        assert_eq!(settle(vec![heard.clone()]), [heard]);
    }

    #[test]
    fn a_pod_of_which_nothing_changes_that_we_keep_is_not_heard_again() {
        let steps = vec![vec![line("pod 1", "there")], vec![line("pod 1", "there"), line("pod 1", "gone")]];
        assert_eq!(settle(steps), [vec![line("pod 1", "there")], vec![line("pod 1", "gone")]]);
    }
}
