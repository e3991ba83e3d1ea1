//! Stories about the service gateway itself.

use super::words::*;
use super::{FirstGateway, Story};

pub(super) fn stories() -> Vec<Story> {
    vec![
        story("a gateway of others is claimed and loses nothing of theirs", FirstGateway::OfOthers),
        story(
            "a failed gateway of others is claimed and written back as it was",
            FirstGateway::OfOthersFailed,
        ),
    ]
}

fn story(name: &'static str, gateway: FirstGateway) -> Story {
    let steps = vec![
        (0, standard_node('a')),
        (100, service("shop/web", &[tcp(80, 8080)])),
        (20, slice("shop/web", 0, "10.244.0.4@node-a")),
        (20, pod("shop/job-0", "blue", 'a', "10.244.0.5")),
        (60_000, delete_service("shop/web")),
    ];
    Story { name, steps, gateway, processes: 1, lease: None }
}
