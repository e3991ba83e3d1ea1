//! The process and those it talks to: leaders that die or freeze, servers that go away, and faults.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::{GROUP, Request, SUBSCRIPTION};
use crate::judge::begun::without_a_line;
use crate::process::Signal;
use crate::scene::{Look, Mark, Scene};
use crate::setting::RENEW_DEADLINE;
use crate::story::Story;

/// How long a request that was begun in time may take to arrive on a slow machine.
const ON_ITS_WAY: Duration = Duration::from_secs(1);
/// How long the controller may take, on a slow machine, from an answer to the pause that it asks for.
const REACTS_WITHIN: Duration = Duration::from_millis(250);
/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(10);

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "leader-killed",
        "the leader of two replicas is killed in the middle of its work, twice",
        |scene| Box::pin(leader_killed(scene)),
    )
    .with(|setting| setting.replicas = 2),
    Story::new("leader-frozen", "a leader freezes for longer than its lease, and wakes up", |scene| {
        Box::pin(leader_frozen(scene))
    })
    .with(|setting| {
        setting.replicas = 2;
        setting.may_end = true;
        // Every call is logged as it is begun.
        setting.key("log.level", "warn,sluice=info,sluice_controller::updaters=debug");
    }),
    Story::new("terminated-in-a-batch", "SIGTERM in the middle of twelve Services", |scene| {
        Box::pin(terminated_in_a_batch(scene))
    }),
    Story::new("api-server-restarted", "the API server is restarted, and killed", |scene| {
        Box::pin(api_server_restarted(scene))
    })
    .with(|setting| setting.may_end = true)
    .on_a_real_plane("it has no parts that could be restarted"),
    Story::new(
        "api-server-away",
        "the API server is away for longer than the lease: nothing is begun meanwhile",
        |scene| Box::pin(api_server_away(scene)),
    )
    .with(|setting| {
        setting.may_end = true;
        setting.awaits_the_lease = true;
    })
    .on_a_real_plane("it has no parts that could be killed"),
    Story::new("emulator-restarted", "Azure is away while things change, twice", |scene| {
        Box::pin(emulator_restarted(scene))
    }),
    // When a call was sent, and when an answer came, is in the controller's log.
    Story::new("throttling", "Azure asks for pauses, and gets them", |scene| Box::pin(throttling(scene)))
        .with(|setting| {
            setting.key("log.level", "warn,sluice=info,sluice_arm=debug");
        }),
    Story::new(
        "server-errors",
        "bursts of 500 and 503, and answers that never come, with the work done and without",
        |scene| Box::pin(server_errors(scene)),
    ),
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

/// Twelve Services at once: more than are worked on at once, so that there is a middle.
async fn batch(scene: &Scene, word: &str) -> Result<Mark> {
    let mark = scene.mark_writes().await?;
    scene.tell(format!("makes twelve services {word}-1 to {word}-12"));
    for number in 1..=12 {
        scene.service(&format!("{word}-{number}")).port(80, 8080).selecting("web").quiet().make().await?;
    }
    Ok(mark)
}

/// Waits until so many writes have come since the mark: some of the batch is done, most of it is not.
async fn in_the_middle(scene: &Scene, mark: Mark, writes: usize) -> Result<()> {
    scene
        .until("the batch is half done", async || {
            let number = scene.writes_since(mark).await?.len();
            Ok(if number >= writes { Look::Yes(()) } else { Look::NotYet(format!("{number} writes so far")) })
        })
        .await
}

async fn leader_killed(scene: &Scene) -> Result<()> {
    served(scene).await?;
    for round in 1..=2 {
        let leader = scene.leader().await?;
        let mark = batch(scene, &format!("batch{round}")).await?;
        in_the_middle(scene, mark, 8).await?;
        scene.tell(format!("kill -9 of {}, which leads", leader.name));
        leader.kill().await?;
        scene.meanwhile(changes(scene, round)).await?;
        scene.settled().await?;
        leader.start()?;
    }
    let counts: Vec<_> = scene.replicas.iter().map(|it| it.counts()).collect();
    ensure!(counts.iter().map(|it| it.kills).sum::<usize>() >= 2, "nobody was killed: {counts:?}");
    Ok(())
}

