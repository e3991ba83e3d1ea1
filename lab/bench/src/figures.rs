//! What follows from a ledger: calls per service, makespan and its bound.
//!
//! Latency and concurrency alone give the bound: each service has a chain of operations
//! (public IP, load balancer, the registration it rides in; or clear, load balancer, unregister,
//! public IP), each as long as the emulator says it took; so many workers with no gap between two
//! operations need the sum of all chains over their number. A worker that is free while its service
//! waits for a shared commit could do better, so the chains without the commits are shown as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sluice_model::call::Method;

use super::ledger::Entry;

/// One phase of a measurement, counted.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// How many services were created or deleted.
    pub services: u32,
    /// How many plans might work at once.
    pub concurrency: usize,
    /// Writes and deletes of the service updater.
    pub service_writes: u64,
    /// Writes of the locations updater.
    pub location_writes: u64,
    /// Reads, polls among them.
    pub reads: u64,
    /// Every kind of call, and how often it was made.
    pub by_kind: BTreeMap<String, u64>,
    /// Answers that were a 429.
    pub throttled: u64,
    /// Services that an operation was carried out for.
    pub served: usize,
    /// From the first write to the last call.
    pub makespan: Duration,
    /// What latency and concurrency alone give.
    pub bound: Duration,
    /// The same, with the worker free during shared commits.
    pub bound_without_commits: Duration,
}

impl Figures {
    /// Counts one phase.
    pub fn count(ledger: &[Entry], services: u32, concurrency: usize) -> Figures {
        let writes = |of: fn(&Entry) -> bool| {
            ledger.iter().filter(|entry| entry.is_write() && of(entry)).count() as u64
        };
        let mut by_kind = BTreeMap::new();
        for entry in ledger {
            *by_kind.entry(entry.word()).or_insert(0) += 1;
        }
        let chains = Chains::of(ledger);
        let workers = u32::try_from(concurrency.max(1)).unwrap_or(u32::MAX);
        Figures {
            services,
            concurrency,
            service_writes: writes(|entry| entry.method != Method::UpdateLocations),
            location_writes: writes(|entry| entry.method == Method::UpdateLocations),
            reads: ledger.iter().filter(|entry| !entry.is_write()).count() as u64,
            by_kind,
            throttled: ledger.iter().filter(|entry| entry.status == 429).count() as u64,
            served: chains.identities.len(),
            makespan: makespan(ledger),
            bound: (chains.own + chains.commits) / workers,
            bound_without_commits: chains.own / workers,
        }
    }

    /// So many calls, per service.
    pub fn per_service(&self, calls: u64) -> f64 {
        calls as f64 / f64::from(self.services.max(1))
    }

    /// The makespan over the bound.
    pub fn over_bound(&self) -> f64 {
        ratio(self.makespan, self.bound)
    }

    /// The makespan over the stricter bound.
    pub fn over_bound_without_commits(&self) -> f64 {
        ratio(self.makespan, self.bound_without_commits)
    }
}

fn ratio(span: Duration, bound: Duration) -> f64 {
    if bound.is_zero() { f64::NAN } else { span.as_secs_f64() / bound.as_secs_f64() }
}

fn makespan(ledger: &[Entry]) -> Duration {
    let first = ledger.iter().filter(|entry| entry.is_write()).map(|entry| entry.at).min();
    let last = ledger.iter().map(|entry| entry.answered).max();
    match (first, last) {
        (Some(first), Some(last)) => last.since(first),
        _ => Duration::ZERO,
    }
}

/// The operations of all services, end to end.
///
/// Each step of a service counts once. Whoever does it again makes the makespan longer, not the bound.
#[derive(Default)]
struct Chains {
    identities: BTreeSet<String>,
    /// Steps that are in one of the sums.
    steps: BTreeSet<(String, String)>,
    /// Of resources.
    own: Duration,
    /// Of shared commits, once for everybody who rode in them.
    commits: Duration,
}

