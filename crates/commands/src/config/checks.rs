//! What must hold between several keys.

use std::time::Duration;

use super::keys::Config;
use super::problems::Problem;
use super::table::Value;
use super::values::Setting as _;

/// Everything that contradicts itself, but for keys whose own value is a problem already.
pub(super) fn contradictions(
    config: &Config,
    values: &[Value],
    file: &str,
    known: &[Problem],
) -> Vec<Problem> {
    let mut checks = Checks { values, file, known, problems: Vec::new() };
    checks.waits(config);
    checks.leadership(config);
    checks.listeners(config);
    checks.subnet(config);
    checks.problems
}

/// What can be so, and will surprise.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    if config.general.allow_mass_deletion {
        warnings.push(
            "sluice.allowMassDeletion is true: the mass-deletion guard is disabled; remove the key after the \
             intended deletion"
                .to_owned(),
        );
    }
    if !config.leader_election.enabled {
        warnings.push(
            "sluice.leaderElection.enabled is false: leader election is disabled; run exactly one replica"
                .to_owned(),
        );
    }
    if config.egress.max == 0 {
        warnings.push("sluice.egress.max is 0: no egress is created".to_owned());
    }
    warnings
}

struct Checks<'a> {
    values: &'a [Value],
    file: &'a str,
    known: &'a [Problem],
    problems: Vec<Problem>,
}

