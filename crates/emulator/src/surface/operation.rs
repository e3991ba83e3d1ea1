//! Operations as clients see them: the URLs that are polled.
//!
//! The model's ids are the paths of `Azure-AsyncOperation`. Their URLs also have the version of the request
//! that began them, and four tokens that Azure wants back and we do not look at.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sluice_model::azure::ArmId;

use super::document::guid;

/// The model's id of an operation at a path.
pub(crate) fn id(subscription: &str, region: &str, name: &str) -> ArmId {
    ArmId::new(format!(
        "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/operations/{name}"
    ))
}

/// The group deletion that a job's name stands for.
pub(crate) fn of_job(subscription: &str, job: &str) -> Option<ArmId> {
    let text = URL_SAFE_NO_PAD.decode(job).ok()?;
    let job: Value = serde_json::from_slice(&text).ok()?;
    let text = |name: &str| job.get(name)?.as_str();
    Some(id(subscription, text("jobLocation")?, text("jobOperation")?))
}

/// `Azure-AsyncOperation`.
pub(crate) fn status_url(origin: &str, id: &ArmId, version: &str) -> String {
    format!("{origin}{id}?api-version={version}&{}", tokens(id))
}

/// `Location`.
pub(crate) fn result_url(origin: &str, id: &ArmId, version: &str) -> String {
    let path = id.as_str().replace("/operations/", "/operationResults/");
    format!("{origin}{path}?api-version={version}&{}", tokens(id))
}

/// `Location` of a group's deletion: a job that is called after the group.
pub(crate) fn job_url(origin: &str, id: &ArmId, version: &str, group: &str) -> String {
    let region = id.segment("locations").unwrap_or("");
    let name = group.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase().to_string(),
        c => format!(":{:02X}", u32::from(c)),
    });
    let job = json!({
        "jobId": format!("RESOURCEGROUPDELETIONJOB-{}-{}", name.collect::<String>(), region.to_ascii_uppercase()),
        "jobLocation": region,
        "jobOperation": id.name(),
    });
    let job = URL_SAFE_NO_PAD.encode(job.to_string());
    let subscription = id.segment("subscriptions").unwrap_or("");
    format!(
        "{origin}/subscriptions/{subscription}/operationresults/{job}?api-version={version}&{}",
        tokens(id)
    )
}

/// The four tokens of an operation's URL.
fn tokens(id: &ArmId) -> String {
    let token = |salt: &str| guid(&format!("{salt}{id}")).replace('-', "");
    // The first is a time in ten-millionths of a second; nobody reads it.
    let ticks = u64::from_str_radix(&token("t")[..12], 16).unwrap_or(0);
    format!("t=639{ticks:015}&c={}&s={}&h={}", token("c"), token("s"), token("h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_job_leads_back_to_its_operation() {
        let deletion = id("s", "eastus2", "7");
        let url = job_url("https://host", &deletion, "2021-04-01", "my-group");
        let job = url.split("/operationresults/").nth(1).unwrap().split('?').next().unwrap();
        assert_eq!(of_job("s", job), Some(deletion));
        for wrong in ["", "e30", "bm9uc2Vuc2U", "%"] {
            assert_eq!(of_job("s", wrong), None, "{wrong}");
        }
    }
}
