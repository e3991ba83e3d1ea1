//! One storm for each fault: the same eventful two minutes, in which the fault strikes again and again.
//!
//! Storms fill the table of faults and invariants, so that no pair of them depends on the seeds of a run. People make
//! and delete services all the time, since most invariants are about that.

use super::super::action::UserAction;
use super::super::trouble::Trouble;
use super::words::*;
use super::{FirstGateway, Story};
use crate::names::FaultKind;

/// The moments at which the fault of a storm strikes, in milliseconds: the gateway is there, services are being changed
/// or deleted, and no fault is over for a minute before the next deletion.
const STRIKES_AT: &[u64] = &[34_500, 42_500, 70_500, 98_500];

/// Faults after which little happens for long strike between two steps of a deletion.
fn strikes_at(fault: FaultKind) -> &'static [u64] {
    match fault {
        FaultKind::K20 => &[144_000],
        FaultKind::Z7 => &[38_800, 70_500, 98_500],
        _ => STRIKES_AT,
    }
}

/// The storm of a fault.
#[derive(Clone, Debug)]
pub struct Storm {
    /// The fault.
    pub fault: FaultKind,
    /// What happens, the fault included.
    pub story: Story,
}

impl Storm {
    /// The storm of this fault.
    pub fn of(fault: FaultKind) -> Storm {
        let mut timed = Vec::new();
        let mut at = 0;
        for (wait_ms, action) in eventful() {
            at += wait_ms;
            timed.push((at, action));
        }
        let strikes = strikes_at(fault).iter();
        timed.extend(strikes.flat_map(|at| strike(fault).into_iter().map(move |it| (*at, it))));
        timed.sort_by_key(|(at, _)| *at);
        let mut before = 0;
        let mut steps = Vec::new();
        for (at, action) in timed {
            steps.push((at - before, action));
            before = at;
        }
        Storm {
            fault,
            story: Story {
                name: fault.words(),
                steps,
                gateway: FirstGateway::Missing,
                processes: 1,
                lease: None,
            },
        }
    }

    /// Two leaders need two processes.
    pub fn processes(&self) -> usize {
        1 + usize::from(matches!(self.fault, FaultKind::P3 | FaultKind::P4 | FaultKind::K19))
    }
}

/// The storms of all faults.
pub fn storms() -> Vec<Storm> {
    FaultKind::ALL.into_iter().map(Storm::of).collect()
}

/// What goes wrong at one of the moments.
fn strike(fault: FaultKind) -> Vec<UserAction> {
    use FaultKind::*;
    let troubles = match fault {
        // People do these in every storm.
        K8 | K9 | K10 | K11 | K12 | K13 | K16 | K17 | K18 => Vec::new(),
        // Only an old watch that drops is too old, and only a list after lost events lacks an object.
        K2 => vec![Trouble::Storm(vec![K1, K2])],
        K7 => vec![Trouble::Storm(vec![K1, K4])],
        K1 | K3 | K4 | K5 | K6 | K14 | K15 | K19 => vec![Trouble::Storm(vec![K1, fault])],
        P3 => vec![Trouble::Begins(P4)],
        // Only a process that starts lists for the first time.
        P5 => vec![Trouble::Insists(P5, 1), Trouble::Begins(P2)],
        K20 | Z13 | Z14 | Z15 | Z16 | Z18 | Z19 | Z20 | Z21 | P2 | P4 | P6 => vec![Trouble::Begins(fault)],
        Z7 => vec![Trouble::Insists(fault, 1)],
        _ => vec![Trouble::Insists(fault, 2)],
    };
    troubles.into_iter().map(UserAction::Trouble).collect()
}

/// People make and delete services all the time, and do everything that counts as a fault of theirs.
fn eventful() -> Vec<(u64, UserAction)> {
    let http = [tcp(80, 8080)];
    let mut steps = vec![
        (0, standard_node('a')),
        (10, standard_node('b')),
        (10, standard_node('c')),
        (10, service("shop/web", &http)),
        (10, slice("shop/web", 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
        (10, slice("shop/web", 1, "10.244.0.5@node-b 10.244.0.6@node-c")),
        (10, service("shop/api", &http)),
        (10, slice("shop/api", 0, "10.244.0.6@node-c 10.244.0.7@node-a")),
        (10, service("blog/feed", &http)),
        (10, slice("blog/feed", 0, "10.244.0.8@node-b")),
        (10, service("temp/web", &http)),
        (10, slice("temp/web", 0, "10.244.0.9@node-a")),
        (10, pod("ops/job-0", "blue", 'a', "10.244.1.4 FD00:0:0:0:0:0:0:0008")),
        (10, pod("ops/job-1", "blue", 'b', "10.244.1.5")),
        (10, pod("ops/job-2", "green", 'a', "10.244.1.6")),
        // Half a minute later everything is served.
        (30_000, ports("shop/web", &[tcp(80, 8080), tcp(443, 8443)])),
        (500, label("ops/job-1", "green")),
        (300, label("ops/job-1", "blue")),
        (500, cluster_ip("shop/api")),
        (2_000, load_balancer("shop/api")),
        (2_000, delete_service("blog/feed")),
        (1_500, strip("blog/feed")),
        (500, service("blog/feed", &http)),
        (10, slice("blog/feed", 0, "10.244.0.8@node-b")),
        (500, drop_namespace("temp")),
        (2_000, node("node-b", "10.0.1.2 fd01::2")),
        (1_000, delete_pod("ops/job-2")),
        (100, pod("ops/job-3", "blue", 'a', "10.244.1.6")),
        (500, move_endpoint("shop/web", 0, 1, "10.244.0.4", true)),
        (500, UserAction::CompactHistory),
    ];
    // Then services come and go until the end, and with each fault some are being made and some deleted.
    for round in 0..4 {
        let (name, egress) = (format!("shop/extra-{round}"), format!("ops/extra-{round}"));
        steps.extend([
            (3_000, service(&name, &http)),
            (10, slice(&name, 0, "10.244.0.5@node-b 10.244.0.6@node-c")),
            (10, pod(&egress, &format!("red-{round}"), 'c', &format!("10.244.1.{}", 20 + round))),
            (500, touch("shop/web")),
            (4_000, slice("shop/web", 0, &format!("10.244.0.{}@node-a", 30 + round))),
        ]);
        if round > 0 {
            let before = round - 1;
            steps.extend([
                (3_000, delete_service(&format!("shop/extra-{before}"))),
                (10, delete_pod(&format!("ops/extra-{before}"))),
                (4_000, wipe_status("shop/web")),
            ]);
        } else {
            steps.push((7_000, wipe_status("shop/web")));
        }
    }
    steps.extend([
        (500, delete_service("shop/web")),
        (500, delete_pod("ops/job-0")),
        (500, delete_service("shop/extra-3")),
        (500, UserAction::CompactHistory),
        (30_000, service("shop/web", &http)),
        (10, slice("shop/web", 0, "10.244.0.4@node-a")),
        (5_000, delete_service("shop/api")),
    ]);
    steps
}
