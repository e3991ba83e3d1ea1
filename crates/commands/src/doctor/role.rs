//! What the Azure role must grant, and which of it is missing.
//!
//! Whether a write is allowed cannot be tried without writing, but Azure can be asked what we may do in
//! a resource group. The actions are those of the shipped role, read from its file.

use serde_json::Value;

use super::finding::{Finding, Group};

const ROLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/azure-role.json"));
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

/// The actions of the shipped role that concern a resource group: those on virtual networks in theirs, all
/// others in ours. What concerns a whole subscription is not asked here.
pub(super) fn actions(is_network: bool) -> Vec<String> {
    let role: Value = serde_json::from_str(ROLE).expect("the shipped role is JSON; a test reads it");
    let actions = role["Actions"].as_array().cloned().unwrap_or_default();
    let words = actions.iter().filter_map(Value::as_str).filter(|action| !action.contains("/locations/"));
    words.filter(|action| action.contains("/virtualNetworks/") == is_network).map(str::to_owned).collect()
}

/// What Azure's answer means for one resource group.
pub(super) fn diagnose(group: &str, needed: &[String], status: u16, body: &Value) -> Vec<Finding> {
    let Some(entries) = body["value"].as_array().filter(|_| status == 200) else {
        let code = body["error"]["code"].as_str().map_or(String::new(), |code| format!(", {code}"));
        return vec![Finding::skipped(
            GROUP,
            format!(
                "what we may write in the resource group {group}: Azure does not say ({status}{code}); it shows \
                 with the first write, on the object and in its event"
            ),
        )];
    };
    let missing: Vec<&String> = needed.iter().filter(|action| !is_granted(entries, action)).collect();
    if missing.is_empty() {
        return vec![Finding::good(
            GROUP,
            format!("our role grants all that is needed in the resource group {group}"),
        )];
    }
    let list: String = missing.iter().map(|action| format!("\n{action}")).collect();
    vec![Finding::problem(
        GROUP,
        format!("in the resource group {group} our role does not grant{list}"),
        format!(
            "az role definition create --role-definition deploy/azure-role.json\n\
             az role assignment create --role Sluice --assignee CLIENT-ID --resource-group {group}"
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::told;

    #[test]
    fn stars_cover_what_azure_says_they_cover() {
        let write = "Microsoft.Network/loadBalancers/write";
        for pattern in [
            "*",
            "*/write",
            "microsoft.network/*",
            "Microsoft.Network/loadBalancers/*",
            write,
            "*/loadbalancers/*",
        ] {
            assert!(matches(pattern, write), "{pattern}");
        }
        for pattern in [
            "*/read",
            "Microsoft.Compute/*",
            "Microsoft.Network/loadBalancers",
            "",
            "Microsoft.Network/*/delete",
        ] {
            assert!(!matches(pattern, write), "{pattern}");
        }
    }

    #[test]
    fn the_shipped_role_grants_what_it_is_asked_for() {
        let role: Value = serde_json::from_str(ROLE).unwrap();
        let body = json!({"value": [{"actions": role["Actions"], "notActions": []}]});
        assert!(actions(true).len() >= 3 && actions(false).len() >= 15);
        for is_network in [true, false] {
            let said = told(&diagnose("rg", &actions(is_network), 200, &body));
            assert_eq!(said, "✓ our role grants all that is needed in the resource group rg");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let needed = ["Microsoft.Network/loadBalancers/read", "Microsoft.Network/loadBalancers/write"]
            .map(str::to_owned);
        let reader = json!({"value": [{"actions": ["*/read"], "notActions": []}]});
        let contributor =
            json!({"value": [{"actions": ["*"], "notActions": ["*/write"]}, {"actions": ["*/read"]}]});
        for body in [reader, contributor] {
            assert_eq!(
                told(&diagnose("rg", &needed, 200, &body)),
                "✗ in the resource group rg our role does not grant\nMicrosoft.Network/loadBalancers/write\n    \
                 → az role definition create --role-definition deploy/azure-role.json\n\
                 az role assignment create --role Sluice --assignee CLIENT-ID --resource-group rg"
            );
        }
    }

    #[test]
    fn an_azure_that_does_not_say_is_no_problem_and_no_success() {
        let body = json!({"error": {"code": "AuthorizationFailed"}});
        let said = told(&diagnose("rg", &actions(false), 403, &body));
        assert!(
            said.starts_with("– what we may write in the resource group rg: Azure does not say (403, Auth"),
            "{said}"
        );
    }
}
