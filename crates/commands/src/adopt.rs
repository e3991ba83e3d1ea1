//! `sluice adopt`: claims resources that somebody else made for our services, by tagging them.
//!
//! The service gateway may be claimed while it carries no cluster's tag; a controller with
//! `sluice.gateway.mode: verify` asks for that, one with `ensure` does it by itself. So may what is registered
//! with our gateway under the name of a live Service or egress, or of a Service that only finalizers of another
//! controller keep, and carries no cluster's tag. Load balancers of live Services are adopted by the controller
//! anyway, with the next write that is needed; NAT gateways only here, because an egress name is chosen by
//! whoever labels a pod. What carries another cluster's tag, or is not named as ours are, is shown and left alone.

mod candidates;
mod claim;

use anyhow::anyhow;
use clap::Args;
use futures::future::LocalBoxFuture;
use sluice_model::effect::Listing;

use crate::config::ConfigArguments;
use crate::consent;
use crate::failure::Failure;
use crate::reach::Reached;
use candidates::{Found, candidates};
use claim::{Claimed, claim};

/// Tag existing resources as managed.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Tag only these targets [default: all]
    ///
    /// A target is `service/NAMESPACE/NAME`, `egress/NAME` or `gateway`.
    #[arg(value_name = "TARGET")]
    only: Vec<String>,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
}

const HELP: &str = "\
Example: sluice adopt --config azure.yaml egress/blue

Exit codes: 0 tagged, declined at the prompt, or nothing to tag · 1 failed · 2 invalid arguments or configuration · \
5 Kubernetes unreachable or access denied · 6 no Azure access token";

/// Shows what would be claimed, asks, and tags it.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<(), Failure>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> Result<(), Failure> {
    let reached = Reached::by(&arguments.config).await?;
    let scope = reached.config.scope(&reached.cluster_id);
    let worlds = reached.read().await?;
    let claimed_by_another = worlds.azure.iter().find_map(|listing| match listing {
        Listing::Foundation { gateway: Some(gateway), .. } => {
            let owner = gateway.meta.tags.get(sluice_model::names::CLUSTER_TAG)?;
            (**owner != *reached.cluster_id).then(|| owner.to_string())
        }
        _ => None,
    });
    if let Some(owner) = claimed_by_another {
        let (gateway, cluster) = (&scope.gateway, &reached.cluster_id);
        return Err(anyhow!(
            "gateway {gateway} is managed by cluster {owner}, and this cluster is {cluster}; set sluice.gateway.name to \
             another gateway"
        )
        .into());
    }
    let Found { mut claimable, left_alone } = candidates(&scope, &worlds);
    if let Some(odd) = arguments.only.iter().find(|name| !claimable.iter().any(|it| it.of == **name)) {
        let error =
            anyhow!("nothing to tag for {odd}; run `sluice adopt` without a target to list all candidates");
        return Err(error.into());
    }
    claimable.retain(|it| arguments.only.is_empty() || arguments.only.contains(&it.of));
    for (name, why) in &left_alone {
        println!("! {name}: skipped ({why})");
    }
    if claimable.is_empty() {
        println!(
            "Nothing to tag: the gateway and the registered resources of all Services and egresses have tags."
        );
        return Ok(());
    }
    for candidate in &claimable {
        println!(
            "~ {:<15} {}  (for {}: tags of cluster {})",
            candidate.what,
            candidate.id.name(),
            candidate.of,
            reached.cluster_id
        );
    }
    println!("Plan: {} to tag.", claimable.len());
    if !consent::given(arguments.yes, "Tag them?")? {
        println!("No changes made.");
        return Ok(());
    }
    for candidate in claimable {
        let (what, name) = (candidate.what, candidate.id.name());
        match claim(&reached.azure, &candidate).await? {
            Claimed::Yes => println!("Tagged {what} {name}."),
            Claimed::LeftAlone(why) => println!("! {what} {name}: skipped ({why})"),
        }
    }
    Ok(())
}
