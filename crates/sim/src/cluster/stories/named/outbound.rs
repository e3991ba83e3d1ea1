//! Stories about pods and their egress.

use super::super::action::UserAction;
use super::words::*;
use super::{FirstGateway, Story};

pub(super) fn stories() -> Vec<Story> {
    let mut stories = coming_and_going();
    stories.extend(labels());
    stories.extend(addresses());
    stories
}

fn story(name: &'static str, steps: Vec<(u64, UserAction)>) -> Story {
    let mut all = vec![(0, standard_node('a')), (10, standard_node('b'))];
    all.extend(steps);
    Story { name, steps: all, gateway: FirstGateway::Missing, processes: 1, lease: None }
}

fn numbered(from: u32, count: u32, each: impl Fn(&str, u32) -> UserAction) -> Vec<(u64, UserAction)> {
    (from..from + count).map(|n| (15, each(&format!("ops/job-{n}"), n))).collect()
}

/// The same steps, the first of them after a longer wait.
fn after(wait_ms: u64, mut steps: Vec<(u64, UserAction)>) -> Vec<(u64, UserAction)> {
    if let Some(first) = steps.first_mut() {
        first.0 = wait_ms;
    }
    steps
}

fn on_either_node(name: &str, n: u32) -> UserAction {
    let letter = if n.is_multiple_of(2) { 'a' } else { 'b' };
    pod(name, "blue", letter, &format!("10.244.3.{}", n + 1))
}

fn coming_and_going() -> Vec<Story> {
    vec![
        story(
            "the first pod of an egress makes its gateway",
            vec![(10, pending_pod("ops/job-0", "blue")), (2_000, place("ops/job-0", 'a', "10.244.0.4"))],
        ),
        story(
            "five early pods wait for their gateway and go there together",
            numbered(0, 5, |name, n| pod(name, "blue", 'a', &format!("10.244.0.{}", n + 4))),
        ),
        story(
            "an egress grows from ten pods to thirty and shrinks to five",
            [
                numbered(0, 10, on_either_node),
                after(60_000, numbered(10, 20, on_either_node)),
                after(30_000, numbered(5, 25, |name, _| delete_pod(name))),
            ]
            .concat(),
        ),
        story(
            "the last pod takes the gateway along, and a later one makes it anew",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (60_000, delete_pod("ops/job-0")),
                (120_000, pod("ops/job-1", "blue", 'b', "10.244.0.5")),
            ],
        ),
        story(
            "the last pod goes while the gateway is being made, and another comes during the teardown",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (4_000, delete_pod("ops/job-0")),
                (6_000, pod("ops/job-1", "blue", 'b', "10.244.0.5")),
            ],
        ),
        story(
            "pods are replaced one by one under the same names",
            numbered(0, 3, on_either_node)
                .into_iter()
                .chain((0..3).flat_map(|n| {
                    let name = format!("ops/job-{n}");
                    let again = pod(&name, "blue", 'b', &format!("10.244.3.{}", n + 20));
                    [(20_000, terminate(&name)), (2_000, delete_pod(&name)), (10, again)]
                }))
                .collect(),
        ),
        story(
            "a terminating pod keeps its egress until its containers have ended",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (40_000, terminate("ops/job-0")),
                (30_000, finish("ops/job-0")),
                (1_000, delete_pod("ops/job-0")),
            ],
        ),
        story(
            "a finished job gives its egress back although its pod stays",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (5, pod("ops/job-1", "green", 'a', "10.244.0.5")),
                (60_000, finish("ops/job-0")),
            ],
        ),
    ]
}

fn labels() -> Vec<Story> {
    vec![
        story(
            "a label goes from blue to green and back",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (60_000, label("ops/job-0", "green")),
                (8_000, label("ops/job-0", "blue")),
            ],
        ),
        story(
            "a label goes from blue to green and back at once",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (60_000, label("ops/job-0", "green")),
                (50, label("ops/job-0", "Blue")),
            ],
        ),
        story(
            "a pod loses its label and lives on",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (10, pod("ops/job-1", "blue", 'a', "10.244.0.5")),
                (60_000, unlabel("ops/job-0")),
                (30_000, unlabel("ops/job-1")),
                (60_000, label("ops/job-1", "red")),
            ],
        ),
        story(
            "labels that cannot be names make nothing",
            vec![
                (10, pod("ops/job-0", "default-natgw", 'a', "10.244.0.4")),
                (10, pod("ops/job-1", "0a1b2c3d-0000-4000-8000-00000000000f", 'a', "10.244.0.5")),
                (10, pod("ops/job-2", "", 'a', "10.244.0.6")),
                (10, host_network_pod("ops/job-3", "red", 'a')),
                (10, unlabelled_pod("ops/job-4", 'b', "10.244.0.7")),
                (30_000, label("ops/job-2", "green")),
            ],
        ),
    ]
}

fn addresses() -> Vec<Story> {
    vec![
        story(
            "a pod is egress and backend at once, and stays one when it stops being the other",
            vec![
                (10, service("shop/web", &[tcp(80, 8080)])),
                (10, slice("shop/web", 0, "10.244.0.4@node-a")),
                (10, pod("shop/job-0", "blue", 'a', "10.244.0.4")),
                (60_000, slice("shop/web", 0, "10.244.0.5@node-b")),
                (20_000, slice("shop/web", 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (20_000, delete_pod("shop/job-0")),
            ],
        ),
        story(
            "a replacement with the same address survives the late end of the old pod",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (40_000, terminate("ops/job-0")),
                (2_000, pod("ops/job-1", "green", 'a', "10.244.0.4")),
                (5_000, delete_pod("ops/job-0")),
            ],
        ),
        story(
            "an address is used again on another node for another egress",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (10, pod("ops/job-9", "blue", 'b', "10.244.0.9")),
                (40_000, delete_pod("ops/job-0")),
                (100, pod("ops/job-1", "green", 'b', "10.244.0.4")),
            ],
        ),
        story(
            "a pod with two families has both and loses both",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4 fd00::4")),
                (40_000, place("ops/job-0", 'a', "10.244.0.4 FD00:0:0:0:0:0:0:0008")),
                (30_000, lose_ips("ops/job-0")),
                (30_000, place("ops/job-0", 'a', "fd00::4")),
            ],
        ),
        story(
            "pods on a node that is not known are where they say until it is",
            vec![
                (10, pod("ops/job-0", "blue", 'c', "10.244.0.4")),
                (40_000, node("node-c", "10.0.7.3")),
                (40_000, delete_node("node-c")),
            ],
        ),
        story(
            "the history is forgotten while pods come and go",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (10_000, delete_pod("ops/job-0")),
                (1, UserAction::CompactHistory),
                (1, pod("ops/job-0", "blue", 'b', "10.244.0.5")),
                (1, UserAction::CompactHistory),
            ],
        ),
    ]
}
