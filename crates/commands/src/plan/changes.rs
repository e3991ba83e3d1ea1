//! What differs between the two worlds as they are and as they would be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use sluice_cloud::State;
use sluice_model::ServiceKey;
use sluice_model::azure::{ArmId, LoadBalancer, Meta, NatGateway, PublicIp, Registration, Rule};
use sluice_model::kube::ServiceObject;
use sluice_model::names::{IDENTITY_TAG, Scope, key_of_public_ip};

use super::foresight::Forecast;

/// What happens to something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Deed {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

impl Deed {
    fn of(before: bool, after: bool) -> Deed {
        match (before, after) {
            (false, _) => Deed::Create,
            (true, true) => Deed::Update,
            (true, false) => Deed::Delete,
        }
    }

    /// As it stands before a line.
    pub fn sign(self) -> char {
        match self {
            Deed::Create => '+',
            Deed::Update => '~',
            Deed::Delete => '-',
        }
    }
}

/// One thing that changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What happens to it.
    pub deed: Deed,
    /// What it is: `load balancer`, `addresses`.
    pub what: &'static str,
    /// Which.
    pub name: String,
    /// What about it, in a few words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub details: String,
}

/// Whom a change is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The gateway and its subnet.
    Foundation,
    /// A Service.
    Service(String),
    /// An egress.
    Egress(String),
    /// Nobody that is known any more.
    Nobody(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Foundation => f.write_str("gateway"),
            Subject::Service(name) => write!(f, "service/{name}"),
            Subject::Egress(name) => write!(f, "egress/{name}"),
            Subject::Nobody(identity) => write!(f, "orphan/{identity}"),
        }
    }
}

/// Everything that changes, by whom it is for.
pub type Changes = BTreeMap<Subject, Vec<Change>>;

/// Compares both worlds before and after.
pub fn changes(scope: &Scope, forecast: &Forecast) -> Changes {
    let names = Names::of(forecast);
    let (before, after) = (forecast.before.state(), forecast.after.state());
    let mut changes = Changes::new();
    let mut add = |subject: Subject, change: Change| changes.entry(subject).or_default().push(change);
    foundation(scope, before, after, &mut add);
    compare(&before.public_ips, &after.public_ips, |id, old, new| {
        let meta = new.or(old).map(|it: &PublicIp| &it.meta);
        let details = match (old, new) {
            (Some(old), Some(new)) => differences([tags(&old.meta, &new.meta)])?,
            (Some(old), None) => old.address.map(|ip| ip.to_string()).unwrap_or_default(),
            _ => String::new(),
        };
        let key = key_of(meta, id, |name| key_of_public_ip(name).map(|(key, _)| key));
        add(names.subject(key, id.name()), change(old, new, "public IP", id.name(), details));
        Some(())
    });
    compare(&before.load_balancers, &after.load_balancers, |id, old, new| {
        let details = match (old, new) {
            (Some(old), Some(new)) => load_balancer(old, new)?,
            (None, Some(new)) => rules(&new.rules),
            _ => String::new(),
        };
        let key = key_of(new.or(old).map(|it| &it.meta), id, ServiceKey::from_identity);
        add(names.subject(key, id.name()), change(old, new, "load balancer", id.name(), details));
        Some(())
    });
    compare(&before.nat_gateways, &after.nat_gateways, |id, old, new| {
        let details = match (old, new) {
            (Some(old), Some(new)) => nat_gateway(old, new)?,
            _ => String::new(),
        };
        let key = key_of(new.or(old).map(|it| &it.meta), id, ServiceKey::from_identity);
        add(names.subject(key, id.name()), change(old, new, "NAT gateway", id.name(), details));
        Some(())
    });
    let gateway = scope.gateway_id();
    let registered = |state: &State| -> BTreeMap<Arc<str>, Registration> {
        state.registrations(&gateway).map(|it| (Arc::clone(&it.name), it.clone())).collect()
    };
    compare(&registered(before), &registered(after), |name, old, new| {
        if let (Some(old), Some(new)) = (old, new)
            && old.same(new)
        {
            return None;
        }
        let subject = names.subject(ServiceKey::from_identity(name), name);
        add(subject, change(old, new, "registration", name, String::new()));
        Some(())
    });
    for (service, (bound, unbound)) in addresses(&gateway, before, after) {
        let subject = names.subject(ServiceKey::from_identity(&service), &service);
        for (deed, count) in [(Deed::Create, bound), (Deed::Delete, unbound)] {
            if count > 0 {
                let name = format!("{count}");
                add(subject.clone(), Change { deed, what: "addresses", name, details: String::new() });
            }
        }
    }
    compare(&forecast.objects_before, &forecast.objects_after, |_, old, new| {
        let object = new.or(old)?;
        let details = match (old, new) {
            (Some(old), Some(new)) => service(old, new)?,
            _ => "finalizer removed, then deleted".to_owned(),
        };
        let subject = Subject::Service(object.name.to_string());
        let (what, name) = ("Service", object.name.to_string());
        add(subject, Change { deed: Deed::Update, what, name, details });
        Some(())
    });
    written_again(scope, forecast, &names, &mut changes);
    changes
}

