//! The mass-deletion guard: which deletions it holds, and how an operator allows them.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::scene::{Look, Scene};
use crate::story::{Story, Variant};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "egresses-deleted-at-a-restart",
        "the pods of eight egresses are deleted, and the controller is restarted in the middle of their teardown",
        |scene| Box::pin(egresses_deleted_at_a_restart(scene)),
    )
    .only(&[Variant::Plain], "the restart is the story"),
    Story::new(
        "egresses-deleted-at-a-leader-change",
        "the pods of eight egresses are deleted, and the leader of two replicas ends at once",
        |scene| Box::pin(egresses_deleted_at_a_leader_change(scene)),
    )
    .with(|setting| setting.replicas = 2)
    .only(&[Variant::Plain], "the change of the leader is the story"),
    Story::new(
        "mass-deletion-allowed",
        "eight egresses lose their pods while nobody watches; `sluice allow-deletion` allows exactly those",
        |scene| Box::pin(mass_deletion_allowed(scene)),
    )
    .only(&[Variant::Plain], "the controller must be down at one moment and up at the others"),
];

/// More than the guard lets go at once.
const EGRESSES: usize = 8;

async fn eight_egresses(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.egress_pods("blue", 1, 1, &["a"]).await?;
    for number in 1..=EGRESSES {
        scene.egress_pods(&format!("team-{number}"), 1, 1, &["a", "b"]).await?;
    }
    scene.settled().await
}

async fn their_pods_go(scene: &Scene) -> Result<()> {
    for number in 1..=EGRESSES {
        scene.delete_pods(&format!("team-{number}"), 1, 1).await?;
    }
    Ok(())
}

/// No controller of the story has said that it holds a deletion.
fn nothing_was_held(scene: &Scene) -> Result<()> {
    ensure!(scene.times_logged("MassDeletionHeld") == 0, "a deletion was held that people asked for");
    Ok(())
}

async fn egresses_deleted_at_a_restart(scene: &Scene) -> Result<()> {
    eight_egresses(scene).await?;
    let mark = scene.mark_writes().await?;
    their_pods_go(scene).await?;
    scene
        .until("the teardown of the first egress is about to end", async || {
            let all = scene.requests_since(mark).await?;
            let names = (1..=EGRESSES).map(|number| format!("team-{number}"));
            let is_so =
                names.into_iter().any(|name| all.iter().any(|it| it.is_delete_of("natGateways", &name)));
            Ok(if is_so { Look::Yes(()) } else { Look::NotYet("no NAT gateway is deleted yet".to_string()) })
        })
        .await?;
    scene.tell("SIGTERM");
    scene.controller().stop().await?;
    scene.controller().start()?;
    scene.settled().await?;
    nothing_was_held(scene)
}

async fn egresses_deleted_at_a_leader_change(scene: &Scene) -> Result<()> {
    eight_egresses(scene).await?;
    let leader = scene.leader().await?;
    their_pods_go(scene).await?;
    scene.tell("SIGTERM for the leader");
    leader.stop().await?;
    scene.settled().await?;
    nothing_was_held(scene)?;
    leader.start()
}

async fn mass_deletion_allowed(scene: &Scene) -> Result<()> {
    eight_egresses(scene).await?;
    scene.controller().stop().await?;
    their_pods_go(scene).await?;
    let mark = scene.mark_writes().await?;
    scene.controller().start()?;
    scene.warned_somewhere(&["MassDeletionHeld", "egress/team-1", "sluice allow-deletion"]).await?;
    scene.plan_is_held("MassDeletionHeld", EGRESSES).await?;
    // Without consent it is only shown.
    let shown: Value = serde_json::from_str(&scene.allow_deletion(&["--output=json"]).await?)?;
    let held = shown["held"].as_array().context("no list of what is held")?;
    ensure!(held.len() == EGRESSES && shown["allowed"] == false, "it shows {shown:#}");
    scene.no_write_since(mark).await?;
    let said = scene.allow_deletion(&["--yes"]).await?;
    for number in 1..=EGRESSES {
        ensure!(said.contains(&format!("egress/team-{number} ")), "team-{number} is not in {said}");
    }
    scene.settled().await?;
    let said = scene.allow_deletion(&["--yes"]).await?;
    ensure!(said.contains("No deletion is held"), "something is held still: {said}");
    Ok(())
}
