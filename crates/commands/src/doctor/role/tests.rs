//! The table of actions against the shipped role, the calls of the code and the documentation; and what the
//! doctor says about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use sluice_model::call::Method::{Delete, Get, List, PatchTags, Poll, Put, UpdateLocations, UpdateServices};
use sluice_model::call::{Body, Payload};
use sluice_model::effect::Listable;
use sluice_model::plan::Step;

use super::grants::Call::{self, ReadPermissions, ReadUsages, Request};
use super::grants::Target::{
    Gateway, LoadBalancer, Locations, NatGateway, Operation, PublicIp, Registrations, Subnet,
};
use super::*;
use crate::doctor::finding::told;

const ROLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/azure-role.json"));
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/azure-role.md");
const BEGIN: &str = "<!-- actions: written by `cargo xtask bless` -->\n";
const END: &str = "<!-- end of actions -->";

/// The calls of every arm, in one list. The arms are also those of a real match, so a new variant does not
/// compile until its calls are written down here.
macro_rules! calls_of {
    (match $type:ty { $($pattern:pat => $calls:expr),* $(,)? }) => {{
        let _exhaustive = |value: &$type| match value { $($pattern => (),)* };
        let mut all: Vec<Call> = Vec::new();
        $({
            let calls: &[Call] = &$calls;
            all.extend_from_slice(calls);
        })*
        all
    }};
}

/// Everything that can be written to Azure, by what it carries.
fn writes() -> Vec<Call> {
    calls_of!(match Body {
        // Reads and deletions.
        Body::None => [],
        Body::PublicIp(_) => [Request(Put, PublicIp)],
        Body::LoadBalancer(_) => [Request(Put, LoadBalancer)],
        Body::NatGateway(_) => [Request(Put, NatGateway)],
        Body::Gateway(_) | Body::GatewayAsRead(_) => [Request(Put, Gateway)],
        Body::Subnet(_) => [Request(Put, Subnet)],
        Body::Tags(_) => [
            Request(PatchTags, PublicIp),
            Request(PatchTags, LoadBalancer),
            Request(PatchTags, NatGateway),
            Request(PatchTags, Gateway),
        ],
        Body::Services(_) => [Request(UpdateServices, Gateway)],
        Body::Locations(_) => [Request(UpdateLocations, Gateway)],
        // Only tests and the emulator's users write these.
        Body::ForeignLoadBalancer(_) | Body::Container => [],
    })
}

/// Everything that can be read from Azure, by what comes back.
fn reads() -> Vec<Call> {
    calls_of!(match Payload {
        Payload::None | Payload::Error(_) => [],
        Payload::Operation(_) => [Request(Poll, Operation)],
        Payload::PublicIp(_) => [Request(Get, PublicIp)],
        Payload::LoadBalancer(_) => [Request(Get, LoadBalancer)],
        Payload::NatGateway(_) => [Request(Get, NatGateway)],
        Payload::Gateway(_) => [Request(Get, Gateway)],
        Payload::Subnet(_) => [Request(Get, Subnet)],
        Payload::PublicIps(_) => [Request(List, PublicIp)],
        Payload::LoadBalancers(_) => [Request(List, LoadBalancer)],
        Payload::NatGateways(_) => [Request(List, NatGateway)],
        Payload::Registrations(_) => [Request(List, Registrations)],
        Payload::Locations(_) => [Request(List, Locations)],
        // Only tests and the emulator's users read these.
        Payload::Container(_) | Payload::Gateways(_) | Payload::Networks(_) | Payload::Subnets(_) => [],
    })
}

