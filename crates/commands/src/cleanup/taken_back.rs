//! What another controller has taken back: load balancers and public IPs of live Services that are not of our
//! class. They lose our tags, their Services our finalizer and conditions, and everything else stays.
//!
//! The engine never sees them as ours: in its world their Services are strangers and their tags are gone, and
//! the loop starts only after they are gone in Azure too.

use std::collections::BTreeSet;

use anyhow::bail;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use sluice_controller::{Clock, Monotonic};
use sluice_k8s::write::Writer;
use sluice_model::azure::{ArmId, Meta};
use sluice_model::effect::{KubeOutcome, Listing};
use sluice_model::event::Relist;
use sluice_model::kube::{ObjectRef, ServiceObject};
use sluice_model::names::{Scope, without_our_tags};
use sluice_model::{Event, Family, ServiceKey, Uid};

use super::calls::{PACE, untag};
use crate::failure::{Failure, exit};
use crate::plan::foresight::Worlds;
use crate::reach::Reached;

/// How often a write to Kubernetes is tried that fails in a way which passes.
const TRIES: u32 = 5;

/// A live Service of another class that still has something of ours on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TakenBack {
    pub(super) service: ObjectRef,
    /// Its resources that carry our tags: what each is, and which.
    pub(super) resources: Vec<(&'static str, ArmId)>,
}

/// Finds them. Whether a Service is still a load balancer, the API server is asked: the resources of one that
/// is none any more are nobody's, and are deleted.
pub(super) async fn find(reached: &Reached, worlds: &Worlds) -> Result<Vec<TakenBack>, Failure> {
    let class = reached.config.selection().class;
    let mut found = Vec::new();
    for candidate in candidates(&reached.config.scope(&reached.cluster_id), worlds) {
        let ObjectRef { uid, name } = &candidate.service;
        let services = Api::<Service>::namespaced(reached.connection.client.clone(), &name.namespace);
        let service = services.get_opt(&name.name).await;
        let service = service.map_err(|error| Failure::new(exit::KUBERNETES, error))?;
        if service.is_some_and(|it| is_of_another_class(&it, &uid.to_string(), class.as_deref())) {
            found.push(candidate);
        }
    }
    Ok(found)
}

/// Whether this very Service lives and asks another controller for a load balancer.
fn is_of_another_class(service: &Service, uid: &str, ours: Option<&str>) -> bool {
    let Some(spec) = &service.spec else { return false };
    let class = spec.load_balancer_class.as_deref().filter(|class| !class.is_empty());
    service.metadata.uid.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(uid))
        && service.metadata.deletion_timestamp.is_none()
        && spec.type_.as_deref() == Some("LoadBalancer")
        && class != ours
}

/// Services that live, are not ours, and have something of ours on them.
fn candidates(scope: &Scope, worlds: &Worlds) -> Vec<TakenBack> {
    let tagged = tagged(scope, worlds);
    let of = |service: &ServiceObject| {
        let key = ServiceKey::Inbound(service.uid);
        // The load balancer last: by its tag the registration is known.
        let resources =
            [("public IP", scope.public_ip_id(&key, Family::V4)), ("load balancer", scope.carrier_id(&key))];
        TakenBack {
            service: ObjectRef { uid: service.uid, name: service.name.clone() },
            resources: resources.into_iter().filter(|(_, id)| tagged.contains(id)).collect(),
        }
    };
    let strangers = services(worlds).filter(|it| !it.selected && !it.deleting);
    let with_something = strangers.filter_map(|it| {
        let taken_back = of(it);
        (it.finalizer || it.published.is_some() || !taken_back.resources.is_empty()).then_some(taken_back)
    });
    with_something.collect()
}

fn services(worlds: &Worlds) -> impl Iterator<Item = &ServiceObject> {
    worlds.kubernetes.iter().flat_map(|event| match event {
        Event::Relisted { objects: Relist::Services(services), .. } => services.as_slice(),
        _ => &[],
    })
}

fn tagged(scope: &Scope, worlds: &Worlds) -> BTreeSet<ArmId> {
    let mut tagged = BTreeSet::new();
    let mut add = |meta: &Meta| {
        if scope.owns(&meta.tags) {
            tagged.insert(meta.id.clone());
        }
    };
    for listing in &worlds.azure {
        match listing {
            Listing::LoadBalancers(all) => all.iter().for_each(|it| add(&it.meta)),
            Listing::PublicIps(all) => all.iter().for_each(|it| add(&it.meta)),
            _ => {}
        }
    }
    tagged
}

/// The worlds as they are once all of it has been let go.
pub(super) fn forget(worlds: &mut Worlds, taken_back: &[TakenBack]) {
    let services: BTreeSet<Uid> = taken_back.iter().map(|it| it.service.uid).collect();
    for event in &mut worlds.kubernetes {
        let Event::Relisted { objects: Relist::Services(all), .. } = event else { continue };
        for service in all.iter_mut().filter(|it| services.contains(&it.uid)) {
            (service.finalizer, service.published) = (false, None);
        }
    }
    let resources: BTreeSet<&ArmId> =
        taken_back.iter().flat_map(|it| it.resources.iter().map(|(_, id)| id)).collect();
    let untag = |meta: &mut Meta| {
        if resources.contains(&meta.id) {
            meta.tags = without_our_tags(&meta.tags);
        }
    };
    for listing in &mut worlds.azure {
        match listing {
            Listing::LoadBalancers(all) => all.iter_mut().for_each(|it| untag(&mut it.meta)),
            Listing::PublicIps(all) => all.iter_mut().for_each(|it| untag(&mut it.meta)),
            _ => {}
        }
    }
}

