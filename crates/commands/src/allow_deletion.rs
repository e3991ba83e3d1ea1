//! `sluice allow-deletion`: shows the deletions that the mass-deletion guard holds, and allows exactly those.
//!
//! The leader says what it holds. The consent is an annotation on its Lease, which it reads when it renews the
//! Lease, so whoever may patch the Lease may allow deletions, and a restart of the controller does not lose it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use futures::future::LocalBoxFuture;
use serde::Serialize;
use sluice_k8s::lease::{Place, annotate_lease};
use sluice_model::allow_deletion::{ANNOTATION, AllowedDeletions, Fingerprint};
use sluice_view::{Held, Status};

use crate::consent;
use crate::failure::Failure;
use crate::output::Output;
use crate::say;
use crate::status::{Leader, LeaderArguments, everything};

/// How long one call to the API server may take.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// So many fingerprints fit into the annotations of one object (256 KiB).
const FINGERPRINTS_MAX: usize = 15_000;

/// Allow held deletions.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Output format
    ///
    /// JSON output never prompts: without --yes it only lists the held deletions.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    leader: LeaderArguments,
}

const HELP: &str = "\
Example: sluice allow-deletion

Requires the permissions of `sluice status`, and get and patch on the Lease in the controller's namespace. \
To allow every mass deletion, set sluice.allowMassDeletion to true and restart the controller.

Exit codes: 0 allowed, declined at the prompt, only listed, or nothing held · 1 failed · 2 invalid arguments";

/// What was shown, and what came of it.
#[derive(Serialize)]
struct Report<'a> {
    held: &'a BTreeSet<Held>,
    allowed: bool,
}

/// Shows what is held, asks, and allows it.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<(), Failure>> {
    Box::pin(async move { Ok(execute(arguments).await?) })
}

async fn execute(arguments: Arguments) -> anyhow::Result<()> {
    let leader = Leader::find(&arguments.leader).await?;
    let mut held = held_by(&leader).await?;
    loop {
        if held.is_empty() {
            report(&arguments, &held, false, "No deletion is held.");
            return Ok(());
        }
        if arguments.output == Output::Text {
            say!("{}", plan(&held));
        }
        if arguments.output == Output::Json && !arguments.yes {
            report(&arguments, &held, false, "");
            return Ok(());
        }
        if !consent::given(arguments.yes, "Delete them?")? {
            say!("No changes made.");
            return Ok(());
        }
        let now = held_by(&leader).await?;
        if may_allow(arguments.yes, &held, &now)? {
            break;
        }
        say!("No changes made: the held deletions changed. Now held:");
        held = now;
    }
    allow(&arguments.leader, &held).await?;
    report(
        &arguments,
        &held,
        true,
        "Allowed. The leader starts deleting within seconds; to follow, run `sluice status --watch`.",
    );
    Ok(())
}

/// Whether the held deletions are still those that were shown. If not, they must be shown and confirmed again, and with
/// `--yes` nobody could do that.
fn may_allow(yes: bool, shown: &BTreeSet<Held>, now: &BTreeSet<Held>) -> anyhow::Result<bool> {
    if yes && shown != now {
        return Err(anyhow!(
            "no changes made: the held deletions changed while the command ran; review them with \
             `sluice allow-deletion` and re-run"
        ));
    }
    Ok(shown == now)
}

/// What the leader holds, sorted.
async fn held_by(leader: &Leader) -> anyhow::Result<BTreeSet<Held>> {
    Ok(held_of(&everything(leader).await?))
}

fn held_of(all: &[Status]) -> BTreeSet<Held> {
    all.iter().filter_map(|status| status.progress().held.clone()).collect()
}

fn plan(held: &BTreeSet<Held>) -> String {
    let mut text = String::new();
    for Held { name, fingerprint } in held {
        text.push_str(&format!("- {name:<40} {fingerprint}\n"));
    }
    let (count, what) = (held.len(), if held.len() == 1 { "gateway service" } else { "gateway services" });
    text.push_str(&format!(
        "Plan: {count} {what} to delete, with load balancer or NAT gateway and public IPs."
    ));
    text
}

fn report(arguments: &Arguments, held: &BTreeSet<Held>, allowed: bool, words: &str) {
    match arguments.output {
        Output::Text => say!("{words}"),
        Output::Json => {
            let json = serde_json::to_string_pretty(&Report { held, allowed });
            say!("{}", json.unwrap_or_default());
        }
    }
}

