//! Stories in which something goes wrong at one moment: failures that random seeds once found, and what only a fault
//! brings about.

use std::time::Duration;

use sluice_cloud::Fault;
use sluice_model::call::Method;
use sluice_model::kube::Kind;

use super::super::action::{Oddity, UserAction};
use super::super::trouble::{Part, Requests, Trouble};
use super::words::*;
use super::{FirstGateway, Story};
use crate::names::FaultKind;

const WEB: &str = "shop/web";

pub(super) fn stories() -> Vec<Story> {
    let mut stories = found_by_seeds();
    stories.extend(creations());
    stories.extend(updates());
    stories.extend(deletions());
    stories.extend(leases());
    stories
}

fn story(name: &'static str, steps: Vec<(u64, UserAction)>) -> Story {
    let mut all = vec![(0, standard_node('a')), (10, standard_node('b'))];
    all.extend(steps);
    Story { name, steps: all, gateway: FirstGateway::Missing, processes: 1, lease: None }
}

/// The Service is served by the 40th second.
fn served(name: &'static str, steps: Vec<(u64, UserAction)>) -> Story {
    let mut all = vec![(10, service(WEB, &[tcp(80, 8080)])), (10, slice(WEB, 0, "10.244.0.4@node-a"))];
    all.extend(steps);
    story(name, all)
}

/// Another Service, which is there in the end.
fn another() -> UserAction {
    service("shop/api", &[tcp(80, 8080)])
}

fn trouble(trouble: Trouble) -> UserAction {
    UserAction::Trouble(trouble)
}

fn begins(kind: FaultKind) -> UserAction {
    trouble(Trouble::Begins(kind))
}

fn deletes(what: Part, of: &str) -> UserAction {
    trouble(Trouble::Deletes { what, of: of.into() })
}

/// The next request of this method with this word in its target meets a fault.
fn strikes(kind: FaultKind, method: Method, target: &'static str, fault: Fault) -> UserAction {
    let requests = Requests { method, target };
    trouble(Trouble::Strikes { kind, requests, times: 1, fault, answer_takes: None })
}

fn refused(status: u16, code: &str, message: &str) -> Fault {
    Fault::Refuse { status, code: code.into(), message: message.into(), retry_after: None }
}

/// A load balancer cannot be written, so many times: the operation is parked for ten minutes, then for twenty.
fn no_quota(times: u32) -> UserAction {
    let requests = Requests { method: Method::Put, target: "loadBalancers" };
    let fault = refused(409, "QuotaExceeded", "The quota of the subscription is used up.");
    trouble(Trouble::Strikes { kind: FaultKind::Z12, requests, times, fault, answer_takes: None })
}

/// Azure throttles all writes for a day, so many times.
fn paused_for_a_day(times: u32) -> UserAction {
    let requests = Requests { method: Method::Put, target: "" };
    let fault = Fault::Refuse {
        status: 429,
        code: "TooManyRequests".into(),
        message: "The request was throttled.".into(),
        retry_after: Some(Duration::from_secs(86_400)),
    };
    trouble(Trouble::Strikes { kind: FaultKind::Z1, requests, times, fault, answer_takes: None })
}

