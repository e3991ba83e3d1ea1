//! Stories about the brake: many services go at once, with and without evidence that it is meant.

use super::super::action::UserAction;
use super::words::*;
use super::{FirstGateway, Story};

/// More than the brake lets go at once.
const CROWD: u32 = 8;

pub(super) fn stories() -> Vec<Story> {
    vec![
        story(
            "the standby that watched the last pods go deletes their egresses",
            2,
            [pods(), deleted(45_000), vec![(50, UserAction::StopLeader)]],
        ),
        story(
            "a restart in the middle of many teardowns goes on with them",
            1,
            [pods(), deleted(45_000), vec![(5_000, UserAction::StopLeader)]],
        ),
        story(
            "services that are no load balancers any more go after a restart",
            1,
            [services(), cluster_ips(45_000), vec![(5_000, UserAction::StopLeader)]],
        ),
        story(
            "many services that are missing from a newer list are held",
            1,
            [services(), missing_from_the_next_list(45_000), Vec::new()],
        ),
        story(
            "egresses whose pods are missing from a newer list are held",
            1,
            [pods(), missing_from_the_next_list(45_000), Vec::new()],
        ),
        story(
            "consent to some deletions is kept over a restart and counts for no others",
            1,
            [services(), missing_from_the_next_list(45_000), consent_and_more()],
        ),
    ]
}

fn story(name: &'static str, processes: usize, acts: [Vec<(u64, UserAction)>; 3]) -> Story {
    let mut steps = vec![(0, standard_node('a')), (10, service("shop/web", &[tcp(80, 8080)]))];
    steps.extend(acts.into_iter().flatten());
    Story { name, steps, gateway: FirstGateway::Missing, processes, lease: None }
}

fn services() -> Vec<(u64, UserAction)> {
    (0..CROWD).map(|n| (15, service(&format!("crowd/web-{n}"), &[tcp(80, 8080)]))).collect()
}

fn pods() -> Vec<(u64, UserAction)> {
    let one = |n| pod(&format!("crowd/job-{n}"), &format!("team-{n}"), 'a', &format!("10.244.0.{}", n + 4));
    (0..CROWD).map(|n| (15, one(n))).collect()
}

fn deleted(wait_ms: u64) -> Vec<(u64, UserAction)> {
    let one = |n| (if n == 0 { wait_ms } else { 5 }, delete_pod(&format!("crowd/job-{n}")));
    (0..CROWD).map(one).collect()
}

fn cluster_ips(wait_ms: u64) -> Vec<(u64, UserAction)> {
    let one = |n| (if n == 0 { wait_ms } else { 5 }, cluster_ip(&format!("crowd/web-{n}")));
    (0..CROWD).map(one).collect()
}

/// The operator allows what is held, the leader is replaced in the middle of it, and then others are missing.
fn consent_and_more() -> Vec<(u64, UserAction)> {
    let mut acts = vec![(60_000, UserAction::AllowDeletion), (4_000, UserAction::StopLeader)];
    acts.extend(pods());
    acts.extend(missing_from_the_next_list(90_000));
    acts
}

/// As after etcd was restored from a backup: no watch shows it.
fn missing_from_the_next_list(wait_ms: u64) -> Vec<(u64, UserAction)> {
    vec![(wait_ms, drop_namespace("crowd")), (0, UserAction::CompactHistory)]
}