/// Lets one go: its tags first, then the finalizer and the conditions of its Service.
pub(super) async fn release(
    reached: &Reached,
    writer: &Writer,
    taken_back: &TakenBack,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> anyhow::Result<()> {
    let TakenBack { service, resources } = taken_back;
    for (what, id) in resources {
        untag(reached, what, id, may_begin).await?;
    }
    // The IP in the status is what the other controller serves it at.
    written(service, async || writer.write_status(service, None, None, &[]).await).await?;
    written(service, async || writer.remove_finalizer(service).await).await
}

/// Repeats a write to a Service a few times.
async fn written(service: &ObjectRef, write: impl AsyncFn() -> KubeOutcome) -> anyhow::Result<()> {
    let clock = Monotonic::start();
    for _ in 0..TRIES {
        match write().await {
            KubeOutcome::Done { .. } | KubeOutcome::Gone => return Ok(()),
            KubeOutcome::Refused(why) => {
                bail!("Kubernetes rejected the update of Service {}: {why}", service.name)
            }
            KubeOutcome::Conflict | KubeOutcome::Unavailable => {}
        }
        clock.sleep_until(clock.now() + PACE).await;
    }
    bail!("cannot update Service {} after {TRIES} attempts; re-run to continue", service.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sluice_model::ObjectName;
    use sluice_model::azure::{ETag, LoadBalancer, Provisioning, PublicIp, Tags};
    use sluice_model::kube::ServiceSpec;

    use super::*;

    fn scope() -> Scope {
        Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        }
    }

    fn service(number: u128) -> ServiceObject {
        ServiceObject {
            uid: Uid::from_number(number),
            name: ObjectName::new("shop", format!("web-{number}")),
            version: 1,
            selected: false,
            load_balancer: true,
            deleting: false,
            finalizer: false,
            inherited: false,
            spec: ServiceSpec::default(),
            ingress: Vec::new(),
            published: None,
            annotated: None,
            conditions: Vec::new(),
        }
    }

    /// A load balancer with its public IP, for a Service of this number.
    fn resources(number: u128, tags: &Tags) -> (LoadBalancer, PublicIp) {
        let (scope, key) = (scope(), ServiceKey::Inbound(Uid::from_number(number)));
        let meta = |id| Meta {
            id,
            tags: tags.clone(),
            etag: ETag("1".into()),
            provisioning: Provisioning::Succeeded,
        };
        let ip = scope.public_ip_id(&key, Family::V4);
        let balancer = LoadBalancer {
            meta: meta(scope.carrier_id(&key)),
            public_ip: Some(ip.clone()),
            pools: Vec::new(),
            rules: Vec::new(),
            edited: false,
        };
        (balancer, PublicIp { meta: meta(ip), family: Family::V4, address: None, used_by: None })
    }

    fn worlds(services: Vec<ServiceObject>, resources: Vec<(LoadBalancer, PublicIp)>) -> Worlds {
        let (balancers, ips) = resources.into_iter().unzip();
        Worlds {
            kubernetes: vec![Event::Relisted { version: 1, objects: Relist::Services(services) }],
            skipped: Vec::new(),
            azure: vec![Listing::LoadBalancers(balancers), Listing::PublicIps(ips)],
        }
    }

    #[test]
    fn a_live_service_of_another_class_keeps_what_is_tagged_as_ours() {
        let ours = scope().gateway_tags();
        let all = vec![
            service(1),
            ServiceObject { selected: true, ..service(2) },
            ServiceObject { deleting: true, ..service(3) },
            service(4),
            ServiceObject { finalizer: true, ..service(5) },
        ];
        let (one, five) = (all[0].clone(), all[4].clone());
        let foreign = Tags::from([("team".into(), "network".into())]);
        let mut tags = ours.clone();
        tags.extend(foreign.clone());
        let there =
            vec![resources(1, &tags), resources(2, &ours), resources(3, &ours), resources(4, &foreign)];
        let mut worlds = worlds(all, there);
        let found = candidates(&scope(), &worlds);
        let names: Vec<_> = found.iter().map(|it| (it.service.uid, it.resources.len())).collect();
        assert_eq!(names, [(one.uid, 2), (five.uid, 0)]);
        let kinds: Vec<&str> = found[0].resources.iter().map(|(what, _)| *what).collect();
        assert_eq!(kinds, ["public IP", "load balancer"]);

        forget(&mut worlds, &found);
        assert_eq!(candidates(&scope(), &worlds), []);
        let Listing::LoadBalancers(balancers) = &worlds.azure[0] else { panic!() };
        assert_eq!(balancers[0].meta.tags, foreign);
        assert_eq!(balancers[1].meta.tags, ours);
    }

    #[test]
    fn only_a_load_balancer_of_another_class_has_been_taken_back() {
        let uid = Uid::from_number(1).to_string();
        let is = |with: Value, ours: Option<&str>| {
            let mut service = json!({
                "metadata": {"name": "web", "uid": uid},
                "spec": {"type": "LoadBalancer", "loadBalancerClass": "example.com/other"},
            });
            for (key, value) in with.as_object().unwrap() {
                *service.pointer_mut(key).unwrap() = value.clone();
            }
            is_of_another_class(&serde_json::from_value(service).unwrap(), &uid, ours)
        };
        assert!(is(json!({}), Some("sluice.dev/gateway")));
        assert!(is(json!({}), None));
        assert!(is(json!({"/spec/loadBalancerClass": null}), Some("sluice.dev/gateway")));
        assert!(!is(json!({}), Some("example.com/other")));
        assert!(!is(json!({"/spec/loadBalancerClass": null}), None));
        assert!(!is(json!({"/spec/type": "ClusterIP"}), None));
        let deleting = json!({"name": "web", "uid": uid, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(!is(json!({"/metadata": deleting}), None));
        assert!(!is(json!({"/metadata/uid": "another"}), None));
    }
}
