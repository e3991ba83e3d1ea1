//! Ten kinds of trouble, each read side by side in everything that reports it: the condition of the Service, what
//! `sluice status` and `sluice explain` print, the dashboard's findings and the metrics. `--nocapture` prints the table.

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use sluice_controller::admin::{Access, ServeLimits, serve};
use sluice_controller::{Monotonic, Standing};
use sluice_model::call::{Body, Method, Request};
use sluice_model::kube::ServiceObject;
use sluice_model::{Event, ObjectName};
use sluice_view::overview::Role;
use tokio::net::TcpListener;

use crate::azure::{Behaviour, SmallAzure};
use crate::sluice;
use crate::world::{World, is_put_of};

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    AddressUpdatesFail,
    DeletionIsStuck,
    AddressIsRefused,
    QuotaIsUsedUp,
    RightIsMissing,
    GuardHolds,
    LeaderIsLost,
    AzureIsUnreachable,
    ApiServerIsUnreachable,
    TagsAreRemoved,
}

/// What one place has to say.
enum Cell {
    /// These words.
    Says(&'static str),
    /// It cannot speak of this; why.
    Cannot(&'static str),
}
use Cell::{Cannot, Says};

struct Row {
    trouble: Trouble,
    /// Provisioning, then Serving.
    condition: Cell,
    status: Cell,
    explain: Cell,
    dashboard: Cell,
    metric: Cell,
}

const TABLE: [Row; 10] = [
    Row {
        trouble: Trouble::AddressUpdatesFail,
        condition: Says("true AzureUnavailable Addresses, true Provisioned Resources"),
        status: Says("AzureUnavailable (SGW0013): 4 of 6 addresses are not programmed in Azure"),
        explain: Says("(SGW0013): 4 of 6 addresses are not programmed in Azure"),
        dashboard: Says("1 Service waiting because Azure does not complete a request: shop/web."),
        metric: Says("services_in_trouble{reason=\"AzureUnavailable\"} 1"),
    },
    Row {
        trouble: Trouble::DeletionIsStuck,
        condition: Says("true AzureUnavailable Deletion, false AzureUnavailable Deletion"),
        status: Says(
            "AzureUnavailable (SGW0013): Deletion is waiting for 2 addresses to be removed from the gateway",
        ),
        explain: Says("(SGW0013): Deletion is waiting for 2 addresses to be removed from the gateway"),
        dashboard: Says("1 Service waiting because Azure does not complete a request: shop/web."),
        metric: Says("services_in_trouble{reason=\"AzureUnavailable\"} 1"),
    },
    Row {
        trouble: Trouble::AddressIsRefused,
        condition: Says("true Rejected Addresses, true Provisioned Resources"),
        status: Says(
            "Rejected (SGW0012): 1 of 6 addresses are not programmed in Azure. Azure rejected 1 address",
        ),
        explain: Says("(SGW0012): 1 of 6 addresses are not programmed in Azure. Azure rejected 1 address"),
        dashboard: Says("Azure rejects 1 address of 1 Service: shop/web."),
        metric: Says("services_in_trouble{reason=\"Rejected\"} 1"),
    },
    Row {
        trouble: Trouble::QuotaIsUsedUp,
        condition: Says("true QuotaExceeded Resources, false QuotaExceeded Resources"),
        status: Says("QuotaExceeded (SGW0008): PublicIPCountLimitReached"),
        explain: Says("(SGW0008): PublicIPCountLimitReached"),
        dashboard: Says("1 Service waiting for Azure quota: shop/api."),
        metric: Says("services_in_trouble{reason=\"QuotaExceeded\"} 1"),
    },
    Row {
        trouble: Trouble::RightIsMissing,
        condition: Says("true Forbidden Resources, false Forbidden Resources"),
        status: Says("Forbidden (SGW0009): AuthorizationFailed"),
        explain: Says("(SGW0009): AuthorizationFailed"),
        dashboard: Says("1 Service denied by Azure: shop/api."),
        metric: Says("services_in_trouble{reason=\"Forbidden\"} 1"),
    },
    Row {
        trouble: Trouble::GuardHolds,
        condition: Says("true MassDeletionHeld Resources, true Provisioned Resources"),
        status: Says("MassDeletionHeld (SGW0016): Deletion held by the mass-deletion guard"),
        explain: Says("(SGW0016): Deletion held by the mass-deletion guard"),
        dashboard: Says("The mass-deletion guard holds 7 deletions"),
        metric: Says("services_in_trouble{reason=\"MassDeletionHeld\"} 7"),
    },
    Row {
        trouble: Trouble::LeaderIsLost,
        condition: Cannot("only a leader writes conditions; they stay as the last one wrote them"),
        status: Says("sluice-0 is not the leader, so trouble is unknown"),
        explain: Says("The replica that answered is on standby: it watches Kubernetes and makes no changes."),
        dashboard: Says("This replica does not know the leader yet."),
        metric: Says("leader 0"),
    },
    Row {
        trouble: Trouble::AzureIsUnreachable,
        condition: Says("true AzureUnavailable Resources, false AzureUnavailable Resources"),
        status: Says("AzureUnavailable (SGW0013): ServiceUnavailable"),
        explain: Says("(SGW0013): ServiceUnavailable"),
        dashboard: Says("1 Service waiting because Azure does not complete a request: shop/api."),
        metric: Says("azure_listings_failing 1"),
    },
    Row {
        trouble: Trouble::ApiServerIsUnreachable,
        condition: Cannot("the API server that would store it does not answer"),
        status: Says("Watch of services: connection refused."),
        explain: Says("The watch on services is failing: connection refused."),
        dashboard: Says("The watch on services is failing: connection refused."),
        metric: Says("watch_in_trouble{kind=\"services\"} 1"),
    },
    Row {
        trouble: Trouble::TagsAreRemoved,
        condition: Says("true Forbidden Resources, true Provisioned Resources"),
        status: Says("Forbidden (SGW0009): tagging /subscriptions/sub"),
        explain: Says("failed: AuthorizationFailed (forbidden)"),
        dashboard: Says("1 Service denied by Azure: shop/web."),
        metric: Says("services_in_trouble{reason=\"Forbidden\"} 1"),
    },
];

/// The conditions of a Service that is as desired.
const FINE: &str = "false Provisioned Resources, true Provisioned Resources";

/// What Azure does with a request while something is broken.
fn behaviour(broken: Option<Trouble>, request: &Request) -> Behaviour {
    let is_update = request.method == Method::UpdateLocations;
    let has_poison = || match &request.body {
        Body::Locations(updates) => {
            updates.iter().flat_map(|it| &it.addresses).any(|it| it.address == address(1))
        }
        _ => false,
    };
    match broken {
        Some(Trouble::AddressUpdatesFail | Trouble::DeletionIsStuck) if is_update => {
            Behaviour::Refuse(500, "InternalServerError", "an error occurred")
        }
        Some(Trouble::AddressIsRefused) if is_update && has_poison() => {
            Behaviour::Refuse(400, "InvalidRequest", "the address is not in the subnet")
        }
        Some(Trouble::QuotaIsUsedUp) if is_put_of(request, "publicIPAddresses") => {
            Behaviour::Refuse(400, "PublicIPCountLimitReached", "no more public IPs")
        }
        Some(Trouble::RightIsMissing) if is_put_of(request, "publicIPAddresses") => {
            Behaviour::Refuse(403, "AuthorizationFailed", "no authorization to perform the action")
        }
        Some(Trouble::TagsAreRemoved) if request.method == Method::PatchTags => {
            Behaviour::Refuse(403, "AuthorizationFailed", "no authorization to perform the action")
        }
        Some(Trouble::AzureIsUnreachable) => Behaviour::Refuse(503, "ServiceUnavailable", "try again"),
        _ => Behaviour::Ordinary,
    }
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 244, 0, last))
}