/// Resources that are written although they look the same: their last write failed.
fn written_again(scope: &Scope, forecast: &Forecast, names: &Names, changes: &mut Changes) {
    let listed: BTreeSet<String> =
        changes.values().flatten().map(|change| change.name.to_ascii_lowercase()).collect();
    let mut again = BTreeSet::new();
    for write in &forecast.writes {
        let posts = write.target == scope.gateway_id() || write.target == scope.subnet_id();
        let name = write.target.name().to_ascii_lowercase();
        if !posts && !listed.contains(&name) && again.insert(name.clone()) {
            let key = ServiceKey::from_identity(&name).or_else(|| key_of_public_ip(&name).map(|it| it.0));
            let change = Change {
                deed: Deed::Update,
                what: "resource",
                name: write.target.name().to_owned(),
                details: "update repeated".to_owned(),
            };
            changes.entry(names.subject(key, &name)).or_default().push(change);
        }
    }
}

fn foundation(scope: &Scope, before: &State, after: &State, add: &mut impl FnMut(Subject, Change)) {
    compare(&before.gateways, &after.gateways, |id, old, new| {
        let details = match (old, new) {
            (Some(old), Some(new)) => differences([tags(&old.meta, &new.meta)])?,
            (_, new) => new.map(|it| format!("in {}", it.virtual_network.name())).unwrap_or_default(),
        };
        add(Subject::Foundation, change(old, new, "service gateway", id.name(), details));
        Some(())
    });
    let attached = |state: &State| state.subnets.get(&scope.subnet_id()).and_then(|it| it.gateway.clone());
    let (old, new) = (attached(before), attached(after));
    if old != new {
        let deed = Deed::Update;
        let details = new.map_or("detached".to_owned(), |id| format!("attached to {}", id.name()));
        let name = scope.subnet_id().name().to_owned();
        add(Subject::Foundation, Change { deed, what: "subnet", name, details });
    }
}

/// What services and egresses are called by people.
struct Names(BTreeMap<ServiceKey, String>);

impl Names {
    fn of(forecast: &Forecast) -> Names {
        let objects = forecast.objects_before.values().chain(forecast.objects_after.values());
        Names(objects.map(|it| (ServiceKey::Inbound(it.uid), it.name.to_string())).collect())
    }

    fn subject(&self, key: Option<ServiceKey>, name: &str) -> Subject {
        match key {
            Some(ServiceKey::Outbound(egress)) => Subject::Egress(egress.to_string()),
            Some(key) => match self.0.get(&key) {
                Some(name) => Subject::Service(name.clone()),
                None => Subject::Nobody(key.identity().to_string()),
            },
            None => Subject::Nobody(name.to_owned()),
        }
    }
}

/// Whose it is: by its tag, else by its name.
fn key_of(
    meta: Option<&Meta>,
    id: &ArmId,
    by_name: impl FnOnce(&str) -> Option<ServiceKey>,
) -> Option<ServiceKey> {
    let tag = meta.and_then(|meta| meta.tags.get(IDENTITY_TAG)).and_then(|it| ServiceKey::from_identity(it));
    tag.or_else(|| by_name(id.name()))
}

/// Goes through both sides; what is told is for the caller to say.
fn compare<K: Ord, T: PartialEq>(
    before: &BTreeMap<K, T>,
    after: &BTreeMap<K, T>,
    mut tell: impl FnMut(&K, Option<&T>, Option<&T>) -> Option<()>,
) {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        if old != new {
            tell(key, old, new);
        }
    }
}

