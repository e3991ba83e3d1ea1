//! A forecast for people, like Terraform, and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use sluice_model::call::Method;
use sluice_model::effect::{About, Notice};
use sluice_model::names::Scope;

use super::changes::{Change, Changes, Deed, changes};
use super::foresight::Forecast;
use super::held::{Case, held, not_served};
use crate::paint::Paint;

/// In one word, what `sluice plan` has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Nothing would be written, and nothing that should be is held back.
    InSync,
    /// Something would be written.
    Changes,
    /// Nothing would be written, because what should be is held back.
    Held,
}

/// What `sluice plan` has to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// In one word.
    pub verdict: Verdict,
    /// The same for whoever asks only that: the verdict is `inSync`.
    pub in_sync: bool,
    /// What would change, by whom it is for.
    pub changes: BTreeMap<String, Vec<Change>>,
    /// Calls to Azure by what they do.
    pub calls: BTreeMap<&'static str, usize>,
    /// Writes among them.
    pub writes: usize,
    /// What should be done and is held back, and by what.
    pub held: Vec<Case>,
    /// What asks for something that cannot be, wholly or in part, so that there is nothing to do.
    pub not_served: Vec<Case>,
    /// What people would be told beside that.
    pub warnings: Vec<String>,
    /// What is registered, unwanted and not provably ours; it is left alone.
    pub unclaimed: Vec<String>,
    /// Addresses that stay because they name services that are not managed.
    pub kept_for_others: u64,
    /// Everything would be done in the end.
    pub settles: bool,
}

impl Report {
    /// What a forecast means.
    pub fn of(scope: &Scope, forecast: &Forecast) -> Report {
        let changes: Changes = changes(scope, forecast);
        let held = held(forecast);
        // What is held has a line of its own, and so has a Service.
        let told = |notice: &&Notice| {
            let is_held = held.iter().any(|it| it.message == notice.text);
            notice.warning && !is_held && !matches!(notice.about, About::Service(_))
        };
        let told = forecast.notices.iter().filter(told).map(|it| it.text.clone());
        let warnings = told.chain(forecast.skipped.iter().cloned()).collect();
        let verdict = match (changes.is_empty() && forecast.writes.is_empty(), held.is_empty()) {
            (false, _) => Verdict::Changes,
            (true, false) => Verdict::Held,
            (true, true) => Verdict::InSync,
        };
        Report {
            verdict,
            in_sync: verdict == Verdict::InSync,
            changes: changes.into_iter().map(|(subject, all)| (subject.to_string(), all)).collect(),
            calls: forecast.calls.iter().map(|(method, count)| (word(*method), *count)).collect(),
            writes: forecast.writes.len(),
            held,
            not_served: not_served(forecast),
            warnings,
            unclaimed: forecast.unclaimed.clone(),
            kept_for_others: forecast.kept_for_others,
            settles: forecast.settled,
        }
    }

    /// Whether nothing would be done, be it because nothing should or because it is held back.
    pub fn writes_nothing(&self) -> bool {
        self.verdict != Verdict::Changes
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
        if !self.held.is_empty() {
            let _ = writeln!(text, "{}", paint.bold("held"));
            for Case { name, reason, message } in &self.held {
                let line = format!("! {name} ({reason}): {message}");
                let _ = writeln!(text, "  {}", paint.busy(&line));
            }
            text.push('\n');
        }
        for it in &self.not_served {
            let _ =
                writeln!(text, "! {} is not served as specified ({}): {}", it.name, it.reason, it.message);
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "! {warning}");
        }
        for name in &self.unclaimed {
            let _ = writeln!(
                text,
                "! {name} is registered, but neither desired nor managed by this cluster; left unchanged"
            );
        }
        match self.kept_for_others {
            0 => {}
            1 => text.push_str("! 1 address is kept for unmanaged gateway services\n"),
            many => {
                let _ = writeln!(text, "! {many} addresses are kept for unmanaged gateway services");
            }
        }
        // What is held says so itself.
        if !self.settles && self.held.is_empty() {
            let _ = writeln!(
                text,
                "! the plan is incomplete: some changes stay pending; see the lines above and `sluice explain`"
            );
        }
        match self.verdict {
            Verdict::InSync => {
                // Whoever reads only this line must learn of the others.
                let _ = match text.lines().filter(|line| line.starts_with('!')).count() {
                    0 => writeln!(text, "In sync: no changes to Azure or Kubernetes."),
                    1 => writeln!(text, "No changes to Azure or Kubernetes; see the warning above."),
                    several => {
                        writeln!(text, "No changes to Azure or Kubernetes; see the {several} warnings above.")
                    }
                };
                return text;
            }
            Verdict::Held => {
                let _ = writeln!(
                    text,
                    "Held: no changes to Azure or Kubernetes until the blockers above are resolved."
                );
                return text;
            }
            Verdict::Changes => {}
        }
        let count = |deed| self.changes.values().flatten().filter(|it| it.deed == deed).count();
        let (made, changed, gone) = (count(Deed::Create), count(Deed::Update), count(Deed::Delete));
        let _ = writeln!(text, "Plan: {made} to create, {changed} to change, {gone} to delete.");
        let calls: Vec<String> = self.calls.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let noun = if self.writes == 1 { "write" } else { "writes" };
        let _ = writeln!(text, "Azure calls: {} {noun}; in total {}.", self.writes, calls.join(", "));
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
