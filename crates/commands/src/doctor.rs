//! `sluice doctor`: whether everything is as Sluice needs it, and what to do where it is not.
//!
//! ```text
//! configuration ─▶ Kubernetes ─▶ other controllers ─▶ Azure ─▶ gateway and subnet ─▶ quota
//! ```
//!
//! Each diagnosis is a function from what was seen to lines; the seeing is a few calls around it, and
//! nothing is written. What could not be looked at is a line too: silence would look like health.

mod azure;
mod clock;
mod cluster;
mod configuration;
mod finding;
mod gateway;
mod quota;
mod report;
mod rivals;
mod role;
#[cfg(test)]
mod tests;

use std::io::Write as _;

use clap::Args;
use futures::future::LocalBoxFuture;
use sluice_k8s::connect::{self, Connection};

pub(crate) use cluster::{GRANT, impact, permission};
pub use finding::{Finding, Group, Mark};
pub use report::{Report, text};

use crate::config::{Config, ConfigArguments};
use crate::output::Output;
use crate::paint::Paint;
use cluster::Cluster;

/// Check everything that Sluice needs, without a write.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const HELP: &str = "\
Example: sluice doctor --config azure.yaml

Kubernetes permissions are checked for the account that runs this command. To check those of the \
controller, run it in the controller's pod or with a kubeconfig of its service account.

Marks: ✓ passed · ! warning · ✗ failed · – skipped

Exit codes: 0 no problems · 1 problems found, also in the configuration or in the access to \
Kubernetes and Azure · 2 invalid arguments";

/// Looks at everything, and says it; true if there are no problems.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, anyhow::Result<bool>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> anyhow::Result<bool> {
    let paint = Paint::for_stdout();
    let report = match arguments.output {
        // One group after the other: a server that does not answer takes a while.
        Output::Text => {
            let say = |findings: &[Finding]| {
                let _ = writeln!(std::io::stdout(), "{}", text(findings, paint));
            };
            let report = examine(&arguments.config, say).await;
            let _ = writeln!(std::io::stdout(), "{}", report.verdict());
            report
        }
        Output::Json => {
            let report = examine(&arguments.config, |_| {}).await;
            let _ = writeln!(std::io::stdout(), "{:#}", report.json());
            report
        }
    };
    Ok(report.problems() == 0)
}

/// Looks at everything; each group is told as soon as it is known.
pub async fn examine(arguments: &ConfigArguments, mut tell: impl FnMut(&[Finding])) -> Report {
    let mut report = Report::default();
    let mut keep = |findings: Vec<Finding>| {
        if !findings.is_empty() {
            tell(&findings);
            report.findings.extend(findings);
        }
    };
    let loaded = arguments.load();
    keep(configuration::diagnose(&loaded));
    let config = loaded.ok().map(|loaded| loaded.config);

    let (mut findings, cluster) = cluster::look(arguments, config.as_ref()).await;
    if let (Some(config), Some(cluster)) = (&config, &cluster) {
        findings.extend(cluster.contents(config).await);
    }
    keep(findings);
    if let Some(cluster) = &cluster {
        keep(others(cluster, config.as_ref()).await);
    }

    let Some(config) = config else {
        keep(vec![Finding::skipped(Group::Azure, "Azure: not checked (no valid configuration)")]);
        return report;
    };
    for findings in in_azure(&config, cluster.as_ref()).await {
        keep(findings);
    }
    report
}

/// Who else is at work.
async fn others(cluster: &Cluster, config: Option<&Config>) -> Vec<Finding> {
    let (services, lease, busy_with) =
        futures::join!(cluster.load_balancers(), cluster.other_lease(), cluster.busy_with());
    match services {
        Err(why) => {
            let text = format!("other controllers: not checked (cannot list Services: {why})");
            vec![Finding::skipped(Group::OtherControllers, text)]
        }
        Ok(services) => rivals::diagnose(&rivals::Facts {
            class: config.and_then(|config| config.general.load_balancer_class.as_deref()),
            migrating: config.is_some_and(|config| config.migration.enabled),
            services: &services,
            lease,
            busy_with,
        }),
    }
}

/// Who else writes the gateway, if that is to be seen: a controller must not start beside a problem.
///
/// The Services are looked at only where a cloud controller manager runs, or where nobody can see whether one does.
pub async fn predecessor(connection: &Connection, config: &Config) -> Option<Finding> {
    let cluster = Cluster::of(connection).await;
    let lease = cluster.other_lease().await;
    if lease.as_ref().is_ok_and(|lease| !lease.as_ref().is_some_and(rivals::LeaseFacts::is_live)) {
        return None;
    }
    let services = cluster.load_balancers().await.ok()?;
    let findings = rivals::predecessor(&rivals::Facts {
        class: config.general.load_balancer_class.as_deref(),
        migrating: config.migration.enabled,
        services: &services,
        lease,
        busy_with: Ok(Vec::new()),
    });
    findings.into_iter().find(|finding| finding.mark != Mark::Good)
}

/// Everything of Azure, group by group.
async fn in_azure(config: &Config, cluster: Option<&Cluster>) -> Vec<Vec<Finding>> {
    let (mut findings, client) = azure::credential(config).await;
    let Some(client) = client else {
        let skipped = "gateway, subnet and quotas: not checked (no access token)";
        return vec![findings, vec![Finding::skipped(Group::Gateway, skipped)]];
    };
    let cluster_id = match (&config.general.cluster_id, cluster) {
        (Some(id), _) => Some(id.clone()),
        (None, Some(cluster)) => connect::cluster_id(&cluster.connection.client).await.ok(),
        (None, None) => None,
    };
    let scope = config.scope(cluster_id.as_deref().unwrap_or_default());
    let read = azure::reads(&client, &scope).await;
    findings.extend(read.findings);
    findings.extend(azure::permissions(&client, &scope).await);
    let gateway = gateway::diagnose(&gateway::Facts {
        scope: &scope,
        mode: config.gateway.mode,
        knows_cluster: cluster_id.is_some(),
        gateway: read.gateway.as_ref().map(Option::as_ref).map_err(|_| ()),
        subnet: read.subnet.as_ref().map(Option::as_ref).map_err(|_| ()),
    });
    vec![findings, gateway, azure::quotas(&client, config, &scope).await]
}