fn change<T>(old: Option<&T>, new: Option<&T>, what: &'static str, name: &str, details: String) -> Change {
    Change { deed: Deed::of(old.is_some(), new.is_some()), what, name: name.to_owned(), details }
}

/// What differs, in words; `None` when nothing does but versions.
fn differences<const N: usize>(words: [Option<String>; N]) -> Option<String> {
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn tags(old: &Meta, new: &Meta) -> Option<String> {
    (old.tags != new.tags).then(|| "tags".to_owned())
}

fn load_balancer(old: &LoadBalancer, new: &LoadBalancer) -> Option<String> {
    let (was, is): (BTreeSet<&Rule>, BTreeSet<&Rule>) =
        (old.rules.iter().collect(), new.rules.iter().collect());
    differences([
        (was != is).then(|| format!("{} instead of {}", rules(&new.rules), rules(&old.rules))),
        (old.public_ip != new.public_ip).then(|| "public IP".to_owned()),
        (old.pools != new.pools).then(|| "backend pool".to_owned()),
        (old.edited && !new.edited).then(|| "manual edit reverted".to_owned()),
        tags(&old.meta, &new.meta),
    ])
}

fn nat_gateway(old: &NatGateway, new: &NatGateway) -> Option<String> {
    let ips = old.public_ips != new.public_ips || old.public_ips_v6 != new.public_ips_v6;
    differences([
        (old.gateway != new.gateway).then(|| "service gateway".to_owned()),
        ips.then(|| "public IPs".to_owned()),
        tags(&old.meta, &new.meta),
    ])
}

fn rules(rules: &[Rule]) -> String {
    let words = rules.iter().map(|rule| {
        let Rule { protocol, frontend_port, backend_port, idle_timeout_minutes } = rule;
        let idle = if *idle_timeout_minutes == 4 {
            String::new()
        } else {
            format!(" idle {idle_timeout_minutes} min")
        };
        format!("{} {frontend_port} → {backend_port}{idle}", protocol.word())
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "no rules".to_owned() } else { words.join(", ") }
}

fn service(old: &ServiceObject, new: &ServiceObject) -> Option<String> {
    let finalizer = match (old.finalizer, new.finalizer) {
        (false, true) => Some("finalizer added".to_owned()),
        (true, false) => Some("finalizer removed".to_owned()),
        _ => (old.inherited && !new.inherited).then(|| "inherited finalizers removed".to_owned()),
    };
    // The address of a public IP that is not there yet is made up by the model.
    let ingress = match (old.published, new.published) {
        (None, Some(_)) => Some("public IP published".to_owned()),
        (Some(ip), None) => Some(format!("{ip} retracted")),
        (Some(old), Some(new)) if old != new => Some(format!("public IP replaced, was {old}")),
        _ => (old.ingress != new.ingress).then(|| "ingress".to_owned()),
    };
    let conditions = (old.conditions.len() != new.conditions.len()
        || !old.conditions.iter().all(|it| new.conditions.contains(it)))
    .then(|| "conditions".to_owned());
    differences([finalizer, ingress, conditions])
}

/// How many addresses each service gets and loses.
fn addresses(gateway: &ArmId, before: &State, after: &State) -> BTreeMap<Arc<str>, (usize, usize)> {
    type Bound = BTreeSet<(Arc<str>, IpAddr, IpAddr)>;
    let bound = |state: &State| -> Bound {
        let entries = state.locations(gateway).flat_map(|location| {
            let at = location.location;
            location.addresses.into_iter().flat_map(move |entry| {
                let address = entry.address;
                entry.services.into_iter().map(move |service| (service, at, address))
            })
        });
        entries.collect()
    };
    let (old, new) = (bound(before), bound(after));
    let mut counts: BTreeMap<Arc<str>, (usize, usize)> = BTreeMap::new();
    for (service, _, _) in new.difference(&old) {
        counts.entry(Arc::clone(service)).or_default().0 += 1;
    }
    for (service, _, _) in old.difference(&new) {
        counts.entry(Arc::clone(service)).or_default().1 += 1;
    }
    counts
}