fn endpoints(world: &World, lasts: impl Iterator<Item = u8>) {
    let all: Vec<(IpAddr, &str)> = lasts.map(|last| (address(last), "node-a")).collect();
    world.cluster.apply_endpoints(&ObjectName::new("shop", "web"), &all);
}

/// A world that is as desired, and then has this trouble for long enough; with the Service to ask for.
async fn broken(trouble: Trouble) -> (World, String) {
    let fault: Arc<Mutex<Option<Trouble>>> = Arc::default();
    let script = {
        let fault = Arc::clone(&fault);
        move |request: &Request| behaviour(*fault.lock().unwrap(), request)
    };
    let clock = Monotonic::start();
    let azure = SmallAzure::new(clock, script);
    let world = World::over(clock, Arc::clone(&azure), true, Access::default());
    world.lead().await;
    world.apply("shop", "web");
    endpoints(&world, 2..4);
    world.published(1).await;
    world.until(|all| all.iter().all(|seen| seen.addresses_programmed == 2)).await;
    *fault.lock().unwrap() = Some(trouble);
    let minute = Duration::from_secs(60);
    match trouble {
        Trouble::AddressUpdatesFail => endpoints(&world, 2..8),
        Trouble::AddressIsRefused => endpoints(&world, 1..7),
        Trouble::DeletionIsStuck => world.cluster.delete_service(&ObjectName::new("shop", "web")),
        Trouble::QuotaIsUsedUp | Trouble::RightIsMissing => world.apply("shop", "api"),
        Trouble::AzureIsUnreachable => {
            world.apply("shop", "api");
            // Drift is looked for every quarter of an hour.
            world.wait(20 * minute).await;
        }
        Trouble::GuardHolds => {
            for name in ["a", "b", "c", "d", "e", "f"] {
                world.apply("shop", name);
            }
            world.published(7).await;
            world.handle.stop();
            world.ended().await;
            // For a controller with another class they are not ours any more.
            let next = next_world(&world, azure, |service| service.selected = false);
            next.lead().await;
            next.until(|all| all.iter().filter(|seen| seen.held.is_some()).count() == 7).await;
            next.wait(minute).await;
            return (next, "shop/web".into());
        }
        Trouble::LeaderIsLost => {
            world.handle.post(Event::LeadershipLost).await.unwrap();
            world.ended().await;
            for path in ["/", "/api/v1/overview", "/api/v1/services/shop/web/explain"] {
                assert_eq!(world.ask(path).await.0, StatusCode::SERVICE_UNAVAILABLE, "{path}");
            }
            // The other replica, while the lease runs out.
            let next = next_world(&world, azure, |_| {});
            next.cluster.list_all();
            next.stand(Standing { role: Role::Candidate, leader: None });
            next.until(|all| all.len() == 1).await;
            return (next, "shop/web".into());
        }
        Trouble::ApiServerIsUnreachable => {
            *world.watch_trouble.lock().unwrap() = Some("connection refused".into());
        }
        Trouble::TagsAreRemoved => {
            endpoints(&world, 0..0);
            azure.untag_load_balancers();
            world.wait(40 * minute).await;
        }
    }
    world.wait(minute).await;
    let is_new = world.cluster.services().iter().any(|it| &*it.name.name == "api");
    (world, if is_new { "shop/api".into() } else { "shop/web".into() })
}