/// What the controller sends for each step of a plan and for each listing. Every write may be polled.
fn by_the_controller() -> Vec<Call> {
    let steps = calls_of!(match Step {
        Step::PutPublicIp { .. } =>
            [Request(Put, PublicIp), Request(Get, PublicIp), Request(Poll, Operation)],
        Step::PutLoadBalancer { .. } => [Request(Get, LoadBalancer), Request(Put, LoadBalancer)],
        Step::PutNatGateway { .. } => [Request(Get, NatGateway), Request(Put, NatGateway)],
        Step::PutGateway { .. } => [Request(Put, Gateway)],
        Step::ClaimGateway { .. } => [Request(Get, Gateway), Request(PatchTags, Gateway)],
        Step::RepairGateway(_) => [Request(Get, Gateway), Request(Put, Gateway)],
        Step::Register(_) | Step::Clear(_) | Step::Unregister(_) => [Request(UpdateServices, Gateway)],
        Step::DeleteLoadBalancer(_) => [Request(Get, LoadBalancer), Request(Delete, LoadBalancer)],
        Step::DeleteNatGateway(_) => [Request(Get, NatGateway), Request(Delete, NatGateway)],
        Step::DeletePublicIp(_) => [Request(Get, PublicIp), Request(Delete, PublicIp)],
        Step::ReleasePublicIp(_) => [Request(Get, PublicIp), Request(PatchTags, PublicIp)],
        Step::Adopt { .. } => [
            Request(Get, PublicIp),
            Request(PatchTags, PublicIp),
            Request(Get, LoadBalancer),
            Request(PatchTags, LoadBalancer)
        ],
        Step::ReadPublicIp(_) => [Request(Get, PublicIp)],
        Step::ReadLoadBalancer(_) => [Request(Get, LoadBalancer)],
        Step::ReadNatGateway(_) => [Request(Get, NatGateway)],
        Step::ReadRegistration(_) => [Request(List, Registrations)],
        Step::AttachSubnet { .. } => [Request(Get, Subnet), Request(Put, Subnet)],
    });
    let listings = calls_of!(match Listable {
        Listable::Foundation => [Request(Get, Gateway), Request(Get, Subnet)],
        Listable::Registrations => [Request(List, Registrations)],
        Listable::Locations => [Request(List, Locations)],
        Listable::LoadBalancers => [Request(List, LoadBalancer)],
        Listable::NatGateways => [Request(List, NatGateway)],
        Listable::PublicIps => [Request(List, PublicIp)],
    });
    [steps, listings].concat()
}

/// The calls that commands make without the engine: by file and, within a file, one entry for each place that
/// makes a request, in the order of the source; reads of documents come last.
const BY_COMMANDS: &[(&str, &[&[Call]])] = &[
    ("cleanup/calls.rs", &[&[Request(Poll, Operation)]]),
    (
        "cleanup/gateway.rs",
        &[
            &[Request(Get, Gateway)],
            &[Request(List, Subnet)],
            &[Request(Get, Gateway)],
            &[Request(Delete, Gateway)],
            &[Request(Get, Subnet)],
            &[Request(Put, Subnet)],
        ],
    ),
    (
        "doctor/azure.rs",
        &[
            &[Request(Get, Gateway), Request(Get, Subnet)],
            &[
                Request(List, LoadBalancer),
                Request(List, NatGateway),
                Request(List, PublicIp),
                Request(List, Registrations),
                Request(List, Locations),
            ],
            &[ReadPermissions],
            &[ReadUsages],
        ],
    ),
    (
        "tags.rs",
        &[
            &[
                Request(Get, PublicIp),
                Request(Get, LoadBalancer),
                Request(Get, NatGateway),
                Request(Get, Gateway),
            ],
            &[
                Request(PatchTags, PublicIp),
                Request(PatchTags, LoadBalancer),
                Request(PatchTags, NatGateway),
                Request(PatchTags, Gateway),
            ],
        ],
    ),
];

/// Every kind of call that the code can make: the vocabulary of requests, and what each part of the code sends.
fn sent() -> BTreeSet<Call> {
    let by_commands = BY_COMMANDS.iter().flat_map(|(_, places)| places.iter().copied().flatten().copied());
    let by_others = [writes(), reads(), by_the_controller()].concat();
    by_others.into_iter().chain(by_commands).collect()
}

/// The action that Azure names after a call: the type of the resource, then what is done.
fn named_after(call: Call) -> String {
    let (method, target) = match call {
        Request(method, target) => (method, target),
        ReadPermissions => return "Microsoft.Authorization/permissions/read".to_owned(),
        ReadUsages => return "Microsoft.Network/locations/usages/read".to_owned(),
    };
    let kind = match target {
        PublicIp => "publicIPAddresses",
        LoadBalancer => "loadBalancers",
        NatGateway => "natGateways",
        Gateway => "serviceGateways",
        Registrations => "serviceGateways/services",
        Locations => "serviceGateways/addressLocations",
        Subnet => "virtualNetworks/subnets",
        Operation => "locations/operations",
    };
    let verb = match method {
        Get | List | Poll => "read",
        Put | PatchTags => "write",
        Delete => "delete",
        UpdateServices => "updateServices/action",
        UpdateLocations => "updateAddressLocations/action",
    };
    format!("Microsoft.Network/{kind}/{verb}")
}

