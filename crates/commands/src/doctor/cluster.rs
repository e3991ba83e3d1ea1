//! The API server: whether it answers, what it lets us do, and what it has.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event as KubeEvent, Service};
use kube::api::{Api, ListParams};
use kube::client::Body;
use sluice_k8s::access::{self, Need};
use sluice_k8s::connect::{self, Connection};
use sluice_k8s::lease::Place;
use sluice_k8s::strings::{ADMISSION_POLICY, CLOUD_CONTROLLER_MANAGER_LEASE, PUBLISHED_IP};
use sluice_k8s::watch::{ListError, list_all};
use sluice_model::Event;
use sluice_model::event::Relist;

use super::clock;
use super::finding::{Finding, Group};
use super::rivals::{LeaseFacts, ServiceFacts};
use crate::config::{Config, ConfigArguments};
use crate::lease;

const GROUP: Group = Group::Kubernetes;
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// `ipMode` in a Service's status, and admission policies, are there from this version on.
const MINOR_MIN: u32 = 30;
/// What the service controller of Kubernetes calls itself in its events.
const SERVICE_CONTROLLER: &str = "service-controller";

/// A cluster that answers.
pub(super) struct Cluster {
    pub(super) connection: Connection,
    /// What time the API server has; ours where it does not say.
    now: SystemTime,
    /// A permission to list is missing, and that has been said.
    may_not_list: bool,
}

/// Connects, and looks at version, clock and permissions.
pub(super) async fn look(
    arguments: &ConfigArguments,
    config: Option<&Config>,
) -> (Vec<Finding>, Option<Cluster>) {
    let connected = connect::connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref()).await;
    let connection = match connected {
        Ok(connection) => connection,
        Err(error) => {
            let whole = error.to_string();
            let (what, remedy) =
                whole.split_once("; ").unwrap_or((&whole, "check --kubeconfig and --context"));
            return (vec![Finding::problem(GROUP, what, remedy)], None);
        }
    };
    let mut findings = Vec::new();
    let mut now = SystemTime::now();
    match greet(&connection).await {
        Err(why) => findings.push(Finding::problem(
            GROUP,
            format!("API server {}: version unknown ({why})", connection.host),
            "run `kubectl get --raw /version` and check the server URL in the kubeconfig",
        )),
        Ok(greeting) => {
            findings.push(version(&connection.host, &greeting.version));
            findings.extend(clock::diagnose(GROUP, "the API server", greeting.date.as_deref(), now));
            now = greeting.date.and_then(|date| httpdate::parse_http_date(&date).ok()).unwrap_or(now);
        }
    }
    let namespace = lease_namespace(config, &connection);
    let has_election = config.is_none_or(|config| config.leader_election.enabled);
    let needs = access::needs(has_election.then_some(&namespace));
    let missing = access::missing(&connection.client, &needs).await.map_err(|error| error.to_string());
    let may_not_list = missing.as_ref().is_ok_and(|them| them.iter().any(|need| need.verb == "list"));
    findings.extend(permissions(needs.len(), missing));
    findings.extend(policy(admission_policy(&connection).await));
    (findings, Some(Cluster { connection, now, may_not_list }))
}

struct Greeting {
    version: String,
    date: Option<String>,
}

async fn greet(connection: &Connection) -> Result<Greeting, String> {
    let request = http::Request::get("/version").body(Body::empty()).map_err(|error| error.to_string())?;
    let answer = timely(connection.client.send(request)).await?;
    let date = answer.headers().get("date").and_then(|it| it.to_str().ok()).map(str::to_owned);
    let bytes = timely(answer.into_body().collect_bytes()).await?;
    let info: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok(Greeting { version: info["gitVersion"].as_str().unwrap_or_default().to_owned(), date })
}

fn version(host: &str, version: &str) -> Finding {
    let minor = version.strip_prefix("v1.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    match minor {
        Some(minor) if minor < MINOR_MIN => Finding::warning(
            GROUP,
            format!("API server {host}: reachable ({version}, older than v1.{MINOR_MIN})"),
            format!(
                "upgrade Kubernetes to v1.{MINOR_MIN} or later; older versions lack admission policies and ipMode"
            ),
        ),
        _ => Finding::good(GROUP, format!("API server {host}: reachable ({version})")),
    }
}

