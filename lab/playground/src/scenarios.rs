//! The stories: what there are, and how one is played to its end.
//!
//! Each is a small file that reads from top to bottom. A story ends well only if Kubernetes and Azure agree
//! at its end, looked at from outside; until then it has not ended, however well it looked on the way.

mod burst;
mod crash;
mod egress_change;
mod existing_state;
mod meddling;
mod outage;
mod rollout;
mod throttled;
mod tour;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use super::narrator::count;
use super::pace::span;
use super::stage::{Stage, Unconverged};

/// One story.
pub(super) struct Scenario {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// What it is about, in one breath.
    pub(super) about: &'static str,
    /// Whether the controller is at work when it begins; if not, the story starts it.
    pub(super) begins_at_work: bool,
    play: Play,
}

pub(super) type Play = for<'a> fn(&'a mut Stage) -> LocalBoxFuture<'a, Result<()>>;

impl Scenario {
    pub(super) const fn new(name: &'static str, about: &'static str, play: Play) -> Scenario {
        Scenario { name, about, begins_at_work: true, play }
    }

    /// The controller is not started before the story wants it.
    const fn at_rest(mut self) -> Scenario {
        self.begins_at_work = false;
        self
    }
}

/// All of them, in the order in which one learns from them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "tour",
        "an address for a shop, one for a crawler, a change, and the end of both",
        |stage| Box::pin(tour::play(stage)),
    ),
    Scenario::new("burst", "two hundred Services at once, and Azure's limits are kept", |stage| {
        Box::pin(burst::play(stage))
    }),
    Scenario::new(
        "rollout",
        "every pod of three shops is replaced, and none of them is ever without",
        |stage| Box::pin(rollout::play(stage)),
    ),
    Scenario::new("outage", "Azure is away while people go on working, and comes back", |stage| {
        Box::pin(outage::play(stage))
    }),
    Scenario::new("throttled", "a subscription that allows hardly anything, and gets its pauses", |stage| {
        Box::pin(throttled::play(stage))
    }),
    Scenario::new("meddling", "somebody deletes things behind our back, and they come back", |stage| {
        Box::pin(meddling::play(stage))
    }),
    Scenario::new(
        "existing-state",
        "a first start in a full cluster, with leftovers in Azure, and a second that writes nothing",
        |stage| Box::pin(existing_state::play(stage)),
    )
    .at_rest(),
    Scenario::new(
        "egress-change",
        "a pod changes its way out, and the old one goes with the last pod",
        |stage| Box::pin(egress_change::play(stage)),
    ),
    Scenario::new(
        "crash",
        "the controller dies in the middle of its work, and no address is lost",
        |stage| Box::pin(crash::play(stage)),
    ),
];

/// The one of this name.
pub(super) fn named(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|it| it.name).collect();
        let near = names.iter().max_by(|one, other| {
            strsim::jaro_winkler(name, one).total_cmp(&strsim::jaro_winkler(name, other))
        });
        format!("did you mean {}? There are {}", near.unwrap_or(&"tour"), names.join(", "))
    })
}

/// How a story ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Both worlds agree.
    Converged,
    /// They do not, or it never came so far.
    Stuck(Vec<String>),
}

/// Plays a story and looks at what is left of it.
pub(super) async fn play(scenario: &Scenario, stage: &mut Stage) -> End {
    stage.narrator.title(scenario.name, scenario.about);
    let played = async {
        (scenario.play)(stage).await?;
        stage.narrator.tell(
            "The end. Now the two worlds are compared from outside: what the API server wants and what Azure has.",
        );
        stage.converged().await
    };
    let ended = played.await;
    let took = span(stage.narrator.elapsed());
    match ended {
        Ok(seen) => {
            let addresses = seen.azure.mapped().len();
            stage.narrator.answer(&format!(
                "converged after {took}: {}, {} (everybody's default among them), {} and {} in the gateway, \
                 exactly as Kubernetes wants it; nothing is left over",
                count(seen.azure.all("loadBalancers").len(), "load balancer"),
                count(seen.azure.all("natGateways").len(), "NAT gateway"),
                count(seen.azure.all("publicIPAddresses").len(), "public IP"),
                if addresses == 1 { "1 address".to_owned() } else { format!("{addresses} addresses") },
            ));
            End::Converged
        }
        Err(error) => {
            let wrong = match error.downcast_ref::<Unconverged>() {
                Some(unconverged) => unconverged.wrong.clone(),
                None => vec![format!("{error:#}")],
            };
            for line in format!("{error:#}").lines() {
                stage.narrator.wrong(line);
            }
            End::Stuck(wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_has_is_answered_with_the_nearest_and_all_others() {
        let words = named("tuor").err().unwrap();
        assert!(words.starts_with("did you mean tour? There are tour"), "{words}");
        assert!(SCENARIOS.iter().all(|it| named(it.name).is_ok_and(|found| found.about == it.about)));
    }
}
