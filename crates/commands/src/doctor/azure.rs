//! The resource manager: whether it answers, who we are to it, and what it lets us read.

use std::sync::Arc;
use std::time::SystemTime;

use sluice_arm::{Client, Document};
use sluice_model::azure::{ArmId, Gateway, Subnet};
use sluice_model::call::{Method, Payload, Reply, Request};
use sluice_model::names::Scope;
use sluice_model::{Failure, FailureClass};

use super::finding::{Finding, Group};
use super::role::RoleScope;
use super::{clock, quota, role};
use crate::config::{Config, Identity};

const GROUP: Group = Group::Azure;

/// A client whose credential works, or why there is none.
pub(super) async fn credential(config: &Config) -> (Vec<Finding>, Option<Client>) {
    let made = config.arm_settings().and_then(|settings| Client::new(&settings));
    let client = match made {
        Ok(client) => client,
        Err(error) => {
            let remedy = "correct the configuration; run `sluice run --config FILE --print-config` to see the origin of each value";
            return (vec![Finding::problem(GROUP, error.to_string(), remedy)], None);
        }
    };
    let identity = config.identity.name();
    match client.warm_up().await {
        Ok(()) => {
            let text = format!("access token for {}: received ({identity})", client.host());
            (vec![Finding::good(GROUP, text)], Some(client))
        }
        Err(why) => {
            let remedy = if why.is_refused {
                refused(config.identity)
            } else {
                "check the connection to the token endpoint: network, proxy, sluice.azure.authorityHost"
            };
            (
                vec![Finding::problem(
                    GROUP,
                    format!("access token for {}: not received ({identity}: {})", client.host(), why.text),
                    remedy,
                )],
                None,
            )
        }
    }
}

/// What to do about a credential that its issuer refuses.
fn refused(identity: Identity) -> &'static str {
    match identity {
        Identity::ClientSecret => {
            "run `az ad app credential reset --id CLIENT_ID` and set aadClientSecret to the new secret"
        }
        Identity::ClientCertificate => {
            "check that the certificate in aadClientCertPath is valid and registered (`az ad app credential list --cert --id \
             CLIENT_ID`)"
        }
        Identity::ManagedIdentity => {
            "assign the identity to this VM or scale set (`az vm identity assign`, `az vmss identity assign`), and check \
             userAssignedIdentityID"
        }
        Identity::WorkloadIdentity => {
            "add a federated credential for the cluster's issuer and the service account of Sluice (`az identity \
             federated-credential create`)"
        }
        Identity::TokenFile => {
            "write a new token to the file sluice.azure.tokenFile (`az account get-access-token`)"
        }
    }
}

/// What could be read.
pub(super) struct Read {
    pub(super) findings: Vec<Finding>,
    pub(super) gateway: Result<Option<Gateway>, ()>,
    pub(super) subnet: Result<Option<Subnet>, ()>,
}

/// Reads one of everything that the controller reads; of lists the first page.
pub(super) async fn reads(client: &Client, scope: &Scope) -> Read {
    let get = |id: ArmId| ask(client, Request::bare(Method::Get, id));
    let list = |id: ArmId| ask(client, Request::bare(Method::List, id));
    let gateway_id = scope.gateway_id();
    let (gateway, subnet, balancers, nats, addresses) = futures::join!(
        get(gateway_id.clone()),
        get(scope.subnet_id()),
        list(scope.collection("loadBalancers")),
        list(scope.collection("natGateways")),
        list(scope.collection("publicIPAddresses")),
    );
    let mut replies = vec![
        ("loadBalancers", balancers, &scope.resource_group),
        ("natGateways", nats, &scope.resource_group),
        ("publicIPAddresses", addresses, &scope.resource_group),
    ];
    let gateway = found(gateway, |payload| match payload {
        Payload::Gateway(gateway) => Some(gateway),
        _ => None,
    });
    let subnet = found(subnet, |payload| match payload {
        Payload::Subnet(subnet) => Some(subnet),
        _ => None,
    });
    if matches!(gateway, Ok(Some(_))) {
        let inside = |collection: &str| list(ArmId::new(format!("{gateway_id}/{collection}")));
        let (services, locations) = futures::join!(inside("services"), inside("addressLocations"));
        replies.push(("serviceGateways/services", services, &scope.resource_group));
        replies.push(("serviceGateways/addressLocations", locations, &scope.resource_group));
    }
    let mut all = vec![
        ("serviceGateways", gateway.as_ref().err().cloned(), &scope.resource_group),
        ("virtualNetworks/subnets", subnet.as_ref().err().cloned(), &scope.network_resource_group),
    ];
    all.extend(replies.iter().map(|(what, reply, group)| (*what, Failure::in_reply(reply), *group)));
    let findings = judged(&all, &scope.subscription);
    Read { findings, gateway: gateway.map_err(|_| ()), subnet: subnet.map_err(|_| ()) }
}

