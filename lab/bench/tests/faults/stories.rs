//! The stories: one per fault of the list, and one without any.

use serde_json::{Value, json};
use sluice_bench::request_log::RequestLog;
use sluice_model::names::Scope;

use crate::judge::{self, Wanted};
use crate::scene::{Scene, pod_ip};

/// Calls of the control API: path and body.
pub(crate) type Calls = Vec<(&'static str, Value)>;

/// One story.
#[derive(Clone)]
pub(crate) struct Story {
    /// The fault's name in the list.
    pub(crate) id: &'static str,
    /// What it claims.
    pub(crate) claim: &'static str,
    /// What goes wrong from the beginning, before the controller starts.
    pub(crate) before: fn(&Scope) -> Calls,
    /// What goes wrong once the first edits are done.
    pub(crate) amid: fn(&Scene) -> Calls,
    /// What must be so while the faults last, as told by state and log. It may take a while.
    pub(crate) meanwhile: fn(&Value, &RequestLog, &Wanted) -> anyhow::Result<()>,
    /// What is put right beside the end of all faults.
    pub(crate) mend: fn(&Scene) -> Calls,
    /// An egress that the second edits need besides.
    pub(crate) further_egress: Option<&'static str>,
    /// Somebody else takes things apart, so the log does not tell who was mapped.
    pub(crate) others_meddle: bool,
    /// Writes that put right what others broke.
    pub(crate) repairs: u64,
    /// How many emulated minutes Azure may take to be as it should once the faults are over. Ten
    /// are less than a drift sweep takes to find anything.
    pub(crate) minutes: u64,
    /// How many emulated minutes longer the faults last when all that can be done is done.
    pub(crate) linger_minutes: u64,
    /// Codes that Azure must have answered with, where no rule counts its strikes.
    pub(crate) must_see: &'static [&'static str],
}

/// For what only two drift sweeps find: each kind is looked at every 15 minutes.
pub(crate) const SWEEPS: u64 = 60;
/// For what was parked for so long that people can mend it meanwhile: at first 5 or 10 minutes.
const PARKS: u64 = 45;
/// Pods whose addresses the gateway refuses: one of a Service and one of an egress.
const POISON: [u8; 2] = [3, 12];

impl Story {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.id, self.claim)
    }
}

fn nothing<T>(_: &T) -> Calls {
    Vec::new()
}

fn rules(rules: Value) -> Calls {
    vec![("faults", rules)]
}

fn told(id: &'static str, claim: &'static str, before: fn(&Scope) -> Calls) -> Story {
    Story {
        id,
        claim,
        before,
        amid: nothing,
        meanwhile: |_, _, _| Ok(()),
        mend: nothing,
        further_egress: None,
        others_meddle: false,
        repairs: 0,
        minutes: 10,
        linger_minutes: 0,
        must_see: &[],
    }
}

/// All stories; the first is the one without faults.
pub(crate) fn all() -> Vec<Story> {
    let mut all = vec![told("Z0", "without a fault everything comes and goes", nothing)];
    all.extend(refusals());
    all.extend(lost_and_late());
    all.extend(people());
    all
}