impl Checks<'_> {
    /// A problem of one key, unless it has one already.
    fn refuse(&mut self, key: &str, what: String) {
        if self.has_problem(&[key]) {
            return;
        }
        let mut problem = Problem::new(key, what);
        if let Some(value) = self.value(key) {
            problem = problem.at(value.origin.place(self.file));
            if let Some(text) = value.text.as_ref().filter(|_| !value.is_secret) {
                problem = problem.saying(text);
            }
        }
        self.problems.push(problem);
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|value| value.key == key)
    }

    fn has_problem(&self, keys: &[&str]) -> bool {
        self.known.iter().any(|problem| keys.contains(&problem.about.as_str()))
    }

    /// Whether one of them has a problem already, of its own or with another key.
    fn is_blamed(&self, keys: &[&str]) -> bool {
        let is_one = |problem: &Problem| keys.contains(&problem.about.as_str());
        self.has_problem(keys) || self.problems.iter().any(is_one)
    }

    /// Which of two keys is to blame: the one that is further from its default.
    fn blames_first(&self, first: &str, second: &str) -> bool {
        let said = |key: &str| self.value(key).map(|value| value.origin.clone());
        said(first) >= said(second)
    }

    fn not_above(&mut self, low: (&str, Duration), high: (&str, Duration)) {
        if low.1 <= high.1 || self.has_problem(&[low.0, high.0]) {
            return;
        }
        match self.blames_first(low.0, high.0) {
            true => self.refuse(low.0, format!("must not be longer than {} ({})", high.0, high.1.write())),
            false => self.refuse(high.0, format!("must not be shorter than {} ({})", low.0, low.1.write())),
        }
    }

    fn below(&mut self, low: (&str, Duration), high: (&str, Duration), why: &str) {
        if low.1 < high.1 || self.has_problem(&[low.0, high.0]) {
            return;
        }
        match self.blames_first(low.0, high.0) {
            true => {
                self.refuse(low.0, format!("must be shorter than {} ({}), {why}", high.0, high.1.write()))
            }
            false => self.refuse(high.0, format!("must be longer than {} ({}), {why}", low.0, low.1.write())),
        }
    }

    fn waits(&mut self, config: &Config) {
        let (retry, operations) = (&config.retry, &config.operations);
        for (low, high) in [
            (("sluice.retry.backoffMin", retry.backoff_min), ("sluice.retry.backoffMax", retry.backoff_max)),
            (
                ("sluice.operations.pollMin", operations.poll_min),
                ("sluice.operations.pollMax", operations.poll_max),
            ),
            (
                ("sluice.azure.connectTimeout", config.reach.connect_timeout),
                ("sluice.azure.responseTimeout", config.reach.response_timeout),
            ),
        ] {
            self.not_above(low, high);
        }
        let drift = &config.drift;
        self.below(
            ("sluice.drift.confirmAfter", drift.confirm_after),
            ("sluice.drift.interval", drift.interval),
            "because a difference is checked again before the next comparison",
        );
    }

    fn leadership(&mut self, config: &Config) {
        let election = &config.leader_election;
        let retry = ("sluice.leaderElection.retryPeriod", election.retry_period);
        let deadline = ("sluice.leaderElection.renewDeadline", election.renew_deadline);
        let lease = ("sluice.leaderElection.leaseDuration", election.lease_duration);
        self.below(retry, deadline, "so that a failed renewal can be retried in time");
        self.below(deadline, lease, "so that the leader has stopped before another one starts");
        let connect = ("sluice.azure.connectTimeout", config.reach.connect_timeout);
        let keys = [connect.0, deadline.0, lease.0];
        if !election.enabled || connect.1 <= election.margin() || self.is_blamed(&keys) {
            return;
        }
        // A request is begun before its connection is made.
        let margin = election.margin().write();
        let why = "so that all requests of a leader are sent before another leader starts";
        match self.blames_first(connect.0, lease.0) && self.blames_first(connect.0, deadline.0) {
            true => {
                let what = format!(
                    "must not be longer than {margin}, which is {} minus {}, {why}",
                    lease.0, deadline.0
                );
                self.refuse(connect.0, what);
            }
            false => {
                let (low, limit) = (deadline.0, connect.1.write());
                let what = format!("must be at least {} ({limit}) longer than {low}, {why}", connect.0);
                self.refuse(lease.0, what);
            }
        }
    }

    fn listeners(&mut self, config: &Config) {
        let listen = &config.listen;
        let (cert, key) = ("sluice.listen.tlsCertFile", "sluice.listen.tlsKeyFile");
        match (&listen.tls_certificate, &listen.tls_key) {
            (Some(_), None) => self.refuse(cert, format!("needs a private key; also set {key}")),
            (None, Some(_)) => self.refuse(key, format!("needs a certificate; also set {cert}")),
            _ => {}
        }
        if !listen.api.ip().is_loopback() {
            let is_open = [
                (listen.token_file.is_none(), "sluice.listen.tokenFile"),
                (listen.tls_certificate.is_none(), cert),
                (listen.tls_key.is_none(), key),
            ];
            let missing: Vec<&str> =
                is_open.into_iter().filter_map(|(is_missing, key)| is_missing.then_some(key)).collect();
            if !missing.is_empty() {
                let what = format!(
                    "other machines can reach this address, so the API requires a token and TLS; also set \
                     {}, or listen on 127.0.0.1",
                    missing.join(" and ")
                );
                self.refuse("sluice.listen.api", what);
            }
        }
        let is_same_port = listen.api.port() == listen.health.port() && listen.api.port() != 0;
        let overlaps = listen.api.ip() == listen.health.ip()
            || listen.api.ip().is_unspecified()
            || listen.health.ip().is_unspecified();
        if is_same_port && overlaps {
            let (health, api) = ("sluice.listen.health", "sluice.listen.api");
            let (about, other) = if self.blames_first(api, health) { (api, health) } else { (health, api) };
            self.refuse(about, format!("uses the same port as {other}; choose another port"));
        }
    }

    fn subnet(&mut self, config: &Config) {
        let keys = ["subnetName", "sluice.gateway.subnet"];
        if config.azure.subnet.is_none() && config.gateway.subnet.is_none() && !self.has_problem(&keys) {
            let what = "is missing; set it to the subnet of the nodes, as listed by `az network vnet subnet \
                        list`, or set sluice.gateway.subnet";
            self.problems.push(Problem::new("subnetName", what));
        }
    }
}