/// Asks once more if the request did not leave: a token that Azure does not accept is replaced before that is told.
async fn ask(client: &Client, request: Request) -> Reply {
    match client.send(&request).await {
        Reply::NotSent(_) => client.send(&request).await,
        reply => reply,
    }
}

/// What could be read and what could not. A credential that is not accepted is told once: it explains all the others.
fn judged(all: &[(&str, Option<Failure>, &Arc<str>)], subscription: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let good: Vec<&str> =
        all.iter().filter(|(_, failure, _)| failure.is_none()).map(|(what, ..)| *what).collect();
    if !good.is_empty() {
        findings.push(Finding::good(GROUP, format!("Azure read access: granted ({})", good.join(", "))));
    }
    let failures = || all.iter().filter_map(|(what, failure, group)| Some((what, failure.as_ref()?, group)));
    if let Some((_, failure, _)) = failures().find(|(_, failure, _)| failure.is_about_credential()) {
        findings.push(not_accepted(failure, subscription));
    }
    let others = failures().filter(|(_, failure, _)| !failure.is_about_credential());
    findings.extend(others.map(|(what, failure, group)| unreadable(what, failure, group, subscription)));
    findings
}

/// There is a token, and Azure does not accept it.
fn not_accepted(failure: &Failure, subscription: &str) -> Finding {
    let text = format!("Azure credential: rejected ({}: {})", failure.code, failure.message);
    let remedy = format!(
        "check the expiry of the credential and the local clock; check that tenantId is the tenant of the subscription \
         (`az account show --subscription {subscription} --query tenantId`), and that cloud and \
         resourceManagerEndpoint match it"
    );
    Finding::problem(GROUP, text, remedy)
}

/// What an answer to a GET holds; not found is an answer too, unless it is the group that is missing.
fn found<T>(reply: Reply, take: impl Fn(Payload) -> Option<T>) -> Result<Option<T>, Failure> {
    match Failure::in_reply(&reply) {
        Some(failure) if failure.class == FailureClass::NotFound && !is_about_the_group(&failure) => Ok(None),
        Some(failure) => Err(failure),
        None => match reply {
            Reply::Answered(answer) => Ok(take(answer.payload)),
            Reply::NotSent(_) | Reply::Lost(_) => Ok(None),
        },
    }
}

fn is_about_the_group(failure: &Failure) -> bool {
    matches!(&*failure.code, "ResourceGroupNotFound" | "SubscriptionNotFound")
}

/// A read that failed, and what to do about it.
fn unreadable(what: &str, failure: &Failure, group: &str, subscription: &str) -> Finding {
    let said = match failure.is_azures() {
        true => format!("{}: {}", failure.code, failure.message),
        false => failure.message.to_string(),
    };
    let text = format!("{what}: read failed ({said})");
    let remedy = match failure.class {
        FailureClass::Forbidden => format!(
            "grant Microsoft.Network/{what}/read: `az role assignment create --role Sluice --assignee CLIENT_ID \
             --scope /subscriptions/{subscription}/resourceGroups/{group}`"
        ),
        class if class == FailureClass::NotFound || is_about_the_group(failure) => format!(
            "correct resourceGroup, vnetResourceGroup or subscriptionId: resource group {group} was not found in \
             subscription {subscription}"
        ),
        FailureClass::Throttled => match failure.retry_after {
            Some(wait) => {
                format!("subscription {subscription} is throttled; retry in {} s", wait.as_secs().max(1))
            }
            None => format!("subscription {subscription} is throttled; retry in a few minutes"),
        },
        _ => "check the network, the proxy, resourceManagerEndpoint and sluice.azure.caFile, then retry"
            .to_owned(),
    };
    Finding::problem(GROUP, text, remedy)
}

/// What our role grants where we write, and our clock against Azure's.
pub(super) async fn permissions(client: &Client, scope: &Scope) -> Vec<Finding> {
    let mut findings = Vec::new();
    let asked = SystemTime::now();
    let (cluster, network) = (&scope.resource_group, &scope.network_resource_group);
    let groups = match cluster.eq_ignore_ascii_case(network) {
        true => vec![(cluster, role::needed(&[RoleScope::ClusterGroup, RoleScope::NetworkGroup]))],
        false => vec![
            (cluster, role::needed(&[RoleScope::ClusterGroup])),
            (network, role::needed(&[RoleScope::NetworkGroup])),
        ],
    };
    for (at, (group, needed)) in groups.iter().enumerate() {
        match client.read_document(&role::question(&scope.subscription, group)).await {
            Ok(Document { status, date, body }) => {
                if at == 0 {
                    findings.extend(clock::diagnose(GROUP, "Azure", date.as_deref(), asked));
                }
                findings.extend(role::diagnose(&scope.subscription, group, needed, status, &body));
            }
            Err(why) => findings.push(Finding::skipped(
                GROUP,
                format!("permissions in resource group {group}: not checked ({why})"),
            )),
        }
    }
    findings
}