/// Azure says no.
fn refusals() -> Vec<Story> {
    vec![
        told("Z1", "a 429 is waited out, with and without a Retry-After", |_| {
            rules(json!([
                {"fault": "throttled", "retryAfter": 2, "times": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "throttled", "times": 2, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                {"fault": "throttled", "retryAfter": 1, "times": 2, "match": {"call": "UpdateServices"}},
                {"fault": "throttled", "retryAfter": 1, "times": 2, "match": {"call": "UpdateLocations"}},
                {"fault": "throttled", "retryAfter": 1, "times": 2, "match": {"call": "Delete"}},
                {"fault": "throttled", "retryAfter": 1, "nth": 5, "match": {"call": "Poll"}},
            ]))
        }),
        told("Z2", "another operation in the way is waited for", |_| {
            rules(json!([
                {"fault": "anotherOperation", "times": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "anotherOperation", "retryAfter": 1, "times": 1, "match": {"kind": "natGateways", "call": "Put"}},
                {"fault": "anotherOperation", "times": 2, "match": {"call": "UpdateServices"}},
                {"fault": "anotherOperation", "times": 1, "match": {"call": "UpdateLocations"}},
                {"fault": "anotherOperation", "times": 2, "match": {"call": "Delete"}},
            ]))
        }),
        told("Z3", "conflicts and failed preconditions are tried again", |_| {
            rules(json!([
                {"fault": "conflict", "times": 2, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                {"fault": "preconditionFailed", "times": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "conflict", "times": 2, "match": {"call": "UpdateServices"}},
                {"fault": "conflict", "times": 2, "match": {"call": "UpdateLocations"}},
                {"fault": "conflict", "times": 3, "match": {"call": "Delete"}},
            ]))
        }),
        told("Z4", "bursts of 500 and 503 pass", |_| {
            rules(json!([
                {"fault": "serverError", "times": 20, "probability": 0.4, "seed": 1},
                {"fault": "unavailable", "times": 20, "probability": 0.4, "seed": 2},
                {"fault": "unavailable", "retryAfter": 1, "times": 3, "match": {"call": "Delete"}},
            ]))
        }),
        Story {
            minutes: PARKS,
            mend: |_| vec![("quota", json!({"publicIps": 1000, "loadBalancers": 1000}))],
            must_see: &["PublicIPCountLimitReached"],
            ..told("Z12", "a quota that is used up parks, and its end is noticed", |_| {
                // Three are somebody else's already.
                vec![("quota", json!({"publicIps": 5, "loadBalancers": 2}))]
            })
        },
        Story {
            minutes: PARKS,
            amid: |scene| {
                let forbid = json!({"do": "forbid", "scope": scene.id("loadBalancers", &scene.uid("api")), "what": "writes"});
                vec![("tokens/expire", Value::Null), ("tamper", forbid)]
            },
            must_see: &["AuthorizationFailed"],
            ..told("Z13", "lost permissions and expired tokens come back", |_| {
                rules(json!([
                    {"fault": "forbidden", "times": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                    {"fault": "unauthorized", "times": 3},
                    {"fault": "forbidden", "times": 2, "match": {"call": "UpdateLocations"}},
                ]))
            })
        },
        Story {
            minutes: PARKS,
            amid: |scene| {
                let lock = |kind: &str, name: &str, level: &str| json!({"do": "lock", "scope": scene.id(kind, name), "level": level});
                vec![
                    ("tamper", lock("loadBalancers", &scene.uid("web"), "CanNotDelete")),
                    ("tamper", lock("loadBalancers", &scene.uid("api"), "ReadOnly")),
                    ("tamper", lock("natGateways", "red", "CanNotDelete")),
                ]
            },
            must_see: &["ScopeLocked"],
            ..told("Z14", "what is locked waits and is done when the lock is gone", nothing)
        },
        Story {
            minutes: PARKS,
            amid: |scene| {
                let group = format!(
                    "/subscriptions/{}/resourceGroups/{}",
                    scene.scope.subscription, scene.scope.resource_group
                );
                vec![("tamper", json!({"do": "deny", "scope": group}))]
            },
            must_see: &["RequestDisallowedByPolicy"],
            ..told("Z15", "what a policy denies waits and is done when it is allowed", nothing)
        },
        Story {
            meanwhile: |state, _, wanted| judge::all_but(state, wanted, &POISON.map(pod_ip)),
            must_see: &["InvalidAddress"],
            ..told("Z16", "poison addresses do not keep the others", |_| {
                POISON.map(|pod| ("poison", json!({"address": pod_ip(pod)}))).into()
            })
        },
        Story {
            amid: |_| rules(json!([{"fault": "tooLarge", "times": 3, "match": {"call": "UpdateLocations"}}])),
            meanwhile: |_, log, _| judge::sent_in_parts(log),
            ..told("Z17", "a body that is too large is sent in parts", |_| {
                // While the first ones take their time, everything else gathers for the second ones.
                rules(json!([
                    {"fault": "tooLarge", "nth": 2, "match": {"call": "UpdateServices"}},
                    {"fault": "tooLarge", "nth": 2, "match": {"call": "UpdateLocations"}},
                    {"fault": "slowBy", "factor": 20, "nth": 1, "match": {"call": "UpdateServices"}},
                    {"fault": "slowBy", "factor": 40, "nth": 1, "match": {"call": "UpdateLocations"}},
                ]))
            })
        },
        Story {
            minutes: PARKS,
            ..told("Z22", "words, fields and versions that nobody knows break nothing", |_| {
                rules(json!([
                    {"fault": "unknownApiVersion", "times": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                    {"fault": "unknownEnum", "times": 5, "match": {"call": "Get"}},
                    {"fault": "unknownEnum", "times": 5, "match": {"call": "Put"}},
                    {"fault": "unknownEnum", "times": 3, "match": {"call": "Poll"}},
                    {"fault": "unknownField", "probability": 0.5, "seed": 3},
                ]))
            })
        },
    ]
}

/// Azure's answers and deeds do not fit each other, or take too long.
fn lost_and_late() -> Vec<Story> {
    vec![
        told("Z5", "what was applied without an answer is found and not done twice", |_| {
            rules(json!([
                {"fault": "noAnswer", "nth": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                {"fault": "hang", "when": "after", "nth": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "noAnswer", "nth": 1, "match": {"kind": "natGateways", "call": "Put"}},
                {"fault": "reset", "when": "after", "nth": 2, "match": {"call": "UpdateServices"}},
                {"fault": "noAnswer", "nth": 1, "match": {"call": "UpdateLocations"}},
                {"fault": "reset", "nth": 3, "match": {"call": "UpdateLocations"}},
                {"fault": "noAnswer", "nth": 1, "match": {"call": "Delete"}},
                {"fault": "reset", "nth": 1, "match": {"kind": "publicIPAddresses", "call": "Delete"}},
                {"fault": "truncatedBody", "nth": 3, "match": {"call": "Poll"}},
            ]))
        }),
        Story {
            others_meddle: true,
            repairs: 20,
            minutes: SWEEPS,
            ..told("Z6", "what was answered but not applied is found by the sweeps", |_| {
                rules(json!([
                    {"fault": "notApplied", "nth": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                    {"fault": "notApplied", "nth": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                    {"fault": "notApplied", "nth": 1, "match": {"call": "UpdateServices"}},
                    {"fault": "notApplied", "nth": 1, "match": {"call": "UpdateLocations"}},
                    {"fault": "notApplied", "nth": 1, "match": {"call": "Delete"}},
                ]))
            })
        },
        Story {
            // Together longer than the operation behind a PUT is waited for.
            linger_minutes: 12,
            // Who waits for another operation asks again some twenty times in two minutes, and three last.
            repairs: 500,
            meanwhile: |_, log, _| judge::given_up(log),
            ..told("Z7", "an operation that never ends is given up and looked at", |_| {
                rules(json!([
                    {"fault": "neverEnds", "nth": 1, "match": {"kind": "loadBalancers", "call": "Put"}},
                    {"fault": "neverEnds", "nth": 2, "match": {"call": "UpdateServices"}},
                    {"fault": "neverEnds", "nth": 2, "match": {"call": "UpdateLocations"}},
                ]))
            })
        },
        told("Z8", "operations that fail or are canceled are tried again", |_| {
            rules(json!([
                {"fault": "fails", "nth": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                {"fault": "canceled", "nth": 1, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "fails", "nth": 1, "match": {"call": "UpdateServices"}},
                {"fault": "fails", "nth": 1, "match": {"call": "UpdateLocations"}},
                {"fault": "canceled", "nth": 1, "match": {"call": "Delete"}},
            ]))
        }),
        told("Z9", "a resource that ends as Failed is written again", |_| {
            rules(json!([
                {"fault": "provisioningFails", "nth": 1, "match": {"kind": "publicIPAddresses", "call": "Put"}},
                {"fault": "provisioningFails", "nth": 2, "match": {"kind": "loadBalancers", "call": "Put"}},
                {"fault": "provisioningFails", "nth": 1, "match": {"kind": "natGateways", "call": "Put"}},
            ]))
        }),
        told("Z10", "reads that lag behind mislead nobody", |_| {
            rules(json!([
                {"fault": "lag", "ms": 9000, "match": {"call": "Put"}},
                {"fault": "lag", "ms": 9000, "match": {"call": "Delete"}},
                {"fault": "lag", "ms": 9000, "match": {"call": "UpdateServices"}},
            ]))
        }),
        Story {
            // Long enough for a sweep of every kind.
            linger_minutes: 20,
            amid: |_| {
                rules(json!([
                    {"fault": "shortPage", "items": 0, "times": 4, "match": {"call": "List"}},
                    {"fault": "failPage", "times": 6, "match": {"call": "List"}},
                ]))
            },
            ..told("Z11", "short and failing pages delete nothing", |_| {
                rules(json!([
                    {"fault": "failPage", "nth": 2, "match": {"call": "List"}},
                    {"fault": "shortPage", "items": 0, "times": 3, "match": {"call": "List"}},
                ]))
            })
        },
        Story {
            meanwhile: |_, log, _| judge::is_slow(log),
            ..told("Z21", "fifty times slower is only slower", |_| vec![("slow", json!({"factor": 50}))])
        },
    ]
}

/// Somebody else is at work in the same subscription.
fn people() -> Vec<Story> {
    vec![
        Story {
            others_meddle: true,
            repairs: 20,
            minutes: SWEEPS,
            amid: |scene| {
                let (web, api) = (scene.uid("web"), scene.uid("api"));
                let gateway = scene.scope.gateway_id().to_string();
                let rules = json!([{"protocol": "Tcp", "frontendPort": 1, "backendPort": 1}]);
                vec![
                    (
                        "tamper",
                        json!({"do": "editRules", "id": scene.id("loadBalancers", &api), "rules": rules}),
                    ),
                    ("tamper", json!({"do": "delete", "id": scene.id("loadBalancers", &web)})),
                    (
                        "tamper",
                        json!({"do": "delete", "id": scene.id("publicIPAddresses", &format!("{api}-pip"))}),
                    ),
                    ("tamper", json!({"do": "unregister", "gateway": gateway, "name": "blue"})),
                    ("tamper", json!({"do": "delete", "id": scene.id("natGateways", "blue")})),
                    (
                        "tamper",
                        json!({
                            "do": "addAddress", "gateway": gateway, "location": "10.1.0.9",
                            "address": "10.100.9.9", "services": [api],
                        }),
                    ),
                ]
            },
            ..told("Z18", "what others delete and edit is made good", nothing)
        },
        Story {
            further_egress: Some("green"),
            repairs: 4,
            minutes: SWEEPS,
            amid: |scene| {
                let body = judge::nat_gateway(&[]);
                vec![("tamper", json!({"do": "put", "id": scene.id("natGateways", "green"), "body": body}))]
            },
            mend: |scene| vec![("tamper", json!({"do": "delete", "id": scene.id("natGateways", "green")}))],
            ..told("Z19", "resources of others with names like ours are left alone", nothing)
        },
        Story {
            others_meddle: true,
            repairs: 20,
            minutes: SWEEPS,
            amid: |scene| {
                let gateway = scene.scope.gateway_id().to_string();
                vec![("tamper", json!({"do": "delete", "id": gateway}))]
            },
            ..told("Z20", "a gateway that was deleted is made again, with all that was in it", nothing)
        },
    ]
}