/// The next process: the same Azure, and the Services as the last one left them, but for a change.
fn next_world(last: &World, azure: Arc<SmallAzure>, change: impl Fn(&mut ServiceObject)) -> World {
    let next = World::over(last.clock, azure, true, Access::default());
    for mut service in last.cluster.services() {
        change(&mut service);
        next.cluster.restore_service(service);
    }
    next
}

/// What all places say, as text.
struct Said {
    condition: String,
    status: String,
    /// The exit code of `sluice status --check`.
    check: i32,
    explain: String,
    dashboard: String,
    metric: String,
}

async fn said(world: &World, name: &str) -> Said {
    let condition = world.cluster.services().into_iter().find(|it| it.name.to_string() == *name);
    let condition = condition.map(|object| {
        let words = object.conditions.iter().map(|it| format!("{} {} {:?}", it.holds, it.reason, it.concern));
        words.collect::<Vec<_>>().join(", ")
    });

    // The commands are processes, so the clock runs while they do.
    tokio::time::resume();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(serve(listener, None, world.api.clone(), ServeLimits::API, pending()));
    let (check, status, _) = sluice(&["status", "--check", "-o", "wide", "--address", &address]).await;
    let (_, explain, _) = sluice(&["explain", &format!("service/{name}"), "--address", &address]).await;
    serving.abort();
    stop_the_clock();

    let (_, html) = world.ask("/").await;
    let from = html.find("<ul id=\"findings\"").unwrap();
    let findings = &html[from..];
    let findings = &findings[..findings.find("</ul>").unwrap()];

    let (_, metrics) = world.send(&world.health, "GET", "/metrics", &[]).await;
    Said {
        condition: condition.unwrap_or_default(),
        status,
        check,
        explain,
        dashboard: findings.into(),
        metric: metrics
            .lines()
            .filter_map(|line| line.strip_prefix("sluice_"))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// Puts the test back to where `start_paused` began it.
#[expect(
    clippy::disallowed_methods,
    reason = "this is a test, which stops the clock again after it let it run"
)]
fn stop_the_clock() {
    tokio::time::pause();
}