/// How much there may still be.
pub(super) async fn quotas(client: &Client, config: &Config, scope: &Scope) -> Vec<Finding> {
    let region = config.region();
    let question = quota::question(&scope.subscription, &region, &config.reach.api_version);
    match client.read_document(&question).await {
        Ok(Document { status, body, .. }) => quota::diagnose(&region, status, &body),
        Err(why) => vec![Finding::skipped(Group::Quota, format!("quotas in {region}: not checked ({why})"))],
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::call::{Answer, ArmError};

    use super::*;
    use crate::doctor::finding::told;

    fn error(status: u16, code: &str) -> Reply {
        let error = ArmError { code: code.into(), message: "no, because".into() };
        Reply::Answered(Answer::new(status, Payload::Error(error)))
    }

    fn nothing(payload: Payload) -> Option<Payload> {
        Some(payload).filter(|it| *it != Payload::None)
    }

    #[test]
    fn what_is_not_there_is_an_answer_and_a_missing_group_is_not() {
        assert_eq!(found(error(404, "ResourceNotFound"), nothing), Ok(None));
        for (status, code) in
            [(404, "ResourceGroupNotFound"), (403, "AuthorizationFailed"), (500, "InternalServerError")]
        {
            assert!(found(error(status, code), nothing).is_err(), "{code}");
        }
        assert!(found(Reply::not_sent("no way"), nothing).is_err());
        assert!(found(Reply::lost("no answer"), nothing).is_err());
    }

    #[test]
    fn a_read_that_fails_says_what_to_do_about_it() {
        let said = |reply: Reply| {
            let failure = Failure::in_reply(&reply).unwrap();
            told(&[unreadable("loadBalancers", &failure, "rg", "sub")])
        };
        expect_test::expect![[r#"
            ✗ loadBalancers: read failed (AuthorizationFailed: no, because)
                → grant Microsoft.Network/loadBalancers/read: `az role assignment create --role Sluice --assignee CLIENT_ID --scope /subscriptions/sub/resourceGroups/rg`"#]]
        .assert_eq(&said(error(403, "AuthorizationFailed")));
        expect_test::expect![[r#"
            ✗ loadBalancers: read failed (ResourceGroupNotFound: no, because)
                → correct resourceGroup, vnetResourceGroup or subscriptionId: resource group rg was not found in subscription sub"#]]
        .assert_eq(&said(error(404, "ResourceGroupNotFound")));
        expect_test::expect![[r#"
            ✗ loadBalancers: read failed (the door is shut)
                → check the network, the proxy, resourceManagerEndpoint and sluice.azure.caFile, then retry"#]]
        .assert_eq(&said(Reply::not_sent("the door is shut")));
    }

    #[test]
    fn a_credential_that_azure_does_not_accept_is_told_once_and_not_as_a_missing_role() {
        let failure = |status, code| Failure::in_reply(&error(status, code));
        let group: Arc<str> = "rg".into();
        let findings = judged(
            &[
                ("serviceGateways", failure(401, "InvalidAuthenticationTokenTenant"), &group),
                ("loadBalancers", failure(401, "InvalidAuthenticationTokenTenant"), &group),
                ("natGateways", failure(403, "AuthorizationFailed"), &group),
                ("publicIPAddresses", None, &group),
            ],
            "sub",
        );
        expect_test::expect![[r#"
            ✓ Azure read access: granted (publicIPAddresses)
            ✗ Azure credential: rejected (InvalidAuthenticationTokenTenant: no, because)
                → check the expiry of the credential and the local clock; check that tenantId is the tenant of the subscription (`az account show --subscription sub --query tenantId`), and that cloud and resourceManagerEndpoint match it
            ✗ natGateways: read failed (AuthorizationFailed: no, because)
                → grant Microsoft.Network/natGateways/read: `az role assignment create --role Sluice --assignee CLIENT_ID --scope /subscriptions/sub/resourceGroups/rg`"#]]
        .assert_eq(&told(&findings));
    }

    #[test]
    fn every_credential_has_a_remedy_of_its_own() {
        let all = [
            Identity::ClientSecret,
            Identity::ClientCertificate,
            Identity::ManagedIdentity,
            Identity::WorkloadIdentity,
            Identity::TokenFile,
        ];
        let remedies: std::collections::BTreeSet<&str> = all.into_iter().map(refused).collect();
        assert_eq!(remedies.len(), all.len());
    }
}
