//! The list of stories that were promised, as data: the words of the page, and what tells each of them.
//!
//! `--list` fails when a promise has no story, and when a story stands for no promise, so neither can
//! be forgotten. A story that is not written yet is missing here, and says so; there are no stand-ins.

use std::collections::BTreeSet;

use crate::story::Story;

/// One promise.
pub(crate) struct Promise {
    /// In the words of the page.
    pub(crate) says: &'static str,
    /// The stories that keep it.
    pub(crate) stories: &'static [&'static str],
}

const fn promise(says: &'static str, stories: &'static [&'static str]) -> Promise {
    Promise { says, stories }
}

/// All of them, in the order of the page.
pub(crate) const PAGE: &[Promise] = &[
    promise("service with early and late endpoints", &["early-and-late-endpoints"]),
    promise("many services at once (60)", &["sixty-services"]),
    promise(
        "port, protocol and idle-timeout edits, three rapid edits converge to the last",
        &["port-edit", "protocol-edit", "idle-timeout-edit", "three-rapid-edits"],
    ),
    promise("add/remove ports", &["ports-added-and-removed"]),
    promise("label-only edit makes no write", &["label-only-edit"]),
    promise("LoadBalancer→ClusterIP→LoadBalancer, slow and fast", &["toggle-slow", "toggle-fast"]),
    promise("delete and recreate with the same name", &["same-name-again"]),
    promise("two services sharing pods", &["two-services-share-pods"]),
    promise("selector swap", &["selector-swap"]),
    promise(
        ">100 endpoints over several slices, endpoints moving between slices",
        &["many-slices", "endpoints-move-between-slices"],
    ),
    promise("readiness flapping", &["readiness-flaps"]),
    promise("all endpoints terminating", &["all-endpoints-terminating"]),
    promise("node gone, node IP change, late node", &["node-gone", "node-moves", "late-node"]),
    promise("IPv6 and dual-stack nodes", &["ipv6-service", "dual-stack-nodes"]),
    promise(
        "UDP, multi-port, TCP+UDP on one port",
        &["udp-service", "many-ports", "tcp-and-udp-on-one-port"],
    ),
    promise(
        "every rejected spec gets its event and condition and costs nothing",
        &[
            "rejected-specs",
            "rejected-edit-of-a-live-service",
            "rejected-while-it-is-created",
            "annotations-without-effect",
        ],
    ),
    promise("named ports resolved", &["named-ports"]),
    promise("foreign load balancer class ignored", &["foreign-class", "no-class-of-our-own"]),
    promise("egress: first pod", &["egress-first-pod"]),
    promise("egress: five early pods", &["egress-five-early-pods"]),
    promise("egress: scale 10→30→5", &["egress-scale"]),
    promise("egress: recreate rollout with linger keeps the IP", &["egress-linger-keeps-the-ip"]),
    promise("egress: last pod without linger", &["egress-last-pod"]),
    promise("egress: return", &["egress-return"]),
    promise("egress: label change A→B→A", &["egress-label-there-and-back"]),
    promise("egress: label removed", &["egress-label-removed"]),
    promise("egress: pod both egress and backend", &["egress-and-backend"]),
    promise("egress: same pod name with new UID", &["egress-same-pod-name"]),
    promise("egress: pod IP reused", &["egress-ip-reused"]),
    promise("egress: terminating pods", &["egress-terminating-pods"]),
    promise("egress: finished Job pods", &["egress-finished-jobs"]),
    promise("egress: hostNetwork", &["egress-host-network"]),
    promise("egress: invalid and reserved labels", &["egress-bad-labels"]),
    promise(
        "egress: namespaces that may not, and more than are allowed",
        &["egress-namespaces", "egress-max"],
    ),
    promise("egress: namespace deletion while busy", &["egress-namespace-deleted"]),
    promise(
        "someone deletes the LB, the public IP, the registration, an address, the whole gateway behind our back",
        &[
            "tamper-load-balancer",
            "tamper-public-ip",
            "tamper-nat-gateway",
            "tamper-tags",
            "wiped-tags",
            "tamper-registration",
            "tamper-address",
            "tamper-gateway",
            "tamper-status",
        ],
    ),
    promise("foreign NAT gateways and public IPs named like ours stay untouched", &["foreign-names"]),
    promise("addresses of others in the gateway keep their names", &["addresses-of-others"]),
    promise(
        "a changed cluster id or class does not tear everything down (brake)",
        &["changed-cluster-id", "changed-class"],
    ),
    promise(
        "what users delete is not held by a restart or leader change; what is held is allowed by `sluice allow-deletion`",
        &["egresses-deleted-at-a-restart", "egresses-deleted-at-a-leader-change", "mass-deletion-allowed"],
    ),
    promise(
        "missing gateway, unattached subnet, default outbound ensured; a foreign default untouched",
        &["missing-gateway", "unattached-subnet", "default-outbound", "foreign-default-outbound"],
    ),
    promise("two replicas: leader killed, leader frozen", &["leader-killed", "leader-frozen"]),
    promise("SIGTERM in mid-batch", &["terminated-in-a-batch"]),
    promise("API server restarted", &["api-server-restarted", "api-server-away"]),
    promise(
        "emulator restarted, throttling, 5xx bursts, 403 for a while",
        &["emulator-restarted", "throttling", "server-errors", "forbidden-for-a-while"],
    ),
    promise("upgrade with existing state: no write", &["upgrade-without-a-write"]),
    promise("orphan removal by tag; stuck finalizers", &["leftovers", "inherited-finalizers"]),
    promise("a gateway of others, there and back: nothing changes but tags", &["there-and-back"]),
    promise(
        "the controller under test always uses the token of the shipped ClusterRole, never admin",
        &["only-what-is-granted"],
    ),
    promise(
        "10,000 services with 150,000 addresses made within 300 MiB and 100 file descriptors; a restart and a leader \
         change then write nothing; 2,000 deletions with 200 workers keep the lease",
        &["ten-thousand-services"],
    ),
    promise(
        "broken config, no API server, no credentials, no RBAC, a missing subnet: one clear message each",
        &["broken-config", "no-api-server", "no-credentials", "no-permissions", "missing-subnet"],
    ),
];

/// Promises that nobody keeps, and stories that keep none.
pub(crate) fn gaps(stories: &[&Story]) -> Vec<String> {
    let told: BTreeSet<&str> = stories.iter().map(|story| story.name).collect();
    let promised: BTreeSet<&str> = PAGE.iter().flat_map(|it| it.stories.iter().copied()).collect();
    let missing = PAGE.iter().flat_map(|promise| {
        let missing = promise.stories.iter().filter(|name| !told.contains(*name));
        missing.map(|name| format!("{name} is missing; it is promised by {:?}", promise.says))
    });
    let idle = told.difference(&promised);
    missing.chain(idle.map(|name| format!("{name} keeps no promise of the page"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_story_and_an_idle_one_are_both_gaps() {
        let story = |name| Story::new(name, "does nothing", |_| Box::pin(async { Ok(()) }));
        let all: Vec<Story> = PAGE.iter().flat_map(|it| it.stories).map(|name| story(name)).collect();
        let whole: Vec<&Story> = all.iter().collect();
        assert_eq!(gaps(&whole), Vec::<String>::new());
        assert_eq!(gaps(&whole[1..]).len(), 1);
        let idle = story("never-promised");
        assert!(gaps(&[whole, vec![&idle]].concat())[0].contains("keeps no promise"));
    }

    #[test]
    fn no_story_is_promised_twice() {
        let mut names: Vec<&str> = PAGE.iter().flat_map(|it| it.stories.iter().copied()).collect();
        let number = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), number);
    }
}