impl Chains {
    fn of(ledger: &[Entry]) -> Chains {
        let mut chains = Chains::default();
        for entry in ledger {
            let Some((_, ends)) = entry.operation.as_ref().filter(|_| entry.is_write()) else { continue };
            let took = ends.since(entry.at);
            if entry.method == Method::UpdateServices {
                for (service, errand) in &entry.services {
                    if chains.is_new(service, format!("{errand:?}")) {
                        chains.commits += took;
                    }
                }
            } else if let Some(identity) = entry.identity()
                && chains.is_new(&identity, entry.word())
            {
                chains.own += took;
            }
        }
        chains
    }

    fn is_new(&mut self, identity: &str, step: String) -> bool {
        self.identities.insert(identity.to_owned());
        self.steps.insert((identity.to_owned(), step))
    }
}

/// Something that was measured, and what it may be at most.
#[derive(Clone, PartialEq, Debug)]
pub struct Limit {
    /// What was measured.
    pub what: &'static str,
    /// What came out.
    pub found: f64,
    /// What it may be at most.
    pub max: f64,
    /// Whether what came out can be trusted.
    pub is_judged: bool,
}

impl Limit {
    /// Whether it is kept; `None` where nobody can tell.
    pub fn holds(&self) -> Option<bool> {
        self.is_judged.then_some(self.found <= self.max)
    }

    /// For scripts.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({"what": self.what, "found": self.found, "max": self.max, "holds": self.holds()})
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Errand;
    use super::*;
    use sluice_model::Time;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn entry(ms: u64, method: Method, kind: &str, name: &str) -> Entry {
        Entry {
            at: at(ms),
            answered: at(ms + 1),
            method,
            kind: kind.into(),
            target: format!("/subscriptions/s/{kind}/{name}"),
            status: 200,
            operation: None,
            services: Vec::new(),
            code: None,
            fault: None,
            body: serde_json::Value::Null,
        }
    }

    #[test]
    fn the_bound_is_every_services_own_chain_one_after_the_other() {
        let took = |entry: Entry, ms| Entry { operation: Some(("op".into(), entry.at + ms)), ..entry };
        let seconds = Duration::from_secs;
        let both = Entry {
            services: vec![("a".into(), Errand::Register), ("b".into(), Errand::Register)],
            ..entry(9_000, Method::UpdateServices, "serviceGateways", "g")
        };
        let ledger = [
            took(entry(0, Method::Put, "publicIPAddresses", "a-pip"), seconds(2)),
            took(entry(0, Method::Put, "publicIPAddresses", "b-pip"), seconds(3)),
            took(entry(3_000, Method::Put, "loadBalancers", "a"), seconds(5)),
            took(both, seconds(1)),
            took(entry(11_000, Method::UpdateLocations, "serviceGateways", "g"), seconds(100)),
            entry(20_000, Method::Poll, "operations", "op"),
        ];
        let figures = Figures::count(&ledger, 2, 2);
        assert_eq!((figures.served, figures.service_writes, figures.location_writes), (2, 4, 1));
        assert_eq!(figures.bound, Duration::from_secs(6));
        assert_eq!(figures.bound_without_commits, Duration::from_secs(5));
        assert_eq!(figures.makespan, Duration::from_millis(20_001));
    }

    #[test]
    fn what_is_done_again_does_not_make_the_bound_longer() {
        let took = |entry: Entry, ms| Entry { operation: Some(("op".into(), entry.at + ms)), ..entry };
        let put = |ms| took(entry(ms, Method::Put, "loadBalancers", "a"), Duration::from_secs(5));
        let commit = |ms, errand| {
            let post = entry(ms, Method::UpdateServices, "serviceGateways", "g");
            took(Entry { services: vec![("a".into(), errand)], ..post }, Duration::from_secs(1))
        };
        let once = [put(0), commit(6_000, Errand::Clear), commit(8_000, Errand::Unregister)];
        let bound = Figures::count(&once, 1, 1).bound;
        assert_eq!(bound, Duration::from_secs(7));
        let again = [put(20_000), commit(26_000, Errand::Clear), commit(28_000, Errand::Unregister)];
        assert_eq!(Figures::count(&[once, again].concat(), 1, 1).bound, bound);
    }
}
