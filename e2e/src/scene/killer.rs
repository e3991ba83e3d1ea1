//! Kills the controller at moments that the seed decides, and starts it again.
//!
//! Each [`Scene::meanwhile`] lets it loose for one or two kills: some right after a start, when nothing
//! is known yet; most while it leads and has work in flight, which goes on when the story already
//! waits for the end. Then it rests, since nothing can settle under a killer.
//!
//! A controller that was the only replica does not wait for the lease of the process that was killed: the Lease is
//! deleted, as an operator could do who knows that the process is dead. So these ways run with the default lease, which a
//! busy machine does not lose. The stories with two replicas wait for a lease to expire.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;

use super::Scene;
use super::stage::delete_leases;
use crate::controller::Controller;
use crate::narration::Narration;

/// One that is loose.
pub(crate) struct Killer {
    work: tokio::task::JoinHandle<Result<()>>,
}

/// One kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Blow {
    /// Not before the controller leads.
    leading: bool,
    /// So long after that, or after its start.
    after: Duration,
    /// So long it is dead.
    dead: Duration,
}

impl Scene {
    /// Lets the killer loose, unless it still is.
    pub(super) async fn unleash(&self) -> Result<()> {
        let mut killer = self.killer.lock().await;
        if killer.as_ref().is_some_and(|it| !it.work.is_finished()) {
            return Ok(());
        }
        if let Some(done) = killer.take() {
            done.work.await.context("the killer panicked")??;
        }
        let blows = self.blows();
        let (client, namespace) = (self.client.clone(), self.plane.account.namespace.clone());
        let (replicas, narration) = (self.replicas.clone(), Arc::clone(&self.narration));
        let work = tokio::spawn(async move {
            for (at, blow) in blows.into_iter().enumerate() {
                let victim = &replicas[at % replicas.len()];
                strike(blow, victim, &client, &namespace, &narration).await?;
                if replicas.len() == 1 {
                    delete_leases(&client, &namespace).await?;
                }
                tokio::time::sleep(blow.dead).await;
                victim.start()?;
            }
            Ok(())
        });
        *killer = Some(Killer { work });
        Ok(())
    }

    /// Kills the only replica, which may be started again at once.
    pub(crate) async fn kill_controller(&self) -> Result<()> {
        self.controller().kill().await?;
        delete_leases(&self.client, &self.plane.account.namespace).await
    }

    /// Waits until the killer has had enough; nothing settles before.
    pub(crate) async fn calm_down(&self) -> Result<()> {
        match self.killer.lock().await.take() {
            Some(killer) => killer.work.await.context("the killer panicked")?,
            None => Ok(()),
        }
    }

    fn blows(&self) -> Vec<Blow> {
        let mut seeded = self.seeded.lock().expect("nobody panics with the seed in hand");
        let number = 1 + seeded.below(2);
        let mut blow = || {
            let leading = seeded.below(4) > 0;
            // With a factor of 30 a load balancer is made within a third of a second.
            let after = Duration::from_millis(seeded.below(if leading { 1_200 } else { 300 }));
            Blow { leading, after, dead: Duration::from_millis(seeded.below(300)) }
        };
        (0..number).map(|_| blow()).collect()
    }
}

async fn strike(
    blow: Blow,
    victim: &Arc<Controller>,
    client: &Client,
    namespace: &str,
    narration: &Narration,
) -> Result<()> {
    // A standby never leads while its leader lives; it is killed all the same.
    for _ in 0..150 {
        let leads = victim.holds_the_lease(client, namespace).await.unwrap_or(false);
        if !blow.leading || leads || victim.crashed().is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(blow.after).await;
    narration.tell(format!("kill -9 of {}", victim.name));
    victim.kill().await
}