/// A text without its tags.
fn plain(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<String>().replace("&#39;", "'")
}

/// From the words to the end of their line, if the text has them.
fn told<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.find(words).and_then(|at| text[at..].lines().next())
}

#[tokio::test(start_paused = true)]
async fn every_trouble_is_said_in_every_place_that_can_say_it() {
    let mut wrong = Vec::new();
    let mut table = vec![
        "| trouble | condition | status | explain | dashboard | metric |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for row in TABLE {
        let trouble = row.trouble;
        let (world, name) = broken(trouble).await;
        let said = said(&world, &name).await;
        let mut line = format!("| {trouble:?} |");
        let cells = [
            ("condition", row.condition, said.condition),
            ("status", row.status, said.status.clone()),
            ("explain", row.explain, said.explain),
            ("dashboard", row.dashboard, plain(&said.dashboard)),
            ("metric", row.metric, format!("\n{}\n", said.metric)),
        ];
        for (place, cell, text) in cells {
            match cell {
                Says(words) => match told(&text, words) {
                    Some(told) => line += &format!(" {} |", told.trim()),
                    None => wrong.push(format!("{trouble:?}: {place} does not say {words:?}, but:\n{text}")),
                },
                Cannot(why) => {
                    line += &format!(" cannot: {why} |");
                    if place != "condition" || text != FINE {
                        wrong.push(format!("{trouble:?}: {place} can speak of it:\n{text}"));
                    }
                }
            }
        }
        table.push(line);
        if said.status.contains("none in trouble") || said.check != 2 {
            wrong.push(format!("{trouble:?}: status ends with {} and says:\n{}", said.check, said.status));
        }
        if said.dashboard.contains("<li class=\"fine\">") {
            wrong.push(format!("{trouble:?}: the dashboard says that all is fine"));
        }
    }
    println!("{}", table.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_world_without_trouble_says_none() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    endpoints(&world, 2..4);
    world.published(1).await;
    world.until(|all| all.iter().all(|seen| seen.addresses_programmed == 2)).await;
    let said = said(&world, "shop/web").await;
    assert_eq!(said.condition, FINE);
    assert!(said.status.ends_with("\n1 Service and 0 egresses; none in trouble.\n"), "{}", said.status);
    assert_eq!(said.check, 0);
    assert!(said.explain.contains("In sync for "), "{}", said.explain);
    assert!(said.dashboard.contains("<li class=\"fine\">"), "{}", said.dashboard);
    let counted = said.metric.lines().filter(|line| line.starts_with("services_in_trouble{"));
    assert!(counted.clone().count() > 10 && counted.clone().all(|line| line.ends_with(" 0")));
}
