//! A forecast for people, like Terraform, and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use sluice_model::call::Method;
use sluice_model::effect::{About, Notice};
use sluice_model::names::Scope;

use super::changes::{Change, Changes, Deed, changes};
use super::foresight::Forecast;
use crate::paint::Paint;

/// What `sluice plan` has to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Nothing would be written, neither to Azure nor to Kubernetes.
    pub in_sync: bool,
    /// What would change, by whom it is for.
    pub changes: BTreeMap<String, Vec<Change>>,
    /// Calls to Azure by what they do.
    pub calls: BTreeMap<&'static str, usize>,
    /// Writes among them.
    pub writes: usize,
    /// What is not served, and why.
    pub not_served: Vec<NotServed>,
    /// What people would be told beside that.
    pub warnings: Vec<String>,
    /// What is registered, unwanted and not provably ours; it is left alone.
    pub unclaimed: Vec<String>,
    /// Everything would be done in the end.
    pub settles: bool,
}

/// A service that would not be served.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotServed {
    /// Which.
    pub name: String,
    /// The fixed word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Report {
    /// What a forecast means.
    pub fn of(scope: &Scope, forecast: &Forecast) -> Report {
        let changes: Changes = changes(scope, forecast);
        let names = |view: &sluice_engine::ServiceView| match &view.object {
            Some(object) => format!("service/{object}"),
            None => view.key.to_string(),
        };
        let not_served = forecast.services.iter().filter_map(|view| {
            let (reason, message) = view.invalid.clone()?;
            Some(NotServed { name: names(view), reason: reason.word(), message })
        });
        let told = |notice: &&Notice| notice.warning && !matches!(notice.about, About::Service(_));
        Report {
            in_sync: changes.is_empty() && forecast.writes.is_empty(),
            changes: changes.into_iter().map(|(subject, all)| (subject.to_string(), all)).collect(),
            calls: forecast.calls.iter().map(|(method, count)| (word(*method), *count)).collect(),
            writes: forecast.writes.len(),
            not_served: not_served.collect(),
            warnings: forecast.notices.iter().filter(told).map(|it| it.text.clone()).collect(),
            unclaimed: forecast.unclaimed.clone(),
            settles: forecast.settled,
        }
    }

    /// The lines that people read.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for (subject, all) in &self.changes {
            let _ = writeln!(text, "{}", paint.bold(subject));
            for change in all {
                let line = line(change);
                let _ = writeln!(text, "  {}", painted(paint, change.deed, &line));
            }
        }
        if !self.changes.is_empty() {
            text.push('\n');
        }
        for it in &self.not_served {
            let _ = writeln!(text, "! {} is not served ({}): {}", it.name, it.reason, it.message);
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "! {warning}");
        }
        for name in &self.unclaimed {
            let _ =
                writeln!(text, "! {name} is registered, unwanted and not provably ours; it is left alone");
        }
        if !self.settles {
            let _ =
                writeln!(text, "! not everything would be done: see the lines above, and `sluice explain`");
        }
        if self.in_sync {
            let _ = writeln!(text, "In sync: nothing would be written, neither to Azure nor to Kubernetes.");
            return text;
        }
        let count = |deed| self.changes.values().flatten().filter(|it| it.deed == deed).count();
        let (made, changed, gone) = (count(Deed::Create), count(Deed::Update), count(Deed::Delete));
        let _ = writeln!(text, "Plan: {made} to create, {changed} to change, {gone} to delete.");
        let calls: Vec<String> = self.calls.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let noun = if self.writes == 1 { "write" } else { "writes" };
        let _ = writeln!(text, "Calls to Azure: {} {noun}; in all {}.", self.writes, calls.join(", "));
        text
    }
}

fn line(change: &Change) -> String {
    let Change { deed, what, name, details } = change;
    let details = if details.is_empty() { String::new() } else { format!("  ({details})") };
    format!("{} {what:<15} {name}{details}", deed.sign())
}

/// A fixed word for each kind of call.
fn word(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::List => "list",
        Method::Put => "put",
        Method::PatchTags => "patch",
        Method::Delete => "delete",
        Method::UpdateServices => "updateServices",
        Method::UpdateLocations => "updateAddressLocations",
        Method::Poll => "poll",
    }
}

fn painted(paint: Paint, deed: Deed, text: &str) -> String {
    match deed {
        Deed::Create => paint.good(text),
        Deed::Update => paint.busy(text),
        Deed::Delete => paint.bad(text),
    }
}
