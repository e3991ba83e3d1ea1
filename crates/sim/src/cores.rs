//! Runs that do not depend on each other, on all cores.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// So many results may wait for an earlier one, for each core.
const WAITING_MAX: usize = 16;

/// Does the work for each item, on all cores, and gives the results to `each` in the order of the items.
///
/// When `each` breaks, no further item is begun.
pub(crate) fn in_order<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) -> R + Sync,
    mut each: impl FnMut(R) -> ControlFlow<()>,
) {
    let items = Mutex::new(items.into_iter().enumerate());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (done, results) = sync_channel(cores * WAITING_MAX);
    thread::scope(|scope| {
        for _ in 0..cores {
            let (items, work, done) = (&items, &work, done.clone());
            scope.spawn(move || {
                let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((at, item)) = next() {
                    if done.send((at, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (at, result) in results {
            early.insert(at, result);
            while let Some(result) = early.remove(&next) {
                next += 1;
                if each(result).is_break() {
                    return;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let mut seen = Vec::new();
        in_order(
            0_u64..200,
            |item| {
                // The first items take longest.
                let rounds = (200 - item) * 1_000;
                (item, (0..rounds).fold(item, |sum, round| sum.rotate_left(1) ^ round))
            },
            |(item, _)| {
                seen.push(item);
                ControlFlow::Continue(())
            },
        );
        assert_eq!(seen, (0..200).collect::<Vec<u64>>());
    }

    #[test]
    fn nothing_is_begun_after_a_break() {
        let mut seen = 0;
        in_order(
            0_u64..,
            |item| item,
            |item| {
                seen = item;
                if item == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(seen, 10);
    }
}