/// How a request looks in the source: its method, or the function that reads a document.
fn word(call: Call) -> String {
    match call {
        Request(method, _) => format!("{method:?}"),
        ReadPermissions | ReadUsages => "read_document".to_owned(),
    }
}

/// The words of all requests in a source file, without those in its tests.
fn words(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: String = code.split_whitespace().collect();
    let made = code.split("Request::").skip(1);
    let made = made.filter_map(|rest| rest.strip_prefix("bare(").or_else(|| rest.strip_prefix("with(")));
    let mut words: Vec<String> = made
        .map(|arguments| arguments.split(',').next().unwrap_or_default())
        .map(|method| method.strip_prefix("Method::").unwrap_or(method).to_owned())
        .collect();
    words.extend(code.matches(".read_document(").map(|_| "read_document".to_owned()));
    words
}

/// The source files below a folder, without those that hold only tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.file_stem().is_some_and(|stem| stem == "tests") {
            true => {}
            false if path.is_dir() => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn the_shipped_role_has_exactly_the_actions_of_the_table() {
    let role: Value = serde_json::from_str(ROLE).unwrap();
    let shipped: Vec<&str> =
        role["Actions"].as_array().unwrap().iter().map(|action| action.as_str().unwrap()).collect();
    let table: Vec<&str> = GRANTS.iter().map(|grant| grant.action).collect();
    let only_in = |one: &[&str], other: &[&str]| -> Vec<String> {
        one.iter().filter(|action| !other.contains(action)).map(|action| (*action).to_owned()).collect()
    };
    assert_eq!(only_in(&shipped, &table), [""; 0], "in deploy/azure-role.json, but in no row of GRANTS");
    assert_eq!(only_in(&table, &shipped), [""; 0], "in GRANTS, but not in deploy/azure-role.json");
    assert_eq!(shipped, table, "an action is listed twice, or in another order");
    assert_eq!(role["NotActions"], json!([]));
}

#[test]
fn every_call_that_the_code_can_make_has_a_row_and_no_row_names_another() {
    let rows: BTreeSet<Call> = GRANTS.iter().flat_map(|grant| grant.calls).copied().collect();
    let sent = sent();
    let without_row: Vec<&Call> = sent.difference(&rows).collect();
    assert!(without_row.is_empty(), "calls that no row of GRANTS names: {without_row:?}");
    let never_sent: Vec<&Call> = rows.difference(&sent).collect();
    assert!(never_sent.is_empty(), "calls in GRANTS that the code never makes: {never_sent:?}");
    for grant in GRANTS {
        assert!(!grant.calls.is_empty() && !grant.scopes.is_empty(), "{grant:?}");
    }
}

#[test]
fn every_call_needs_the_action_that_is_named_after_it() {
    for call in sent() {
        let action = named_after(call);
        let grant = GRANTS.iter().find(|grant| grant.action == action);
        let is_there = grant.is_some_and(|grant| grant.calls.contains(&call));
        assert!(is_there, "{call:?} is not in the row of {action}");
    }
    // Each action is named after one of its calls, is a join of a resource that a write refers to, or is the
    // second way to poll.
    for grant in GRANTS {
        let is_named_after_a_call = grant.calls.iter().any(|call| named_after(*call) == grant.action);
        let is_join = grant.action.ends_with("/join/action");
        let is_second_way = grant.action == "Microsoft.Network/locations/operationResults/read";
        assert!(is_named_after_a_call || is_join || is_second_way, "{grant:?}");
    }
}

#[test]
fn commands_make_no_requests_but_those_that_are_written_down() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources(Path::new(SOURCE)) {
        let words = words(&std::fs::read_to_string(&path).unwrap());
        if !words.is_empty() {
            let name = path.strip_prefix(SOURCE).unwrap().to_str().unwrap().replace('\\', "/");
            found.insert(name, words);
        }
    }
    let expected: BTreeMap<String, Vec<String>> = BY_COMMANDS
        .iter()
        .map(|(name, places)| ((*name).to_owned(), places.iter().map(|calls| word(calls[0])).collect()))
        .collect();
    assert_eq!(found, expected, "update BY_COMMANDS, and GRANTS if a kind of call is new");
    for calls in BY_COMMANDS.iter().flat_map(|(_, places)| *places) {
        assert!(calls.iter().all(|call| word(*call) == word(calls[0])), "{calls:?}");
    }
}

