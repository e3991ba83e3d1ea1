//! Stories about Services and their endpoints.

use super::super::action::{Oddity, OwnerBy, UserAction};
use super::words::*;
use super::{FirstGateway, Story};
use crate::cluster::objects::{AddressType, FOREIGN_FINALIZER, Health, INHERITED_FINALIZER};

const WEB: &str = "shop/web";
const API: &str = "shop/api";

pub(super) fn stories() -> Vec<Story> {
    let mut stories = arrivals();
    stories.extend(edits());
    stories.extend(ends());
    stories.extend(endpoints());
    stories.extend(nodes());
    stories.extend(ports_and_refusals());
    stories
}

fn story(name: &'static str, steps: Vec<(u64, UserAction)>) -> Story {
    let mut all = vec![(0, standard_node('a')), (10, standard_node('b'))];
    all.extend(steps);
    Story { name, steps: all, gateway: FirstGateway::Missing, processes: 1, lease: None }
}

fn http() -> [sluice_model::kube::ServicePort; 1] {
    [tcp(80, 8080)]
}

fn arrivals() -> Vec<Story> {
    vec![
        story(
            "endpoints that are there before the load balancer wait for it",
            vec![(100, service(WEB, &http())), (20, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b"))],
        ),
        story(
            "endpoints that come long after the load balancer are added",
            vec![(100, service(WEB, &http())), (60_000, slice(WEB, 0, "10.244.0.4@node-a"))],
        ),
        story(
            "a slice that is there before its service is found by its label",
            vec![
                (10, redrawn(slice(WEB, 0, "10.244.0.4@node-a"), |draft| draft.owner_by = OwnerBy::Label)),
                (5_000, service(WEB, &http())),
            ],
        ),
        story(
            "several services come at once",
            (0..12u32)
                .flat_map(|n| {
                    let name = format!("team-{}/web-{n}", n % 3);
                    let endpoints = format!("10.244.1.{}@node-a 10.244.2.{}@node-b", n + 1, n + 1);
                    [(5, service(&name, &http())), (5, slice(&name, 0, &endpoints))]
                })
                .collect(),
        ),
        story(
            "a service of another class is not ours, and one without is",
            vec![
                (10, service_of_class(WEB, "example.com/other", &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (10, service(API, &http())),
                (10, slice(API, 0, "10.244.0.4@node-a")),
            ],
        ),
    ]
}

fn edits() -> Vec<Story> {
    let live = || vec![(10, service(WEB, &http())), (10, slice(WEB, 0, "10.244.0.4@node-a"))];
    let then = |more: Vec<(u64, UserAction)>| {
        let mut steps = live();
        steps.extend(more);
        steps
    };
    vec![
        story(
            "three rapid edits end in the last one",
            then(vec![
                (30_000, ports(WEB, &[tcp(80, 9090)])),
                (200, ports(WEB, &[tcp(80, 9091), udp(53, 5353)])),
                (200, ports(WEB, &[tcp(443, 8443)])),
            ]),
        ),
        story(
            "an edit while the load balancer is being made is not forgotten",
            then(vec![(2_500, ports(WEB, &[tcp(80, 9090)])), (1_000, idle(WEB, "15"))]),
        ),
        story(
            "ports and protocols and the idle timeout come and go",
            then(vec![
                (30_000, ports(WEB, &[tcp(80, 8080), tcp(443, 8443), udp(53, 5353)])),
                (30_000, idle(WEB, "30")),
                (30_000, ports(WEB, &[tcp(53, 5353), udp(53, 5353)])),
                (30_000, no_idle(WEB)),
            ]),
        ),
        story(
            "an edit of a label is no write",
            then(vec![(30_000, touch(WEB)), (100, touch(WEB)), (60_000, touch(WEB))]),
        ),
        story(
            "a service leaves the type LoadBalancer and comes back much later",
            then(vec![(40_000, cluster_ip(WEB)), (120_000, load_balancer(WEB))]),
        ),
        story(
            "a service leaves the type LoadBalancer and comes back at once",
            then(vec![(40_000, cluster_ip(WEB)), (300, load_balancer(WEB))]),
        ),
        story(
            "a service toggles its type in the middle of its teardown and ends as ClusterIP",
            then(vec![(40_000, cluster_ip(WEB)), (6_000, load_balancer(WEB)), (2_000, cluster_ip(WEB))]),
        ),
        story(
            "somebody wipes the status and adds an address of his own",
            then(vec![(40_000, wipe_status(WEB)), (20_000, foreign_ingress(WEB, [203, 0, 113, 7]))]),
        ),
    ]
}

fn ends() -> Vec<Story> {
    let live = || vec![(10, service(WEB, &http())), (10, slice(WEB, 0, "10.244.0.4@node-a"))];
    let then = |more: Vec<(u64, UserAction)>| {
        let mut steps = live();
        steps.extend(more);
        steps
    };
    vec![
        story(
            "a service is deleted while it is being made",
            then(vec![(3_000, delete_service(WEB)), (100, UserAction::CollectGarbage)]),
        ),
        story(
            "a service is deleted and another of the same name is created",
            then(vec![
                (40_000, delete_service(WEB)),
                (60_000, UserAction::CollectGarbage),
                (100, service(WEB, &[tcp(80, 9090)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.6@node-b")),
            ]),
        ),
        story(
            "a service without a finalizer vanishes and its successor comes at once",
            vec![
                (10, service(WEB, &http())),
                (15, delete_service(WEB)),
                (5, service(WEB, &[tcp(443, 8443)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
            ],
        ),
        story(
            "a deletion waits for the finalizer of somebody else",
            then(vec![
                (10_000, hold(WEB, FOREIGN_FINALIZER)),
                (10, hold(WEB, INHERITED_FINALIZER)),
                (30_000, delete_service(WEB)),
                (90_000, release(WEB, FOREIGN_FINALIZER)),
            ]),
        ),
        story(
            "a service with only an inherited finalizer is released when nothing in Azure is tagged for it",
            vec![
                (10, service(WEB, &http())),
                (0, hold(WEB, INHERITED_FINALIZER)),
                (0, delete_service(WEB)),
                (10, cluster_ip_service(API, &http())),
                (0, hold(API, INHERITED_FINALIZER)),
            ],
        ),
        story(
            "a public IP that is tagged for a service keeps its inherited finalizer until it is deleted",
            vec![
                (10, tag_public_ip("kubernetes-web", "blog/web,shop/web")),
                (10, tag_public_ip("kubernetes-api", API)),
                // By then a sweep has shown both.
                (1_200_000, service(WEB, &http())),
                (0, hold(WEB, INHERITED_FINALIZER)),
                (0, delete_service(WEB)),
                (0, service(API, &http())),
                (0, hold(API, INHERITED_FINALIZER)),
                (0, delete_service(API)),
                (90_000, delete_tagged_ip("kubernetes-web")),
            ],
        ),
        story(
            "our finalizer is stripped from a service that is being deleted",
            then(vec![(40_000, delete_service(WEB)), (500, strip(WEB)), (10, UserAction::CollectGarbage)]),
        ),
        story(
            "our finalizer is stripped from a service that lives on",
            then(vec![(40_000, strip(WEB)), (60_000, delete_service(WEB))]),
        ),
        story(
            "a namespace vanishes while its services are busy",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (10, service(API, &[tcp(443, 8443)])),
                (10, slice(API, 0, "10.244.0.5@node-b")),
                (10, service("blog/web", &http())),
                (10, slice("blog/web", 0, "10.244.0.4@node-a")),
                (10, pod("shop/job-0", "blue", 'a', "10.244.0.7")),
                (9_000, drop_namespace("shop")),
                (20_000, service(WEB, &[tcp(80, 9090)])),
                (10, slice(WEB, 0, "10.244.0.8@node-b")),
            ],
        ),
    ]
}

fn endpoints() -> Vec<Story> {
    let many = |from: u32, count: u32| {
        let one =
            |n| format!("10.244.{}.{}@node-{}", n / 200, n % 200 + 1, if n % 2 == 0 { 'a' } else { 'b' });
        (from..from + count).map(one).collect::<Vec<_>>().join(" ")
    };
    vec![
        story(
            "two services share their pods and one of them goes",
            vec![
                (10, service(WEB, &http())),
                (10, service(API, &[tcp(443, 8443)])),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (10, slice(API, 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (60_000, delete_service(WEB)),
                (10, UserAction::CollectGarbage),
            ],
        ),
        story(
            "two services swap their selectors",
            vec![
                (10, service(WEB, &http())),
                (10, service(API, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (10, slice(API, 0, "10.244.0.5@node-b")),
                (60_000, slice(WEB, 0, "10.244.0.5@node-b")),
                (50, slice(API, 0, "10.244.0.4@node-a")),
            ],
        ),
        story(
            "more than a hundred endpoints come in several slices and then fewer",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, &many(0, 100))),
                (10, slice(WEB, 1, &many(100, 100))),
                (10, slice(WEB, 2, &many(180, 60))),
                (60_000, slice(WEB, 1, &many(100, 20))),
                (20, delete_slice(WEB, 2)),
            ],
        ),
        story(
            "endpoints move between slices and none is lost",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (10, slice(WEB, 1, "10.244.0.6@node-a")),
                (60_000, move_endpoint(WEB, 0, 1, "10.244.0.4", true)),
                (5_000, move_endpoint(WEB, 1, 0, "10.244.0.6", false)),
                (5_000, slice(WEB, 2, "10.244.0.5@node-b 10.244.0.6@node-a")),
                (100, delete_slice(WEB, 0)),
            ],
        ),
        story(
            "a slice counts only for a service of its own namespace",
            vec![
                (10, service(WEB, &[named_port(80, "http")])),
                (10, in_namespace("blog", slice_with(WEB, 0, &[("tcp-80", 666)], "10.244.0.6@node-a"))),
                (30_000, slice_with(WEB, 0, &[("tcp-80", 8080)], "10.244.0.4@node-a")),
                (30_000, service("blog/web", &http())),
                (
                    10,
                    redrawn(slice("blog/web", 1, "10.244.0.5@node-b"), |draft| {
                        draft.owner_by = OwnerBy::Label;
                    }),
                ),
            ],
        ),
        story(
            "readiness flaps and ends ready",
            [(10, service(WEB, &http())), (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b"))]
                .into_iter()
                .chain((0..10).map(|n| {
                    let now = if n % 2 == 0 { Health::NotReady } else { Health::Ready };
                    (if n == 0 { 30_000 } else { 700 }, health(WEB, 0, "10.244.0.4", now))
                }))
                .collect(),
        ),
        story(
            "when all endpoints are terminating those that still serve count",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b!unsaid")),
                (40_000, health(WEB, 0, "10.244.0.4", Health::Draining)),
                (5_000, health(WEB, 0, "10.244.0.5", Health::Draining)),
                (5_000, health(WEB, 0, "10.244.0.4", Health::Ended)),
                (20_000, slice(WEB, 1, "10.244.0.6@node-a")),
            ],
        ),
        story(
            "odd spellings and host names among the endpoints hurt nobody",
            vec![
                (10, service(WEB, &http())),
                (10, service_v6("shop/six", &http())),
                (
                    10,
                    redrawn(slice(WEB, 0, "10.244.0.300@node-a 10.244.0.4@node-a"), |draft| {
                        draft.endpoints.extend(draft.endpoints.last().cloned().map(|mut endpoint| {
                            endpoint.address = "::ffff:10.244.0.5".into();
                            endpoint
                        }));
                    }),
                ),
                (
                    10,
                    redrawn(slice(WEB, 1, "pod.example.com@node-a"), |draft| {
                        draft.address_type = AddressType::Fqdn;
                    }),
                ),
                (10, slice("shop/six", 0, "FD00:0:0:0:0:0:0:0004@node-a fd00::5@node-b")),
            ],
        ),
    ]
}

fn nodes() -> Vec<Story> {
    vec![
        story(
            "a node goes and takes its addresses along",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (40_000, delete_node("node-b")),
                (10_000, slice(WEB, 0, "10.244.0.4@node-a")),
            ],
        ),
        story(
            "a node gets another address and its pods move along",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a 10.244.0.5@node-b")),
                (10, pod("shop/job-0", "blue", 'a', "10.244.0.7 fd00::7")),
                (60_000, node("node-a", "10.0.9.1 fd01::1")),
                (20_000, node("node-a", "10.0.9.1 10.0.0.1 fd01::1")),
            ],
        ),
        story(
            "endpoints on a node that is not known yet wait for it",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-c")),
                (30_000, standard_node('c')),
            ],
        ),
        story(
            "a node that is replaced under its name serves at its new address",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-b")),
                (40_000, delete_node("node-b")),
                (2_000, node("node-b", "10.0.0.9")),
            ],
        ),
        story(
            "an address moves from one node to another",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (40_000, slice(WEB, 0, "10.244.0.4@node-b")),
            ],
        ),
        story(
            "a service of the second family uses the second address of its nodes",
            vec![
                (10, service_v6(WEB, &http())),
                (10, slice(WEB, 0, "fd00::4@node-a fd00::5@node-b")),
                (40_000, node("node-b", "10.0.0.2")),
            ],
        ),
    ]
}

fn ports_and_refusals() -> Vec<Story> {
    let refused = |name, wrong: UserAction, right: UserAction| {
        let steps = vec![
            (10, service(WEB, &http())),
            (10, slice(WEB, 0, "10.244.0.4@node-a")),
            (1, wrong),
            (60_000, right),
        ];
        story(name, steps)
    };
    let odd_one = |name, oddity| refused(name, odd(WEB, oddity, true), odd(WEB, oddity, false));
    let ports_one = |name, wrong: &[_]| refused(name, ports(WEB, wrong), ports(WEB, &http()));
    vec![
        story(
            "a named port is resolved when the first endpoint knows it",
            vec![
                (10, service(WEB, &[named_port(80, "http")])),
                (30_000, slice_with(WEB, 0, &[("tcp-80", 8080)], "10.244.0.4@node-a")),
            ],
        ),
        story(
            "a live service keeps its resolved port while the endpoints disagree",
            vec![
                (10, service(WEB, &[named_port(80, "http")])),
                (10, slice_with(WEB, 0, &[("tcp-80", 8080)], "10.244.0.4@node-a")),
                (40_000, slice_with(WEB, 1, &[("tcp-80", 9090)], "10.244.0.5@node-b")),
                (60_000, delete_slice(WEB, 0)),
            ],
        ),
        story(
            "a live service whose spec turns bad stays as it is until it is mended",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (40_000, odd(WEB, Oddity::Internal, true)),
                (10_000, slice(WEB, 0, "10.244.0.5@node-b")),
                (60_000, ports(WEB, &[tcp(443, 8443)])),
                (10_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        story(
            "a service that becomes internal while its load balancer is being created is never published",
            vec![
                // By then the gateway is there, and the creation begins at once.
                (40_000, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (5_000, odd(WEB, Oddity::Internal, true)),
                (120_000, odd(WEB, Oddity::Internal, false)),
            ],
        ),
        story(
            "a service that is refused and accepted again while it is being created is served",
            vec![
                (40_000, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (3_000, odd(WEB, Oddity::PublicIpName, true)),
                (1_000, odd(WEB, Oddity::PublicIpName, false)),
            ],
        ),
        story(
            "a service that prefers two address families is served with the first",
            vec![
                (10, service(WEB, &http())),
                (10, slice(WEB, 0, "10.244.0.4@node-a")),
                (1, odd(WEB, Oddity::PreferDualStack, true)),
                (60_000, odd(WEB, Oddity::PreferDualStack, false)),
            ],
        ),
        odd_one("session affinity is refused until it is taken back", Oddity::Affinity),
        odd_one("a fixed address is refused until it is taken back", Oddity::FixedIp),
        odd_one("an internal load balancer is refused until it is taken back", Oddity::Internal),
        odd_one("source ranges are refused until they are taken back", Oddity::SourceRanges),
        odd_one("two address families are refused until one is left", Oddity::DualStack),
        ports_one("the last port is refused until it is another", &[tcp(65535, 8080)]),
        ports_one("a protocol that nobody carries is refused until it is gone", &[sctp(80, 8080)]),
        ports_one(
            "two ports that lead to one are refused until they differ",
            &[tcp(80, 8080), tcp(443, 8080)],
        ),
        refused(
            "an idle timeout that is none is refused until it is mended",
            idle(WEB, "ten"),
            idle(WEB, "10"),
        ),
        refused("an idle timeout out of range is refused until it is mended", idle(WEB, "31"), no_idle(WEB)),
    ]
}