/// How to get the Kubernetes permissions that are missing.
pub(crate) const GRANT: &str = "apply the ClusterRole and Role of Sluice (`kubectl apply -f sluice.yaml`); \
                                `kubectl auth can-i --list` lists what the account has";

/// A permission in words: `patch services/status at the cluster scope`.
pub(crate) fn permission(need: &Need) -> String {
    let name = need.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    let scope = match &need.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "at the cluster scope".to_owned(),
    };
    format!("{} {}{name} {scope}", need.verb, need.what())
}

/// What does not work without a permission, if Sluice runs without it.
pub(crate) fn impact(need: &Need) -> Option<&'static str> {
    need.is_bearable().then_some(match need.resource {
        "events" => "no Kubernetes events are recorded",
        _ => "a running cloud controller manager is not detected",
    })
}

fn permissions(asked: usize, missing: Result<Vec<Need>, String>) -> Vec<Finding> {
    let missing = match missing {
        Err(why) => {
            return vec![Finding::skipped(GROUP, format!("Kubernetes permissions: not checked ({why})"))];
        }
        Ok(missing) => missing,
    };
    if missing.is_empty() {
        return vec![Finding::good(GROUP, format!("Kubernetes permissions: all {asked} granted"))];
    }
    let finding = |need: &Need| {
        let missing = format!("permission to {}: missing", permission(need));
        match impact(need) {
            Some(impact) => Finding::warning(GROUP, format!("{missing} ({impact})"), GRANT),
            None => Finding::problem(GROUP, missing, GRANT),
        }
    };
    missing.iter().map(finding).collect()
}

/// The admission policy of Sluice as text; `None` if the cluster has none.
async fn admission_policy(connection: &Connection) -> Result<Option<String>, String> {
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{ADMISSION_POLICY}");
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    timely(async {
        match connection.client.request_text(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            answer => answer.map(Some),
        }
    })
    .await
}

/// Whether the policy is that of this version. A cluster without one needs none.
fn policy(policy: Result<Option<String>, String>) -> Option<Finding> {
    let what = format!("admission policy {ADMISSION_POLICY}");
    Some(match policy {
        Err(why) => Finding::skipped(GROUP, format!("{what}: not checked ({why})")),
        Ok(None) => return None,
        Ok(Some(text)) if text.contains(PUBLISHED_IP) => {
            Finding::good(GROUP, format!("{what}: allows the annotation {PUBLISHED_IP}"))
        }
        Ok(Some(_)) => Finding::warning(
            GROUP,
            format!("{what}: rejects the annotation {PUBLISHED_IP} (it belongs to an older version)"),
            "apply the policy of this version (`kubectl apply -f sluice.yaml`); until then, statuses are written without the annotation",
        ),
    })
}

fn lease_namespace(config: Option<&Config>, connection: &Connection) -> String {
    let configured = config.and_then(|config| config.leader_election.namespace.as_deref());
    lease::namespace(configured, connection.pod_namespace())
}

impl Cluster {
    /// The cluster of a connection that somebody has made already.
    pub(super) async fn of(connection: &Connection) -> Cluster {
        let date = greet(connection).await.ok().and_then(|greeting| greeting.date);
        let now = date.and_then(|date| httpdate::parse_http_date(&date).ok());
        let now = now.unwrap_or_else(SystemTime::now);
        Cluster { connection: connection.clone(), now, may_not_list: false }
    }

    /// Lists what the controller would list, and says whether one runs.
    pub(super) async fn contents(&self, config: &Config) -> Vec<Finding> {
        let mut findings = vec![match self.may_not_list {
            true => Finding::skipped(GROUP, "Kubernetes objects: not listed (permissions are missing)"),
            false => {
                let listed = list_all(&self.connection.client, &config.selection()).await;
                lists(&self.connection.host, listed.as_ref().map(|it| &it.events[..]))
            }
        }];
        if config.leader_election.enabled {
            let place = lease::place(config, &self.connection);
            let Place { namespace, name } = &place;
            findings.push(match lease::has_a_home(&self.connection, &place).await {
                Err(homeless) => homeless_lease(&homeless.to_string()),
                Ok(()) => leader(&format!("{namespace}/{name}"), self.lease(namespace, name).await),
            });
        }
        findings
    }

