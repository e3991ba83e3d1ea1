//! Stories about services of others in our gateway.

use super::super::action::UserAction;
use super::words::*;
use super::{FirstGateway, Story};

/// Load balancers of others.
const PARTNER: &str = "00000000-0000-0000-f100-000000000001";
const SECOND: &str = "00000000-0000-0000-f100-000000000002";
/// A NAT gateway of others.
const TEAL: &str = "teal";

/// Long enough for two sweeps of everything.
const SWEPT_MS: u64 = 2_500_000;

pub(super) fn stories() -> Vec<Story> {
    vec![
        story(
            "our last address leaves a location that others have used since the last listing",
            vec![
                (120_000, others_bind(PARTNER, 'a', [10, 244, 99, 1])),
                (100_000, delete_slice("shop/web", 0)),
            ],
        ),
        story(
            "a second name of others comes to a shared entry before our pod leaves it",
            vec![
                (60_000, others_bind(PARTNER, 'a', [10, 244, 0, 4])),
                // In the middle between two sweeps, so that none shows the second name before our pod leaves.
                (SWEPT_MS - 300_000, others_bind(SECOND, 'a', [10, 244, 0, 4])),
                (100_000, delete_slice("shop/web", 0)),
            ],
        ),
        story(
            "a pod of ours has the address of an egress of others",
            vec![
                (60_000, others_bind(TEAL, 'a', [10, 244, 5, 5])),
                (SWEPT_MS, pod("ops/job-0", "blue", 'a', "10.244.5.5")),
                (60_000, pod("ops/job-1", "blue", 'a', "10.244.5.6")),
            ],
        ),
        story(
            "a pod has the label of an egress of others for a while",
            vec![
                (60_000, others_bind(TEAL, 'a', [10, 244, 5, 5])),
                (SWEPT_MS, pod("ops/job-0", TEAL, 'a', "10.244.5.6")),
                (SWEPT_MS, delete_pod("ops/job-0")),
            ],
        ),
    ]
}

fn story(name: &'static str, more: Vec<(u64, UserAction)>) -> Story {
    let mut steps = vec![
        (0, standard_node('a')),
        (10, standard_node('b')),
        (100, service("shop/web", &[tcp(80, 8080)])),
        (20, slice("shop/web", 0, "10.244.0.4@node-a")),
    ];
    steps.extend(more);
    Story { name, steps, gateway: FirstGateway::Missing, processes: 1, lease: None }
}