async fn leader_frozen(scene: &Scene) -> Result<()> {
    served(scene).await?;
    for round in 1..=2 {
        let old = scene.leader().await?;
        // Nothing is on its way now, so from here on each of its requests has a line of its own.
        let earlier = std::fs::read_to_string(&old.log)?.len();
        scene.quiet().await?;
        let mark = batch(scene, &format!("batch{round}")).await?;
        in_the_middle(scene, mark, 8).await?;
        scene.tell(format!("{} leads, and freezes", old.name));
        old.signal(Signal::Stop).await?;
        let new = scene.leader_but(Some(&old.name)).await?;
        scene.tell(format!("{} leads now", new.name));
        changes(scene, round).await?;
        scene.settled().await?;
        scene.tell(format!("{} goes on, and must not act on what it believes", old.name));
        let thaw = scene.mark_writes().await?;
        // Read only now: the signal had not reached all of its threads when it was sent.
        let begun = std::fs::read_to_string(&old.log)?.split_off(earlier);
        old.signal(Signal::Continue).await?;
        let fence = scene.fence(&format!("fence-{round}")).await?;
        scene.settled().await?;
        let by_old = |it: &Request| it.area == "arm" && it.is_by(&old.name);
        // Only what it had begun before it froze may still leave its buffers.
        let all = scene.requests_since(mark).await?;
        let its: Vec<&Request> = all.iter().filter(|it| by_old(it)).collect();
        ensure!(its.len() >= 8, "{} made {} requests, so there was no middle", old.name, its.len());
        let strange = without_a_line(&its, &begun);
        ensure!(strange.is_empty(), "{} spoke to Azure after its lease: {strange:?}", old.name);
        let writes = scene.writes_since(thaw).await?;
        // What left its buffers late may have undone a newer write, which is then repaired.
        let repairs = |it: &Request| {
            writes.iter().any(|late| by_old(late) && (&late.method, &late.path) == (&it.method, &it.path))
        };
        let others: Vec<String> = writes
            .iter()
            .filter(|it| !by_old(it) && !it.is_about(&fence) && !repairs(it))
            .map(Request::line)
            .collect();
        ensure!(others.is_empty(), "{} had to write again: {others:?}", new.name);
        let label = json!({"metadata": {"labels": {"round": round.to_string()}}});
        scene.meanwhile(scene.edit_service("web", "gets a label", label)).await?;
        scene.settled().await?;
    }
    Ok(())
}

async fn terminated_in_a_batch(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let mark = batch(scene, "batch").await?;
    in_the_middle(scene, mark, 8).await?;
    scene.tell("SIGTERM");
    scene.controller().stop().await?;
    // It ended with nothing on the wire, so it may say that nobody leads.
    let holder = scene.holder().await?;
    ensure!(holder.is_none(), "the lease still names {holder:?}");
    let begun = scene.mark_writes().await?;
    scene.quiet().await?;
    scene.no_write_since(begun).await?;
    scene.controller().start()?;
    scene.meanwhile(changes(scene, 1)).await?;
    scene.settled().await?;
    // What was confirmed is not sent again: each load balancer was written once, or twice if its answer
    // had not come when the process ended.
    if scene.controller().counts().kills == 0 {
        let writes = scene.writes_since(mark).await?;
        for number in 1..=12 {
            let uid = scene.uid_of(&format!("batch-{number}")).await?;
            let puts = writes.iter().filter(|it| it.is_put_of("loadBalancers", &uid)).count();
            ensure!((1..=2).contains(&puts), "the load balancer of batch-{number} was written {puts} times");
        }
    }
    Ok(())
}

async fn api_server_away(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let mark = batch(scene, "batch").await?;
    in_the_middle(scene, mark, 8).await?;
    scene.tell("the API server goes away");
    scene.plane.tell("kill apiserver").await?;
    let away = Instant::now();
    // Without a renewal it may begin requests for its renewal deadline, and no longer.
    let deadline = RENEW_DEADLINE + ON_ITS_WAY;
    tokio::time::sleep_until((away + deadline).into()).await;
    let fence = scene.mark_writes().await?;
    tokio::time::sleep_until((away + AWAY).into()).await;
    let late: Vec<String> = scene.requests_since(fence).await?.iter().map(Request::line).collect();
    ensure!(late.is_empty(), "requests were begun after the renewal deadline: {late:?}");
    scene.tell("the API server is back");
    scene.plane.tell("start apiserver").await?;
    // Its controllers back off for up to half a minute; fresh ones do not.
    scene.plane.tell("restart controllers").await?;
    scene.meanwhile(changes(scene, 1)).await?;
    scene.settled().await
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
                {"match": {"method": "PUT"}, "fault": "throttled", "times": 3},
                {"match": {"call": "UpdateLocations"}, "fault": "throttled", "retryAfter": 1, "times": 2},
                {"match": {"call": "UpdateServices"}, "fault": "anotherOperation", "times": 2},
                {"match": {"method": "GET"}, "fault": "throttled", "retryAfter": 1, "times": 2},
            ]);
            scene.azure.tell("faults", rules).await?;
            changes(scene, 1).await
        })
        .await?;
    scene.settled().await?;
    scene.azure.each_fault_struck().await?;
    let by_rules = throttled(scene).await?;
    scene.tell("Azure has small buckets, and takes five writes in three seconds until one was too many");
    let small = json!({"burst": 5, "perSecond": 1});
    let network = json!({"writes": 5, "seconds": 90});
    scene.azure.tell("buckets", json!({"writes": small, "deletes": small, "network": network})).await?;
    scene
        .meanwhile(async {
            batch(scene, "batch").await?;
            changes(scene, 2).await
        })
        .await?;
    scene
        .until("a write was too many", async || {
            let is_so = throttled(scene).await? > by_rules;
            Ok(if is_so { Look::Yes(()) } else { Look::NotYet("all were taken".to_string()) })
        })
        .await?;
    scene.azure.tell("buckets", json!({"network": {"writes": 1_000, "seconds": 300}})).await?;
    scene.settled().await?;
    // A process that was killed cannot know what it had been asked for.
    if scene.controller().counts().kills == 0 {
        pauses_were_kept(scene).await?;
    }
    Ok(())
}