    /// The Lease as it is, by the API server's clock.
    async fn lease(&self, namespace: &str, name: &str) -> Result<Option<LeaseFacts>, String> {
        let leases: Api<Lease> = Api::namespaced(self.connection.client.clone(), namespace);
        let lease = timely(leases.get_opt(name)).await?;
        Ok(lease.and_then(|lease| lease.spec).map(|spec| {
            let renewed = spec.renew_time.map_or(SystemTime::UNIX_EPOCH, |time| SystemTime::from(time.0));
            LeaseFacts {
                holder: spec.holder_identity.unwrap_or_default(),
                renewed_ago: self.now.duration_since(renewed).unwrap_or(Duration::ZERO),
                duration: Duration::from_secs(
                    spec.lease_duration_seconds.unwrap_or(15).max(1).unsigned_abs().into(),
                ),
            }
        }))
    }

    /// The Lease of a cloud controller manager.
    pub(super) async fn other_lease(&self) -> Result<Option<LeaseFacts>, String> {
        let (namespace, name) = CLOUD_CONTROLLER_MANAGER_LEASE;
        self.lease(namespace, name).await
    }

    /// Every Service of type `LoadBalancer`.
    pub(super) async fn load_balancers(&self) -> Result<Vec<ServiceFacts>, String> {
        let services: Api<Service> = Api::all(self.connection.client.clone());
        let mut found = Vec::new();
        let mut page = ListParams::default().limit(500);
        loop {
            let list = timely(services.list(&page)).await?;
            found.extend(list.items.iter().filter_map(service_facts));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// The Services that the service controller has been busy with in the last hour.
    pub(super) async fn busy_with(&self) -> Result<Vec<String>, String> {
        let events: Api<KubeEvent> = Api::all(self.connection.client.clone());
        let about = ListParams::default().fields("reason=EnsuringLoadBalancer").limit(500);
        let list = timely(events.list(&about)).await?;
        let an_hour_ago = self.now - Duration::from_secs(3_600);
        let mut names: Vec<String> = list
            .items
            .iter()
            .filter(|event| is_recent_of_service_controller(event, an_hour_ago))
            .map(about_what)
            .collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

fn service_facts(service: &Service) -> Option<ServiceFacts> {
    let spec = service.spec.as_ref().filter(|spec| spec.type_.as_deref() == Some("LoadBalancer"))?;
    let metadata = &service.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    Some(ServiceFacts {
        name: format!("{}/{}", part(&metadata.namespace), part(&metadata.name)),
        class: spec.load_balancer_class.clone(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
    })
}

fn is_recent_of_service_controller(event: &KubeEvent, since: SystemTime) -> bool {
    let source = event.source.as_ref().and_then(|source| source.component.as_deref());
    let is_theirs = [source, event.reporting_component.as_deref()].contains(&Some(SERVICE_CONTROLLER));
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let when = last.or_else(|| event.event_time.as_ref().map(|time| time.0));
    is_theirs && when.is_some_and(|when| SystemTime::from(when) > since)
}

fn about_what(event: &KubeEvent) -> String {
    let object = &event.involved_object;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&object.namespace), part(&object.name))
}

/// What the lists brought.
fn lists(host: &str, listed: Result<&[Event], &ListError>) -> Finding {
    let events = match listed {
        Ok(events) => events,
        Err(error) => {
            let remedy = match (error.is_denied, error.is_passing) {
                (true, _) => GRANT.to_owned(),
                (false, true) => {
                    format!("check the API server {host} (`kubectl get --raw '/readyz?verbose'`), then retry")
                }
                (false, false) => format!("check the credentials and the API server ({host}), then retry"),
            };
            return Finding::problem(GROUP, format!("Kubernetes objects: list failed ({error})"), remedy);
        }
    };
    let (mut managed, mut slices, mut nodes, mut pods) = (0, 0, 0, 0);
    for event in events {
        match event {
            Event::Relisted { objects: Relist::Services(all), .. } => {
                managed = all.iter().filter(|it| it.selected).count()
            }
            Event::Relisted { objects: Relist::Slices(all), .. } => slices = all.len(),
            Event::Relisted { objects: Relist::Nodes(all), .. } => nodes = all.len(),
            Event::Relisted { objects: Relist::Pods(all), .. } => pods = all.len(),
            _ => {}
        }
    }
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let text = format!(
        "Kubernetes objects: listed ({}, {}, {}, {} with the egress label)",
        counted(managed, "managed Service"),
        counted(slices, "EndpointSlice"),
        counted(nodes, "node"),
        counted(pods, "pod"),
    );
    match nodes {
        0 => Finding::warning(
            GROUP,
            text,
            "check --kubeconfig and --context (`kubectl get nodes`); without nodes no address can be programmed",
        ),
        _ => Finding::good(GROUP, text),
    }
}

/// Whether a controller runs already.
fn homeless_lease(whole: &str) -> Finding {
    let (what, remedy) = whole.split_once("; ").unwrap_or((whole, "set sluice.leaderElection.namespace"));
    Finding::problem(GROUP, what, remedy)
}

fn leader(place: &str, lease: Result<Option<LeaseFacts>, String>) -> Finding {
    match lease {
        Err(why) => {
            Finding::skipped(GROUP, format!("leader: not checked (cannot read Lease {place}: {why})"))
        }
        Ok(Some(lease)) if !lease.holder.is_empty() && lease.renewed_ago < lease.duration => {
            let ago = lease.renewed_ago.as_secs();
            Finding::good(GROUP, format!("leader: {} (Lease {place}, renewed {ago} s ago)", lease.holder))
        }
        Ok(_) => Finding::good(GROUP, format!("leader: none (Lease {place} has no active holder)")),
    }
}

/// Waits, but not for ever; the error in words.
async fn timely<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, call).await {
        Err(_) => Err(format!("no response within {} s", PATIENCE.as_secs())),
        Ok(Err(kube::Error::Api(status))) => Err(format!("{}: {}", status.code, status.message)),
        Ok(result) => result.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::told;

    #[test]
    fn an_old_version_is_a_warning() {
        assert_eq!(told(&[version("https://c", "v1.36.3")]), "✓ API server https://c: reachable (v1.36.3)");
        for strange in ["v1.31.2-eks-1", "v2.0.0", ""] {
            assert!(told(&[version("https://c", strange)]).starts_with('✓'), "{strange}");
        }
        let old = told(&[version("https://c", "v1.27.9+k3s1")]);
        assert!(
            old.starts_with("! API server https://c: reachable (v1.27.9+k3s1, older than v1.30)"),
            "{old}"
        );
    }

    #[test]
    fn an_admission_policy_without_our_annotation_is_a_warning() {
        let of = |text: &str| told(policy(Ok(Some(text.to_owned()))).as_slice());
        let shipped = include_str!("../../../../deploy/sluice.yaml");
        let name = shipped.find("name: sluice-services").expect("the policy has this name");
        assert!(of(&shipped[name..]).starts_with("✓ admission policy sluice-services"));
        let old = of(&shipped.replace(PUBLISHED_IP, "sluice.dev/other"));
        assert!(old.starts_with("! admission policy sluice-services: rejects the annotation"), "{old}");
        assert!(policy(Ok(None)).is_none());
        assert!(told(policy(Err("403: forbidden".to_owned())).as_slice()).starts_with('–'));
    }

    #[test]
    fn each_missing_permission_is_a_line_and_events_are_bearable() {
        let needs = access::needs(Some("sluice-system"));
        let some: Vec<Need> = needs.iter().filter(|need| need.verb == "patch").cloned().collect();
        let said = permissions(needs.len(), Ok(some));
        let lines: Vec<String> = said.iter().map(|it| format!("{} {}", it.mark.letter(), it.text)).collect();
        expect_test::expect![[r#"
            ✗ permission to patch services at the cluster scope: missing
            ✗ permission to patch services/status at the cluster scope: missing
            ! permission to patch events.events.k8s.io at the cluster scope: missing (no Kubernetes events are recorded)"#]]
        .assert_eq(&lines.join("\n"));
        assert_eq!(told(&permissions(17, Ok(Vec::new()))), "✓ Kubernetes permissions: all 17 granted");
        assert_eq!(told(&permissions(17, Err("500".into()))), "– Kubernetes permissions: not checked (500)");
    }

    #[test]
    fn lists_are_counted_and_their_failure_is_a_problem() {
        let of = |objects: Relist| Event::Relisted { version: 1, objects };
        let empty = [of(Relist::Services(Vec::new())), of(Relist::Nodes(Vec::new()))];
        let said = told(&[lists("https://c", Ok(&empty))]);
        assert!(
            said.starts_with("! Kubernetes objects: listed (0 managed Services, 0 EndpointSlices, 0 nodes"),
            "{said}"
        );
        for (is_passing, is_denied, remedy) in [
            (false, true, "apply the ClusterRole and Role of Sluice"),
            (true, false, "check the API server https://c (`kubectl get --raw"),
            (false, false, "check the credentials and the API server (https://c), then retry"),
        ] {
            let kind = sluice_model::kube::Kind::Node;
            let error = ListError { kind, trouble: "no".into(), is_passing, is_denied };
            let said = told(&[lists("https://c", Err(&error))]);
            let begin = format!("✗ Kubernetes objects: list failed (no)\n    → {remedy}");
            assert!(said.starts_with(&begin), "{said}");
        }
    }

    #[test]
    fn a_leader_is_one_that_has_renewed_in_time() {
        let lease = |holder: &str, ago: u64| LeaseFacts {
            holder: holder.into(),
            renewed_ago: Duration::from_secs(ago),
            duration: Duration::from_secs(15),
        };
        let said = |lease| told(&[leader("ns/sluice", lease)]);
        assert_eq!(said(Ok(Some(lease("pod-1", 3)))), "✓ leader: pod-1 (Lease ns/sluice, renewed 3 s ago)");
        for none in [None, Some(lease("", 3)), Some(lease("pod-1", 60))] {
            assert_eq!(said(Ok(none)), "✓ leader: none (Lease ns/sluice has no active holder)");
        }
        assert!(said(Err("403".into())).starts_with("– leader: not checked"));
    }

    #[test]
    fn only_load_balancers_and_recent_events_count() {
        let service = |kind: &str| -> Service {
            serde_json::from_value(serde_json::json!({
                "metadata": {"namespace": "a", "name": "x", "finalizers": ["f"]},
                "spec": {"type": kind, "loadBalancerClass": "c"},
            }))
            .unwrap()
        };
        assert_eq!(service_facts(&service("ClusterIP")), None);
        let facts = service_facts(&service("LoadBalancer")).unwrap();
        assert_eq!(
            (facts.name.as_str(), facts.class.as_deref(), facts.finalizers.len()),
            ("a/x", Some("c"), 1)
        );
        let event = |component: &str, at: &str| -> KubeEvent {
            serde_json::from_value(serde_json::json!({
                "metadata": {}, "involvedObject": {"namespace": "a", "name": "x"}, "source": {"component": component},
                "lastTimestamp": at,
            }))
            .unwrap()
        };
        let since = httpdate::parse_http_date("Mon, 16 Nov 2026 03:00:00 GMT").unwrap();
        let counts =
            |component: &str, at: &str| is_recent_of_service_controller(&event(component, at), since);
        assert!(counts("service-controller", "2026-11-16T03:30:00Z"));
        assert!(!counts("service-controller", "2026-11-16T02:30:00Z"));
        assert!(!counts("sluice", "2026-11-16T03:30:00Z"));
        assert_eq!(about_what(&event("x", "2026-11-16T03:30:00Z")), "a/x");
    }
}
