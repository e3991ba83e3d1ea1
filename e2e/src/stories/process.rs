//! The process and those it talks to: leaders that die or freeze, servers that go away, and faults.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::azure::{GROUP, SUBSCRIPTION};
use crate::process::Signal;
use crate::scene::{Look, Scene};
use crate::story::Story;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new("leader-killed", "of two replicas the one is killed, then the other", |scene| {
        Box::pin(leader_killed(scene))
    })
    .with(|setting| setting.replicas = 2),
    Story::new("leader-frozen", "a leader freezes for longer than its lease, and wakes up", |scene| {
        Box::pin(leader_frozen(scene))
    })
    .with(|setting| setting.replicas = 2),
    Story::new("api-server-restarted", "the API server is restarted, killed and frozen", |scene| {
        Box::pin(api_server_restarted(scene))
    }),
    Story::new("emulator-restarted", "Azure is away while things change, twice", |scene| {
        Box::pin(emulator_restarted(scene))
    }),
    Story::new("throttling", "Azure asks for pauses, and gets them", |scene| Box::pin(throttling(scene))),
    Story::new("server-errors", "bursts of 500 and 503, some of them after the work was done", |scene| {
        Box::pin(server_errors(scene))
    }),
    Story::new("forbidden-for-a-while", "our role is taken away and given back", |scene| {
        Box::pin(forbidden_for_a_while(scene))
    }),
];

/// A Service and an egress, served.
async fn served(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 2, &["a", "b"]).await?;
    scene.egress_pods("blue", 1, 1, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await
}

/// A bit of everything: what is made, changed and deleted while something is wrong.
async fn changes(scene: &Scene, round: usize) -> Result<()> {
    let fresh = format!("fresh-{round}");
    scene.service(&fresh).port(443, 8443).selecting("web").make().await?;
    scene.pods_from("web", 10 * round, 2, &["a", "b"]).await?;
    scene.egress_pods("blue", 10 * round, 1, &["b"]).await?;
    let port = 8000 + u16::try_from(round)?;
    scene.set_ports("web", &[crate::world::ports::tcp(port, port)]).await?;
    if round > 1 {
        scene.delete_service(&format!("fresh-{}", round - 1)).await?;
    }
    Ok(())
}

async fn leader_killed(scene: &Scene) -> Result<()> {
    served(scene).await?;
    for (round, replica) in scene.replicas.iter().enumerate() {
        scene
            .meanwhile(async {
                // Whichever of them leads: after two rounds both were killed, so one led.
                scene.tell(format!("kill -9 of {}", replica.name));
                replica.kill().await?;
                changes(scene, round + 1).await
            })
            .await?;
        scene.settled().await?;
        replica.start()?;
    }
    Ok(())
}

async fn leader_frozen(scene: &Scene) -> Result<()> {
    served(scene).await?;
    for (round, replica) in scene.replicas.iter().enumerate() {
        if !replica.is_up() {
            replica.start()?;
        }
        scene.calm_down().await?;
        scene.tell(format!("{} freezes", replica.name));
        replica.signal(Signal::Stop).await?;
        changes(scene, round + 1).await?;
        // The other one does all of it, whoever led before.
        scene.settled().await?;
        scene.tell(format!("{} goes on, and must not act on what it believes", replica.name));
        let mark = scene.mark_writes().await?;
        replica.signal(Signal::Continue).await?;
        let label = json!({"metadata": {"labels": {"round": round.to_string()}}});
        scene.meanwhile(scene.edit_service("web", "gets a label", label)).await?;
        let fence = scene.fence(&format!("fence-{round}")).await?;
        scene.settled().await?;
        scene.writes_only_about(mark, &[&fence]).await?;
    }
    Ok(())
}

async fn api_server_restarted(scene: &Scene) -> Result<()> {
    served(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("the API server is restarted");
            scene.plane.tell("restart apiserver").await?;
            changes(scene, 1).await
        })
        .await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.tell("the API server is killed, and comes back");
            scene.plane.tell("kill apiserver").await?;
            scene.plane.tell("start apiserver").await?;
            // Its controllers back off for up to half a minute; fresh ones do not.
            scene.plane.tell("restart controllers").await?;
            changes(scene, 2).await
        })
        .await?;
    scene.settled().await
}

async fn emulator_restarted(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let ip = scene.ip_of("web").await?;
    for round in 1..=2 {
        scene
            .meanwhile(async {
                scene.tell("Azure is away");
                scene.azure.go_away().await?;
                changes(scene, round).await?;
                scene.tell("Azure is back");
                scene.azure.come_back().await
            })
            .await?;
        scene.settled().await?;
    }
    ensure!(scene.ip_of("web").await? == ip, "the IP changed while Azure was away");
    Ok(())
}

async fn throttling(scene: &Scene) -> Result<()> {
    served(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("Azure throttles: 429 with Retry-After, for reads and writes, and the worded kind");
            let rules = json!([
                {"match": {"method": "PUT"}, "fault": "throttled", "retryAfter": 2, "times": 3},
                {"match": {"call": "UpdateLocations"}, "fault": "throttled", "retryAfter": 1, "times": 2},
                {"match": {"call": "UpdateServices"}, "fault": "anotherOperation", "times": 2},
                {"match": {"method": "GET"}, "fault": "throttled", "retryAfter": 1, "times": 2},
            ]);
            scene.azure.tell("faults", rules).await?;
            changes(scene, 1).await
        })
        .await?;
    scene.settled().await?;
    let summary = scene.azure.summary().await?;
    let early = summary["early"]["count"].as_u64();
    let early = early.with_context(|| format!("the summary counts no early calls: {summary}"))?;
    // A process that was killed cannot know what it had been asked for.
    if scene.controller().counts().kills == 0 {
        ensure!(early == 0, "{early} calls came before Retry-After was over: {summary}");
    }
    Ok(())
}

async fn server_errors(scene: &Scene) -> Result<()> {
    served(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("Azure answers every other call with 500 or 503, or not at all");
            let rules = json!([
                {"match": {"call": "Put"}, "fault": "noAnswer", "times": 2},
                {"match": {"area": "arm"}, "fault": "serverError", "probability": 0.3, "seed": 7, "times": 25},
                {"match": {"area": "arm"}, "fault": "unavailable", "probability": 0.3, "seed": 8, "times": 25},
            ]);
            scene.azure.tell("faults", rules).await?;
            changes(scene, 1).await?;
            changes(scene, 2).await
        })
        .await?;
    scene.settled().await
}

async fn forbidden_for_a_while(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}");
    scene
        .meanwhile(async {
            scene.tell("our role is taken away");
            scene.azure.tamper(json!({"do": "forbid", "scope": group})).await?;
            changes(scene, 1).await
        })
        .await?;
    scene.calm_down().await?;
    scene
        .until("service fresh-1 says that Azure forbids it", async || {
            let service = scene.service_object("fresh-1").await?.context("it is not there")?;
            let conditions = service.status.and_then(|it| it.conditions).unwrap_or_default();
            let says: Vec<String> = conditions.into_iter().map(|it| it.reason).collect();
            let is = says.iter().any(|reason| reason == "Forbidden");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(format!("its conditions say {says:?}")) })
        })
        .await?;
    scene.warned("Service", "fresh-1", &["Forbidden"]).await?;
    scene.tell("our role is given back");
    scene.azure.tamper(json!({"do": "permit", "scope": group})).await?;
    scene.settled().await
}