/// Writes the consent on the Lease, beside that of earlier times: what it allowed may not have begun yet.
async fn allow(place: &LeaderArguments, held: &BTreeSet<Held>) -> anyhow::Result<()> {
    let held = fingerprints(held)?;
    let connection =
        sluice_k8s::connect::connect(place.kubeconfig.as_deref(), place.context.as_deref()).await?;
    let lease = Place { namespace: place.lease_namespace.clone(), name: place.lease_name.clone() };
    let change = |before: &str| annotation(before, &held);
    annotate_lease(&connection.client, &lease, ANNOTATION, change, CALL_LIMIT).await.with_context(|| {
        format!(
            "cannot write the consent to Lease {}/{} (check --lease-namespace and --lease-name; grant get and patch on \
             leases there)",
            lease.namespace, lease.name
        )
    })
}

/// The fingerprints of what was shown.
fn fingerprints(held: &BTreeSet<Held>) -> anyhow::Result<Vec<Fingerprint>> {
    let all: Option<Vec<Fingerprint>> = held.iter().map(|it| Fingerprint::parse(&it.fingerprint)).collect();
    let all = all.context(
        "the controller sent fingerprints that this version cannot read; use the version of the controller",
    )?;
    if all.len() > FINGERPRINTS_MAX {
        return Err(anyhow!(
            "{} held deletions exceed the limit of {FINGERPRINTS_MAX}; set sluice.allowMassDeletion to true and restart \
             the controller, until they are done",
            all.len()
        ));
    }
    Ok(all)
}

/// The annotation that allows these and what was allowed before.
fn annotation(before: &str, held: &[Fingerprint]) -> String {
    let mut fingerprints: Vec<Fingerprint> = AllowedDeletions::parse(before).iter().collect();
    fingerprints.truncate(FINGERPRINTS_MAX.saturating_sub(held.len()));
    fingerprints.into_iter().chain(held.iter().copied()).collect::<AllowedDeletions>().annotation()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use sluice_model::{EgressName, ServiceKey};

    use super::*;

    fn held(names: &[&str]) -> BTreeSet<Held> {
        let one = |name: &&str| {
            let key = ServiceKey::Outbound(EgressName::parse(name).unwrap());
            Held { name: format!("egress/{name}"), fingerprint: Fingerprint::of(&key, None).to_string() }
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn what_will_be_deleted_is_shown_one_by_one() {
        expect![[r#"
            - egress/blue                              f9a51cb829bea38a
            - egress/red                               c5925824ba1689c1
            Plan: 2 gateway services to delete, with load balancer or NAT gateway and public IPs."#]]
        .assert_eq(&plan(&held(&["red", "blue"])));
    }

    #[test]
    fn with_yes_held_deletions_that_changed_are_an_error() {
        let shown = held(&["blue", "red"]);
        for now in [held(&["blue", "green", "red"]), held(&["blue"]), held(&["blue", "green"]), held(&[])] {
            let error = may_allow(true, &shown, &now).unwrap_err().to_string();
            assert!(error.contains("no changes made: the held deletions changed"), "{error}");
        }
        assert!(may_allow(true, &shown, &held(&["red", "blue"])).unwrap());
    }

    #[test]
    fn without_yes_held_deletions_that_changed_are_shown_again() {
        let shown = held(&["blue", "red"]);
        assert!(!may_allow(false, &shown, &held(&["blue", "green", "red"])).unwrap());
        assert!(!may_allow(false, &shown, &held(&["blue"])).unwrap());
        assert!(may_allow(false, &shown, &shown).unwrap());
    }

    #[test]
    fn the_consent_names_exactly_the_held_set_and_keeps_earlier_consent() {
        let allowing =
            |before: &str, names: &[&str]| annotation(before, &fingerprints(&held(names)).unwrap());
        let first = allowing("", &["blue", "red"]);
        assert_eq!(first, allowing("", &["red", "blue"]));
        let second = allowing(&first, &["green"]);
        assert_eq!(second, allowing("", &["red", "green", "blue"]));
        assert_eq!(AllowedDeletions::parse(&second).iter().count(), 3);
    }

    #[test]
    fn a_fingerprint_that_cannot_be_read_allows_nothing() {
        let odd = BTreeSet::from([Held { name: "egress/blue".into(), fingerprint: "all".into() }]);
        assert!(fingerprints(&odd).unwrap_err().to_string().contains("use the version of the controller"));
    }
}
