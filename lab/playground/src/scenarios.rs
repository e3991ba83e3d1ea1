//! The stories, and how one of them is played.
//!
//! Each is a small file that reads from top to bottom. A story passes only if Kubernetes and Azure match at its end,
//! by a comparison that shares no code with the controller.

mod burst;
mod crash;
mod drift;
mod egress_change;
mod first_start;
mod outage;
mod rollout;
mod throttled;
mod tour;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use super::check::DEFAULT_EGRESS;
use super::narrator::count;
use super::stage::{Stage, Unconverged};

/// One story.
pub(super) struct Scenario {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it demonstrates, for `--list` and as its title.
    pub(super) about: &'static str,
    /// The title of the page that explains it, up to a colon.
    page: &'static str,
    /// Whether the controller runs when it begins; if not, the story starts it.
    pub(super) begins_at_work: bool,
    play: Play,
}

pub(super) type Play = for<'a> fn(&'a mut Stage) -> LocalBoxFuture<'a, Result<()>>;

impl Scenario {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        page: &'static str,
        play: Play,
    ) -> Scenario {
        Scenario { name, about, page, begins_at_work: true, play }
    }

    /// A story that starts the controller itself.
    const fn at_rest(mut self) -> Scenario {
        self.begins_at_work = false;
        self
    }

    /// One command and one page to go on with.
    fn next(&self) -> String {
        let after = SCENARIOS.iter().skip_while(|it| it.name != self.name).nth(1);
        let command = match after {
            Some(after) => format!("sluice playground --scenario {}", after.name),
            None => "sluice playground".to_owned(),
        };
        format!("run `{command}`, or read the page \"{}\"", self.page)
    }
}

/// All stories, in the order in which a newcomer should play them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario::new("tour", "create, change and delete a Service and an egress", "How it works", |stage| {
        Box::pin(tour::play(stage))
    }),
    Scenario::new(
        "burst",
        "create 200 Services at once within the rate limits of Azure",
        "Cost and limits",
        |stage| Box::pin(burst::play(stage)),
    ),
    Scenario::new(
        "rollout",
        "replace all pods of 3 Services without a gap in their addresses",
        "Address sync",
        |stage| Box::pin(rollout::play(stage)),
    ),
    Scenario::new(
        "outage",
        "create and scale Services while Azure is unavailable",
        "Lifecycle, retries and parking",
        |stage| Box::pin(outage::play(stage)),
    ),
    Scenario::new(
        "throttled",
        "create 25 Services while Azure allows 1 write per second",
        "Azure calls and their budget",
        |stage| Box::pin(throttled::play(stage)),
    ),
    Scenario::new(
        "drift",
        "repair resources that were changed outside Sluice",
        "Startup and drift",
        |stage| Box::pin(drift::play(stage)),
    ),
    Scenario::new(
        "first-start",
        "start Sluice with existing Services and orphans, then restart it without a write",
        "Install with the manifests",
        |stage| Box::pin(first_start::play(stage)),
    )
    .at_rest(),
    Scenario::new(
        "egress-change",
        "move pods to a new and to an existing egress, and delete the unused one",
        "Give pods an egress IP of their own",
        |stage| Box::pin(egress_change::play(stage)),
    ),
    Scenario::new(
        "crash",
        "recover from a crash during the creation of 20 Services",
        "Startup and drift",
        |stage| Box::pin(crash::play(stage)),
    ),
];

/// Finds a story by its name; else the hint for the error.
pub(super) fn named(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|it| it.name).collect();
        let near = names.iter().max_by(|one, other| {
            strsim::jaro_winkler(name, one).total_cmp(&strsim::jaro_winkler(name, other))
        });
        format!("did you mean {}? The scenarios are {}", near.unwrap_or(&"tour"), names.join(", "))
    })
}

/// How a story ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Kubernetes and Azure match.
    Converged,
    /// They differ, or a step failed.
    Stuck(Vec<String>),
}

/// Plays a story, and compares Kubernetes and Azure at its end.
pub(super) async fn play(scenario: &Scenario, stage: &mut Stage) -> End {
    stage.narrator.title(scenario.name, scenario.about);
    let played = async {
        (scenario.play)(stage).await?;
        stage.narrator.step(
            "Compare Kubernetes with Azure. The comparison reads both and does not ask Sluice, so it also detects \
             errors of Sluice.",
        );
        let seen = stage.converged().await?;
        stage.narrator.answer(&format!(
            "no differences; the counts include the default NAT gateway {DEFAULT_EGRESS} and its public IP"
        ));
        Ok(seen)
    };
    let ended: Result<_> = played.await;
    match ended {
        Ok(seen) => {
            let all = |kind| seen.azure.all(kind).len() as u64;
            let counts = [
                count(all("loadBalancers"), "load balancer"),
                count(all("natGateways"), "NAT gateway"),
                count(all("publicIPAddresses"), "public IP"),
                count(seen.azure.mapped().len() as u64, "address"),
            ];
            let words = format!("Kubernetes and Azure match ({})", counts.join(", "));
            stage.narrator.passed(&words, &scenario.next());
            End::Converged
        }
        Err(error) => {
            stage.narrator.failed(&format!("{error:#}"));
            End::Stuck(match error.downcast::<Unconverged>() {
                Ok(unconverged) => unconverged.wrong,
                Err(error) => vec![format!("{error:#}")],
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_and_all_others() {
        let words = named("tuor").err().unwrap();
        assert!(words.starts_with("did you mean tour? The scenarios are tour"), "{words}");
        assert!(SCENARIOS.iter().all(|it| named(it.name).is_ok_and(|found| found.about == it.about)));
    }

    #[test]
    fn a_story_leads_to_the_next_one_and_the_last_to_the_playground() {
        let next: Vec<String> = SCENARIOS.iter().map(Scenario::next).collect();
        assert_eq!(next[0], "run `sluice playground --scenario burst`, or read the page \"How it works\"");
        assert!(next[SCENARIOS.len() - 1].starts_with("run `sluice playground`,"), "{next:#?}");
    }

    #[test]
    fn the_pages_of_the_stories_exist() {
        let mut titles = Vec::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "md") {
                    titles.push(
                        fs::read_to_string(path).unwrap().lines().next().unwrap_or_default().to_owned(),
                    );
                }
            }
        }
        for it in SCENARIOS {
            let title = format!("# {}", it.page);
            let is_there = titles.iter().any(|line| line.split(':').next() == Some(&*title));
            assert!(
                is_there,
                "no page has the title {title:?}, which the end of the story {} names",
                it.name
            );
        }
    }
}