fn creations() -> Vec<Story> {
    vec![
        story(
            "a creation whose answer is lost is read back before it goes on",
            vec![
                (40_000, strikes(FaultKind::Z5, Method::Put, "loadBalancers", Fault::AppliedButLost)),
                (10, service(WEB, &[tcp(80, 8080)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
            ],
        ),
        story(
            "a pause of a day is probed every 15 minutes and ends when Azure accepts a write",
            vec![
                (40_000, paused_for_a_day(2)),
                (10, service(WEB, &[tcp(80, 8080)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                // The first probe is throttled too, the second is accepted.
                (1_000_000, another()),
                (1_000_000, touch(WEB)),
            ],
        ),
        story(
            "a service that is rejected after its creation failed is torn down",
            vec![
                (40_000, no_quota(1)),
                (10, service(WEB, &[tcp(80, 8080)])),
                (30_000, odd(WEB, Oddity::Internal, true)),
                (60_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        story(
            "a public IP that is deleted while its creation is parked is made again",
            vec![
                (40_000, no_quota(9)),
                (10, service(WEB, &[tcp(80, 8080)])),
                // The second park is under way, and the next sweep finds it.
                (700_000, deletes(Part::PublicIp, WEB)),
                (1_500_000, touch(WEB)),
            ],
        ),
        served(
            "a rejected service that is served stays served through a restart",
            vec![
                (60_000, odd(WEB, Oddity::Internal, true)),
                (5_000, begins(FaultKind::P2)),
                (60_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
    ]
}

fn updates() -> Vec<Story> {
    let update = || ports(WEB, &[tcp(443, 8443)]);
    vec![
        served(
            "an update whose answer is lost is read back before it goes on",
            vec![
                (60_000, strikes(FaultKind::Z5, Method::Put, "loadBalancers", Fault::AppliedButLost)),
                (10, update()),
            ],
        ),
        served(
            "a service is deleted while its update is parked",
            vec![(60_000, no_quota(1)), (10, update()), (5_000, delete_service(WEB)), (60_000, another())],
        ),
        served(
            "a service is rejected while its update is parked",
            vec![
                (60_000, no_quota(1)),
                (10, update()),
                (5_000, odd(WEB, Oddity::Internal, true)),
                (60_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        served(
            "a rejected service without its status is torn down when its registration is deleted",
            vec![
                (60_000, odd(WEB, Oddity::Internal, true)),
                (1_000, wipe_status(WEB)),
                (1_000, deletes(Part::Registration, WEB)),
                (2_400_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        served(
            "a parked update of a service that lost registration and status ends when it is rejected",
            vec![
                (60_000, no_quota(9)),
                (10, update()),
                (700_000, deletes(Part::Registration, WEB)),
                // Two sweeps have shown that it is gone, whenever they began.
                (2_000_000, wipe_status(WEB)),
                (100, odd(WEB, Oddity::Internal, true)),
                (60_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        served(
            "endpoints change while the update of their service is parked",
            vec![(60_000, no_quota(1)), (10, update()), (5_000, slice(WEB, 0, "10.244.0.5@node-b"))],
        ),
        served(
            "a public IP that is deleted while an update is parked is made again",
            vec![
                (60_000, no_quota(9)),
                (10, update()),
                (700_000, deletes(Part::PublicIp, WEB)),
                (1_500_000, touch(WEB)),
            ],
        ),
    ]
}

fn deletions() -> Vec<Story> {
    let created = |fault: Fault, answer_takes: Option<u64>| {
        let requests = Requests { method: Method::Put, target: "loadBalancers" };
        let answer_takes = answer_takes.map(Duration::from_secs);
        let kind = FaultKind::Z5;
        vec![
            (40_000, trouble(Trouble::Strikes { kind, requests, times: 1, fault, answer_takes })),
            (10, service(WEB, &[tcp(80, 8080)])),
            (6_000, delete_service(WEB)),
            (60_000, another()),
        ]
    };
    let no_location = |times| Trouble::Strikes {
        kind: FaultKind::Z4,
        requests: Requests { method: Method::UpdateLocations, target: "" },
        times,
        fault: refused(503, "ServerBusy", "The server is busy."),
        answer_takes: None,
    };
    let no_deletion = Trouble::Strikes {
        kind: FaultKind::Z13,
        requests: Requests { method: Method::Delete, target: "loadBalancers" },
        times: 30,
        fault: refused(403, "AuthorizationFailed", "The client does not have authorization."),
        answer_takes: None,
    };
    let address =
        Trouble::Binds { address: [10, 244, 9, 9].into(), location: [10, 0, 0, 1].into(), to: WEB.into() };
    vec![
        story(
            "a service is deleted while its creation fails",
            created(Fault::OperationFails { code: "InternalServerError".into() }, None),
        ),
        story(
            "a service is deleted while the answer to its creation is lost",
            created(Fault::AppliedButLost, Some(10)),
        ),
        served(
            "a deletion whose answer is lost goes on",
            vec![
                (60_000, strikes(FaultKind::Z5, Method::Delete, "loadBalancers", Fault::AppliedButLost)),
                (10, delete_service(WEB)),
                (60_000, another()),
            ],
        ),
        served(
            "a public IP is deleted while its service waits for its addresses to drain",
            vec![
                (60_000, trouble(no_location(200))),
                (10, delete_service(WEB)),
                (1_000, deletes(Part::PublicIp, WEB)),
                (2_400_000, another()),
            ],
        ),
        served(
            "an address that is bound in the middle of a teardown is drained first",
            vec![(60_000, delete_service(WEB)), (1_500, trouble(address.clone())), (60_000, another())],
        ),
        served(
            "a public IP is deleted while the deletion of its load balancer is forbidden",
            vec![
                (60_000, trouble(no_deletion)),
                (10, delete_service(WEB)),
                (10_000, deletes(Part::PublicIp, WEB)),
                (2_400_000, another()),
            ],
        ),
        served(
            "a service changes its mind while an address holds up its teardown",
            vec![
                (60_000, cluster_ip(WEB)),
                (1_500, trouble(address)),
                (2_500, trouble(no_location(5))),
                (5_000, load_balancer(WEB)),
                (1_000, cluster_ip(WEB)),
                (1_000, load_balancer(WEB)),
            ],
        ),
        served(
            "a service that is wanted again during its teardown is made anew",
            vec![
                (60_000, cluster_ip(WEB)),
                (6_000, load_balancer(WEB)),
                (500, ports(WEB, &[tcp(443, 8443)])),
                (500, cluster_ip(WEB)),
                (500, load_balancer(WEB)),
            ],
        ),
    ]
}

/// The leader freezes, and the standby has a shorter lease.
fn leases() -> Vec<Story> {
    let seconds = Duration::from_secs;
    let frozen = |name, lease, span| {
        let steps =
            vec![(60_000, trouble(Trouble::Freezes(seconds(span)))), (span * 1_000 + 20_000, another())];
        Story { lease: Some(seconds(lease)), processes: 2, ..served(name, steps) }
    };
    vec![
        frozen("a standby with a shorter lease waits until the longer one has run out", 60, 90),
        frozen("a lease duration that a standby would not honor is not accepted", 600, 390),
    ]
}

fn found_by_seeds() -> Vec<Story> {
    let no_gateway = Trouble::Strikes {
        kind: FaultKind::Z4,
        requests: Requests { method: Method::Get, target: "serviceGateways" },
        times: 6,
        fault: refused(503, "ServerBusy", "The server is busy."),
        answer_takes: None,
    };
    vec![
        served(
            "a service that lost public IP and registration is registered before its new IP is published",
            vec![
                (60_000, deletes(Part::PublicIp, WEB)),
                (100, deletes(Part::Registration, WEB)),
                // Its NAT gateway is looked for, which lists the registrations.
                (1_000, pod("ops/job-0", "blue", 'a', "10.244.0.5")),
                (120_000, ports(WEB, &[tcp(443, 8443)])),
            ],
        ),
        served(
            "a restart that cannot read its gateway yet decides nothing about addresses",
            vec![
                (60_000, trouble(Trouble::DetachesSubnet)),
                (10, trouble(Trouble::ListsLater { kind: Kind::Node, by: Duration::from_secs(4) })),
                (10, strikes(FaultKind::Z4, Method::Put, "subnets", refused(500, "InternalServerError", ""))),
                // The first read of the gateway passes; it shows that the subnet is to be attached, which fails.
                (10, strikes(FaultKind::Z4, Method::Get, "serviceGateways", Fault::SlowBy(1))),
                (10, trouble(no_gateway)),
                (10, begins(FaultKind::P2)),
            ],
        ),
        story(
            "a pod that changed its egress during a restart keeps the old one until that is decided about",
            vec![
                (10, pod("ops/job-0", "blue", 'a', "10.244.0.4")),
                (60_000, begins(FaultKind::P2)),
                (500, label("ops/job-0", "red")),
                // The Service is served before the new egress is there.
                (10, service(WEB, &[tcp(80, 8080)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
            ],
        ),
        a_late_wait(),
    ]
}

/// The first registration is answered when it has been given up, with a wait, while another one is on its way.
fn a_late_wait() -> Story {
    let requests = Requests { method: Method::UpdateServices, target: "" };
    let fault = refused(
        429,
        "RetryableErrorDueToAnotherOperation",
        "Another operation is running; retry after 20 seconds.",
    );
    let late = Trouble::Strikes {
        kind: FaultKind::Z2,
        requests,
        times: 1,
        fault,
        answer_takes: Some(Duration::from_secs(66)),
    };
    let steps = vec![
        (40_000, trouble(late)),
        (10, service(WEB, &[tcp(80, 8080)])),
        (10, slice(WEB, 0, "10.244.0.4@node-a")),
        // Its registration waits for the answer, and is on its way when the late one comes.
        (30_000, another()),
        (60_000, touch(WEB)),
    ];
    story("a wait that is told late holds the next registration back", steps)
}
