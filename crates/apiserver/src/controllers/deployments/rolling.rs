//! How many pods each ReplicaSet has next: when a Deployment is scaled, rolls, or recreates.

use std::sync::Arc;

use serde_json::Value;

use super::View;
use super::sets::{available, replicas, sized};
use crate::controllers::machine::Change;
use crate::controllers::object::{controller_of, uid};
use crate::value::{at, text};

/// A number or a share of the replicas; never more than replicas can be, however large the share is.
fn resolved(value: &Value, of: i64, rounds_up: bool) -> i64 {
    let most = i64::from(i32::MAX);
    if let Some(number) = value.as_i64() {
        return number.clamp(0, most);
    }
    let share: i64 = value.as_str().and_then(|it| it.strip_suffix('%')?.parse().ok()).unwrap_or(25);
    let hundredths = share.saturating_mul(of);
    let hundredths = if rounds_up { hundredths.saturating_add(99) } else { hundredths };
    (hundredths / 100).clamp(0, most)
}

/// How many more pods there may be than are wanted.
pub(super) fn max_surge(view: &View) -> i64 {
    if !view.is_rolling() {
        return 0;
    }
    resolved(at(&view.deployment, &["spec", "strategy", "rollingUpdate", "maxSurge"]), view.wanted(), true)
}

/// How many of the wanted pods may be unavailable.
pub(super) fn max_unavailable(view: &View) -> i64 {
    if !view.is_rolling() {
        return 0;
    }
    let value = at(&view.deployment, &["spec", "strategy", "rollingUpdate", "maxUnavailable"]);
    let number = resolved(value, view.wanted(), false);
    // Were both none, nothing could ever move.
    if number == 0 && max_surge(view) == 0 { 1 } else { number.min(view.wanted()) }
}

/// The size that the newest set may have, given the size that it has.
pub(super) fn size_of_newest(view: &View, now: i64) -> i64 {
    if !view.is_rolling() {
        return view.wanted();
    }
    if now >= view.wanted() {
        return view.wanted();
    }
    let there: i64 = view.sets.iter().map(|set| replicas(set)).sum();
    let room = view.wanted() + max_surge(view) - there;
    now + room.clamp(0, view.wanted() - now)
}

/// One step of a rolling update; `None` when there is none to take.
pub(super) fn roll(view: &View) -> Option<Vec<Change>> {
    let newest = view.newest()?;
    let step = sized(view, newest, size_of_newest(view, replicas(newest)));
    if !step.is_empty() {
        return Some(step);
    }
    let old: Vec<&Arc<Value>> = view.older().filter(|set| replicas(set) > 0).collect();
    if old.is_empty() {
        return None;
    }
    let all: i64 = view.sets.iter().map(|set| replicas(set)).sum();
    let least = view.wanted() - max_unavailable(view);
    let mut spare = all - least - (replicas(newest) - available(newest));
    if spare <= 0 {
        return None;
    }
    // Those that are not available are no loss, so they go first.
    let mut sizes: Vec<i64> = old.iter().map(|set| replicas(set)).collect();
    for (size, set) in sizes.iter_mut().zip(&old) {
        let gone = (*size - available(set)).clamp(0, spare);
        (*size, spare) = (*size - gone, spare - gone);
    }
    let mut spare = view.sets.iter().map(|set| available(set)).sum::<i64>() - least;
    for size in &mut sizes {
        let gone = (*size).min(spare.max(0));
        (*size, spare) = (*size - gone, spare - gone);
    }
    let steps: Vec<Change> = old.iter().zip(sizes).flat_map(|(set, size)| sized(view, set, size)).collect();
    (!steps.is_empty()).then_some(steps)
}

/// One step of an update that takes all old pods away first.
pub(super) fn recreate(view: &View) -> Option<Vec<Change>> {
    let steps: Vec<Change> =
        view.older().filter(|set| replicas(set) > 0).flat_map(|set| sized(view, set, 0)).collect();
    if !steps.is_empty() {
        return Some(steps);
    }
    if old_pods_are_there(view) {
        return None;
    }
    let step = sized(view, view.newest()?, view.wanted());
    (!step.is_empty()).then_some(step)
}

/// Whether pods of older templates still run.
pub(super) fn old_pods_are_there(view: &View) -> bool {
    let old: Vec<&str> = view.older().map(|set| uid(set)).collect();
    let is_over = |pod: &Value| matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    let is_old = |pod: &Value| controller_of(pod).is_some_and(|it| old.contains(&text(it, &["uid"])));
    view.pods.iter().any(|pod| is_old(pod) && !is_over(pod)) || view.older().any(|set| replicas(set) > 0)
}

/// Another number of replicas is shared out, in proportion to what each set has.
pub(super) fn scale(view: &View) -> Option<Vec<Change>> {
    let active: Vec<&Arc<Value>> = view.sets.iter().filter(|set| replicas(set) > 0).collect();
    let only = match active.as_slice() {
        [] => view.newest().or_else(|| view.sets.last()),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(only) = only {
        let step = sized(view, only, view.wanted());
        return (!step.is_empty()).then_some(step);
    }
    if active.is_empty() {
        return None;
    }
    let total: i64 = active.iter().map(|set| replicas(set)).sum();
    let allowed = if view.wanted() > 0 { view.wanted() + max_surge(view) } else { 0 };
    let mut left = allowed - total;
    // The largest first, so that what is left over by rounding goes to it.
    let mut order = active;
    order.sort_by_key(|set| std::cmp::Reverse(replicas(set)));
    let mut sizes: Vec<i64> = Vec::new();
    for set in &order {
        let share = (allowed - total) * replicas(set) / total;
        let share = if left >= 0 { share.clamp(0, left) } else { share.clamp(left, 0) };
        sizes.push((replicas(set) + share).max(0));
        left -= share;
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    let steps: Vec<Change> = order.iter().zip(sizes).flat_map(|(set, size)| sized(view, set, size)).collect();
    (!steps.is_empty()).then_some(steps)
}
