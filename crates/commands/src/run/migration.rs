//! Moving from the predecessor: its finalizer goes off pods, as soon as we lead.
//!
//! All pods are gone through once, and again while there is one for which another try may help. What is refused
//! for good (by a policy, or for want of a permission) is named and left until the next start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use sluice_controller::Standing;
use sluice_k8s::Trouble;
use sluice_k8s::migrate::{Left, Released, release_pods};
use sluice_view::overview::Role;
use tokio::sync::watch;

/// How long an API server that has trouble is left alone.
const RETRY: Duration = Duration::from_secs(30);
/// More names than these are counted.
const NAMED_MAX: usize = 20;

/// Whether a pass is under way, so that something of it may be on the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(Arc<AtomicBool>);

impl UnderWay {
    /// A pass has begun that has not come to its end. One that was cut off never does.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, is_under_way: bool) {
        self.0.store(is_under_way, Ordering::SeqCst);
    }
}

/// Waits until we lead, and releases all pods; comes back when that is done or cannot be.
pub(crate) async fn release(
    client: Client,
    standing: watch::Receiver<Standing>,
    may_begin: impl Fn() -> bool,
    under_way: UnderWay,
) {
    release_with(|| release_pods(&client, &may_begin), standing, under_way).await;
}

/// The same with another way to go through all pods.
pub(crate) async fn release_with<Pass: Future<Output = Result<Released, Trouble>>>(
    mut pass: impl FnMut() -> Pass,
    mut standing: watch::Receiver<Standing>,
    under_way: UnderWay,
) {
    if standing.wait_for(|it| it.role == Role::Leader).await.is_err() {
        return;
    }
    tracing::info!("migration: removing the predecessor's finalizer from pods");
    loop {
        under_way.set(true);
        let ended = pass().await;
        under_way.set(false);
        match ended {
            Ok(outcome) => {
                if !say(&outcome) {
                    return;
                }
            }
            Err(trouble) if trouble.is_passing() => {
                tracing::warn!(error = %trouble, "migration: cannot list pods; retrying");
            }
            Err(trouble) => {
                tracing::error!(error = %trouble, "migration: cannot list pods; restart Sluice to retry");
                return;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Says what came of a pass; whether another one may do more.
fn say(outcome: &Released) -> bool {
    let Released { seen, released, left } = outcome;
    if let Some(first) = left.iter().find(|left| left.is_passing) {
        let Left { pod, why, .. } = first;
        tracing::warn!(seen, released, left = left.len(), %pod, error = %why, "migration: pods left; retrying");
        return true;
    }
    tracing::info!(seen, released, left = left.len(), "migration: done");
    for Left { pod, why, .. } in left.iter().take(NAMED_MAX) {
        tracing::warn!(%pod, error = %why, "migration: finalizer not removed; restart Sluice to retry");
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use sluice_model::ObjectName;

    use super::*;

    fn left(is_passing: &[bool]) -> Result<Released, Trouble> {
        let pod = ObjectName::new("shop", "web");
        let left =
            is_passing.iter().map(|&is_passing| Left { pod: pod.clone(), why: "no".into(), is_passing });
        Ok(Released { seen: 9, released: 1, left: left.collect() })
    }

    fn busy() -> Result<Released, Trouble> {
        Err(Trouble::Unavailable("later".into()))
    }

    fn refused() -> Result<Released, Trouble> {
        Err(Trouble::Refused { code: 403, words: "no".into() })
    }

    /// How many passes were begun in so many seconds, whether one was under way then, and whether all was done.
    /// Beyond the script a pass has no end.
    async fn passes(
        ends: impl IntoIterator<Item = Result<Released, Trouble>>,
        seconds: u64,
    ) -> (usize, bool, bool) {
        let leads = watch::Sender::new(Standing { role: Role::Leader, leader: None });
        let under_way = UnderWay::default();
        let mut ends: VecDeque<_> = ends.into_iter().collect();
        let mut begun = 0;
        let pass = || {
            begun += 1;
            let end = ends.pop_front();
            async move {
                match end {
                    Some(end) => end,
                    None => std::future::pending().await,
                }
            }
        };
        let run = release_with(pass, leads.subscribe(), under_way.clone());
        let is_done = tokio::time::timeout(Duration::from_secs(seconds), run).await.is_ok();
        (begun, under_way.is_set(), is_done)
    }

    #[tokio::test(start_paused = true)]
    async fn pods_are_gone_through_again_while_another_try_may_help() {
        let ends = [busy(), left(&[false, true]), left(&[true]), left(&[false])];
        assert_eq!(passes(ends, 600).await, (4, false, true));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_for_good_is_left() {
        for end in [left(&[]), left(&[false]), refused()] {
            assert_eq!(passes([end], 600).await, (1, false, true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_under_way_until_its_end_even_if_it_is_cut_off() {
        assert_eq!(passes([busy()], 20).await, (1, false, false), "in the pause nothing is on the wire");
        assert_eq!(passes([busy()], 40).await, (2, true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stands_by_releases_nothing() {
        let standby = watch::Sender::new(Standing { role: Role::Standby, leader: None });
        let under_way = UnderWay::default();
        let pass = || -> std::future::Ready<_> { panic!("a standby has begun a pass") };
        let run = release_with(pass, standby.subscribe(), under_way.clone());
        assert!(tokio::time::timeout(Duration::from_secs(60), run).await.is_err());
        assert!(!under_way.is_set());
    }
}