#[test]
fn the_page_shows_the_actions_as_they_are() {
    let mut expected = String::from("\n| action | scope | needed |\n|---|---|---|\n");
    for Grant { action, scopes, why, .. } in GRANTS {
        let scopes: Vec<&str> = scopes.iter().copied().map(scope_word).collect();
        let _ = writeln!(expected, "| `{action}` | {} | {why} |", scopes.join(", "));
    }
    expected.push('\n');
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark where the actions begin");
    let (shown, after) = rest.split_once(END).expect("the page has the mark where the actions end");
    if shown != expected && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, expected, "docs/reference/azure-role.md is behind the code; run `cargo xtask bless`");
}

fn scope_word(scope: RoleScope) -> &'static str {
    match scope {
        RoleScope::ClusterGroup => "cluster",
        RoleScope::NetworkGroup => "network",
        RoleScope::Subscription => "subscription",
    }
}

#[test]
fn stars_cover_what_azure_says_they_cover() {
    let write = "Microsoft.Network/loadBalancers/write";
    for pattern in [
        "*",
        "*/write",
        "microsoft.network/*",
        "Microsoft.Network/loadBalancers/*",
        write,
        "*/loadbalancers/*",
    ] {
        assert!(matches(pattern, write), "{pattern}");
    }
    for pattern in
        ["*/read", "Microsoft.Compute/*", "Microsoft.Network/loadBalancers", "", "Microsoft.Network/*/delete"]
    {
        assert!(!matches(pattern, write), "{pattern}");
    }
}

#[test]
fn the_shipped_role_grants_what_is_needed_in_every_group() {
    let role: Value = serde_json::from_str(ROLE).unwrap();
    let body = json!({"value": [{"actions": role["Actions"], "notActions": []}]});
    let (cluster, network) = (RoleScope::ClusterGroup, RoleScope::NetworkGroup);
    for scopes in [&[cluster][..], &[network], &[cluster, network]] {
        assert!(needed(scopes).len() > 5, "{scopes:?}");
        let said = told(&diagnose("sub", "rg", &needed(scopes), 200, &body));
        assert_eq!(said, format!("✓ permissions in resource group rg: all {} granted", needed(scopes).len()));
    }
    let subscription = needed(&[RoleScope::Subscription]).len();
    assert_eq!(needed(&[cluster, network]).len() + subscription, GRANTS.len());
}

#[test]
fn what_is_missing_is_named_with_its_reason() {
    let needed: Vec<&Grant> = GRANTS
        .iter()
        .filter(|grant| {
            ["Microsoft.Network/loadBalancers/read", "Microsoft.Network/loadBalancers/write"]
                .contains(&grant.action)
        })
        .collect();
    let reader = json!({"value": [{"actions": ["*/read"], "notActions": []}]});
    let contributor =
        json!({"value": [{"actions": ["*"], "notActions": ["*/write"]}, {"actions": ["*/read"]}]});
    for body in [reader, contributor] {
        assert_eq!(
            told(&diagnose("sub", "rg", &needed, 200, &body)),
            "✗ permissions in resource group rg: 1 of 2 missing\n\
             Microsoft.Network/loadBalancers/write: to create and update load balancers\n    \
             → az role definition create --role-definition azure-role.json   # or update, if the role exists\n\
             az role assignment create --role Sluice --assignee CLIENT_ID --scope /subscriptions/sub/resourceGroups/rg"
        );
    }
}

#[test]
fn an_azure_that_does_not_say_is_no_problem_and_no_success() {
    let body = json!({"error": {"code": "AuthorizationFailed"}});
    let said = told(&diagnose("sub", "rg", &needed(&[RoleScope::ClusterGroup]), 403, &body));
    assert_eq!(
        said,
        "– permissions in resource group rg: not checked (403, AuthorizationFailed); needs Microsoft.Authorization/permissions/read"
    );
}

#[test]
fn a_credential_that_azure_does_not_accept_is_no_missing_permission() {
    let body = json!({"error": {"code": "ExpiredAuthenticationToken"}});
    assert_eq!(
        told(&diagnose("sub", "rg", &needed(&[RoleScope::ClusterGroup]), 401, &body)),
        "– permissions in resource group rg: not checked (Azure rejected the credential: 401, ExpiredAuthenticationToken)"
    );
}
