//! What the Azure role must grant, and which of it is missing.
//!
//! Whether a write is allowed cannot be tried without writing, but Azure can be asked what we may do in
//! a resource group. The actions are those of the shipped role; [`grants`] lists them.

mod grants;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::finding::{Finding, Group};
use grants::{GRANTS, Grant};

pub(super) use grants::RoleScope;

/// The version of Microsoft.Authorization that is asked.
const API_VERSION: &str = "2022-04-01";
const GROUP: Group = Group::Azure;

/// The question for one resource group.
pub(super) fn question(subscription: &str, group: &str) -> String {
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Authorization/permissions\
         ?api-version={API_VERSION}"
    )
}

/// The actions of the role that are needed in any of these scopes, each once.
pub(super) fn needed(scopes: &[RoleScope]) -> Vec<&'static Grant> {
    GRANTS.iter().filter(|grant| grant.scopes.iter().any(|scope| scopes.contains(scope))).collect()
}

/// What Azure's answer means for one resource group.
pub(super) fn diagnose(
    subscription: &str,
    group: &str,
    needed: &[&Grant],
    status: u16,
    body: &Value,
) -> Vec<Finding> {
    let Some(entries) = body["value"].as_array().filter(|_| status == 200) else {
        let code = body["error"]["code"].as_str().map_or(String::new(), |code| format!(", {code}"));
        if status == 401 {
            let text = format!(
                "permissions in resource group {group}: not checked (Azure rejected the credential: 401{code})"
            );
            return vec![Finding::skipped(GROUP, text)];
        }
        return vec![Finding::skipped(
            GROUP,
            format!(
                "permissions in resource group {group}: not checked ({status}{code}); needs Microsoft.Authorization/permissions/read"
            ),
        )];
    };
    let missing: Vec<&Grant> =
        needed.iter().copied().filter(|grant| !is_granted(entries, grant.action)).collect();
    if missing.is_empty() {
        return vec![Finding::good(
            GROUP,
            format!("permissions in resource group {group}: all {} granted", needed.len()),
        )];
    }
    let list: String = missing.iter().map(|grant| format!("\n{}: {}", grant.action, grant.why)).collect();
    vec![Finding::problem(
        GROUP,
        format!("permissions in resource group {group}: {} of {} missing{list}", missing.len(), needed.len()),
        format!(
            "az role definition create --role-definition azure-role.json   # or update, if the role exists\n\
             az role assignment create --role Sluice --assignee CLIENT_ID \
             --scope /subscriptions/{subscription}/resourceGroups/{group}"
        ),
    )]
}

/// Each entry is a role; one that grants an action and does not except it is enough.
fn is_granted(entries: &[Value], action: &str) -> bool {
    let any = |list: &Value| {
        list.as_array()
            .is_some_and(|them| them.iter().filter_map(Value::as_str).any(|it| matches(it, action)))
    };
    entries.iter().any(|entry| any(&entry["actions"]) && !any(&entry["notActions"]))
}

/// Whether a pattern with stars covers an action, whatever the case.
fn matches(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| action.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
