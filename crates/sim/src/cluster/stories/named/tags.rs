//! Stories about tags that somebody else adds and removes.

use super::super::action::{TagChange, Tagged, UserAction};
use super::words::*;
use super::{FirstGateway, Story};

const WEB: &str = "shop/web";

pub(super) fn stories() -> Vec<Story> {
    vec![
        story(
            "a public IP that lost our tag by hand survives the deletion of its Service",
            vec![(60_000, retag(WEB, Tagged::PublicIp, TagChange::LoseOurs)), (2_000, delete_service(WEB))],
        ),
        story(
            "a tag that others put on a load balancer survives a change of its ports",
            vec![
                (60_000, retag(WEB, Tagged::LoadBalancer, TagChange::GainTheirs)),
                (2_000, ports(WEB, &[tcp(80, 8080), tcp(443, 8443)])),
                (30_000, retag(WEB, Tagged::PublicIp, TagChange::GainTheirs)),
                (2_000, cluster_ip(WEB)),
            ],
        ),
        story(
            "a load balancer that lost our tags gets them again and goes with its Service",
            vec![
                (60_000, retag(WEB, Tagged::LoadBalancer, TagChange::LoseOurs)),
                (1_200_000, delete_service(WEB)),
            ],
        ),
        story(
            "a load balancer that lost our tags right before the deletion goes with its Service",
            vec![
                (60_000, retag(WEB, Tagged::LoadBalancer, TagChange::LoseOurs)),
                (2_000, delete_service(WEB)),
            ],
        ),
        story(
            "a released public IP stays released when its load balancer loses our tags later",
            vec![
                (60_000, retag(WEB, Tagged::PublicIp, TagChange::LoseOurs)),
                (2_400_000, retag(WEB, Tagged::LoadBalancer, TagChange::LoseOurs)),
                (2_400_000, delete_service(WEB)),
            ],
        ),
        taken_over("a Service that others served before is taken over and leaves nothing behind", 60_000),
        taken_over("a Service that others served before is deleted right after its take-over", 4_000),
    ]
}

/// Others serve a Service that we do not want yet, so that it is known untagged when we do.
fn taken_over(name: &'static str, after: u64) -> Story {
    let steps = vec![
        (0, standard_node('a')),
        (0, served_by_others(WEB, &[tcp(80, 8080)])),
        (0, served_by_others("shop/api", &[tcp(80, 9090)])),
        (20, slice(WEB, 0, "10.244.0.4@node-a")),
        (2_400_000, load_balancer(WEB)),
        (100, load_balancer("shop/api")),
        (after, delete_service(WEB)),
    ];
    Story { name, steps, gateway: FirstGateway::OfOthers, processes: 1, lease: None }
}

fn story(name: &'static str, rest: Vec<(u64, UserAction)>) -> Story {
    let mut steps = vec![
        (0, standard_node('a')),
        (100, service(WEB, &[tcp(80, 8080)])),
        (20, slice(WEB, 0, "10.244.0.4@node-a")),
        (20, service("shop/api", &[tcp(80, 8080)])),
    ];
    steps.extend(rest);
    Story { name, steps, gateway: FirstGateway::Missing, processes: 1, lease: None }
}