/// How many calls were answered with 429.
async fn throttled(scene: &Scene) -> Result<usize> {
    let all = scene.requests_since(scene.start_of_writes()).await?;
    Ok(all.iter().filter(|it| it.status == Some(429)).count())
}

/// Fails if a call was sent while Azure had asked for a pause. The emulator names the calls that arrived in one; on a
/// busy machine those that were sent before take long to arrive, so the controller's log decides.
async fn pauses_were_kept(scene: &Scene) -> Result<()> {
    let summary = scene.azure.summary().await?;
    let early = &summary["early"];
    let named = early["calls"].as_array().with_context(|| format!("no early calls in {summary}"))?;
    let count = early["count"].as_u64().with_context(|| format!("no count of early calls in {summary}"))?;
    ensure!(named.len() as u64 == count, "too many calls came before Retry-After was over: {early}");
    let requests = scene.azure.requests(0).await?;
    let log = scene.controller().said().context("the controller does not run")?;
    let sent_and_answered = |number: &Value| {
        let request = requests.iter().find(|it| Some(it.number) == number.as_u64());
        let id = request.and_then(|it| it.client_request_id.as_deref()).context("a request without an id")?;
        sent_and_answered(&log, id).with_context(|| format!("the log has no time of the call {id}"))
    };
    for call in named {
        let (sent, _) = sent_and_answered(&call["number"])?;
        let (_, asked_at) = sent_and_answered(&call["askedBy"])?;
        ensure!(
            sent <= asked_at + REACTS_WITHIN,
            "a call was sent at {sent}, and Azure had asked for a pause at {asked_at}: {call}"
        );
    }
    Ok(())
}

/// When the controller sent a call and had its answer, by its log.
fn sent_and_answered(log: &str, id: &str) -> Option<(Timestamp, Timestamp)> {
    let line = log.lines().find(|line| line.contains("call to Azure") && line.contains(id))?;
    let answered: Timestamp = line.split_whitespace().next()?.parse().ok()?;
    let took = line.split_whitespace().find_map(|word| word.strip_prefix("took_ms="))?;
    Some((answered - Duration::from_millis(took.parse().ok()?), answered))
}

async fn server_errors(scene: &Scene) -> Result<()> {
    served(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("Azure answers every other call with 500 or 503, or not at all");
            let rules = json!([
                {"match": {"call": "Put"}, "fault": "noAnswer", "times": 2},
                {"match": {"call": "Put"}, "fault": "reset", "when": "before", "times": 3},
                {"match": {"area": "arm"}, "fault": "serverError", "probability": 0.3, "seed": 7, "times": 25},
                {"match": {"area": "arm"}, "fault": "unavailable", "probability": 0.3, "seed": 8, "times": 25},
            ]);
            scene.azure.tell("faults", rules).await?;
            changes(scene, 1).await?;
            changes(scene, 2).await
        })
        .await?;
    scene.settled().await?;
    scene.azure.each_fault_struck().await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_was_sent_as_long_before_its_line_in_the_log_as_it_took() {
        let log = "2026-11-18T09:04:22.500000Z DEBUG sluice_arm::record: call to Azure method=\"PUT\" took_ms=300 client_request_id=\"one\"\n\
                   2026-11-18T09:04:23.000000Z  INFO sluice_controller::records: step done took_ms=1 service=\"two\"";
        let (sent, answered) = sent_and_answered(log, "one").unwrap();
        assert_eq!(sent.to_string(), "2026-11-18T09:04:22.2Z");
        assert_eq!(answered.to_string(), "2026-11-18T09:04:22.5Z");
        assert_eq!(sent_and_answered(log, "two"), None);
    }
}
