//! Operations as clients see them: the URLs that are polled, and what they lead to.
//!
//! The model numbers operations; in their URLs stand the region of what they work on, the version of the
//! request that began them, and four tokens that Azure wants back and we do not look at.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sluice_cloud::Cloud;
use sluice_model::azure::ArmId;

use super::document::guid;

/// What an operation does, which decides how its `Location` ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Write,
    Delete,
    DeleteGroup,
    Post,
}

/// An operation that a client has been told of.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// Its id in the model.
    pub(crate) id: ArmId,
    pub(crate) work: Work,
    pub(crate) region: String,
}

/// All operations that clients may ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    /// By the last part of their id.
    all: BTreeMap<String, Issued>,
    /// When there are so many, those that the model has forgotten are forgotten here.
    cleaned_at: usize,
}

impl Operations {
    /// Takes up an operation that has begun.
    pub(crate) fn issue(&mut self, cloud: &Cloud, issued: Issued) {
        if self.all.len() >= self.cleaned_at.max(1_024) {
            self.all.retain(|_, it| cloud.operation_state(&it.id).is_some());
            self.cleaned_at = self.all.len().saturating_mul(2);
        }
        self.all.insert(issued.id.name().to_ascii_lowercase(), issued);
    }

    /// The operation at a path of this region and subscription.
    pub(crate) fn at(&self, subscription: &str, region: &str, name: &str) -> Option<&Issued> {
        let issued = self.all.get(&name.to_ascii_lowercase())?;
        let fits = issued.region.eq_ignore_ascii_case(region) && is_of(&issued.id, subscription);
        fits.then_some(issued)
    }

    /// The group deletion that a job's name stands for.
    pub(crate) fn of_job(&self, subscription: &str, job: &str) -> Option<&Issued> {
        let text = URL_SAFE_NO_PAD.decode(job).ok()?;
        let job: Value = serde_json::from_slice(&text).ok()?;
        let issued = self.all.get(job.get("jobOperation")?.as_str()?)?;
        (issued.work == Work::DeleteGroup && is_of(&issued.id, subscription)).then_some(issued)
    }
}

fn is_of(id: &ArmId, subscription: &str) -> bool {
    id.segment("subscriptions").is_some_and(|it| it.eq_ignore_ascii_case(subscription))
}

impl Issued {
    /// `Azure-AsyncOperation`.
    pub(crate) fn status_url(&self, origin: &str, subscription: &str, version: &str) -> String {
        self.url(origin, subscription, version, "operations")
    }

    /// `Location`.
    pub(crate) fn result_url(&self, origin: &str, subscription: &str, version: &str) -> String {
        self.url(origin, subscription, version, "operationResults")
    }

    fn url(&self, origin: &str, subscription: &str, version: &str, word: &str) -> String {
        let Issued { region, id, .. } = self;
        format!(
            "{origin}/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/{word}/{}\
             ?api-version={version}&{}",
            id.name(),
            tokens(id)
        )
    }

    /// `Location` of a group's deletion: a job whose name is the group's, so to say.
    pub(crate) fn job_url(&self, origin: &str, subscription: &str, version: &str, group: &str) -> String {
        let name: String = group
            .chars()
            .map(|c| match c {
                '-' => ":2D".into(),
                '.' => ":2E".into(),
                '_' => ":5F".into(),
                c => c.to_ascii_uppercase().to_string(),
            })
            .collect();
        let job = json!({
            "jobId": format!("RESOURCEGROUPDELETIONJOB-{name}-{}", self.region.to_ascii_uppercase()),
            "jobLocation": self.region,
            "jobOperation": self.id.name(),
        });
        let job = URL_SAFE_NO_PAD.encode(job.to_string());
        format!(
            "{origin}/subscriptions/{subscription}/operationresults/{job}?api-version={version}&{}",
            tokens(&self.id)
        )
    }
}

/// The four tokens of an operation's URL.
fn tokens(id: &ArmId) -> String {
    let token = |salt: &str| guid(&format!("{salt}{id}")).replace('-', "");
    // The first is a time in hundreds of nanoseconds; nobody reads it.
    let ticks = u64::from_str_radix(&token("t")[..15], 16).unwrap_or(0) % 1_000_000_000_000_000;
    format!("t=639{ticks:015}&c={}&s={}&h={}", token("c"), token("s"), token("h"))
}
