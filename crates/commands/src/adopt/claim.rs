//! Tags one resource as ours. What another cluster has claimed since the plan is left alone.

use anyhow::bail;
use sluice_controller::Azure;
use sluice_model::azure::Tags;
use sluice_model::call::{Payload, Reply, Request};
use sluice_model::names::CLUSTER_TAG;

use super::candidates::Candidate;
use crate::tags::{ANOTHER_VERSION, Retagged, retag};

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Claimed {
    /// It carries our tags now.
    Yes,
    /// It is left alone, for this reason.
    LeftAlone(String),
}

/// Reads the resource and adds our tags to what it carries now.
pub(super) async fn claim(azure: &impl Azure, candidate: &Candidate) -> anyhow::Result<Claimed> {
    let Candidate { what, id, tags, .. } = candidate;
    let send = async |request: Request| answered(azure, request).await;
    Ok(match retag(what, id, |now| merged(now, tags), send).await? {
        Retagged::Done => Claimed::Yes,
        Retagged::Gone => Claimed::LeftAlone("deleted after the plan was shown".to_owned()),
        Retagged::Refused(owner) => {
            Claimed::LeftAlone(format!("tagged by cluster {owner} after the plan was shown"))
        }
    })
}

/// What it carries now with ours among it, or the other cluster that has claimed it.
fn merged(now: &Tags, ours: &Tags) -> Result<Tags, String> {
    match now.get(CLUSTER_TAG) {
        Some(owner) if Some(owner) != ours.get(CLUSTER_TAG) => Err(owner.to_string()),
        _ => Ok(now.iter().chain(ours).map(|(name, value)| (name.clone(), value.clone())).collect()),
    }
}

/// One call; what is gone or of another version by now is an answer, all else that is refused an error.
async fn answered(azure: &impl Azure, request: Request) -> anyhow::Result<(u16, Payload)> {
    match azure.send(request, || true).await {
        Reply::Answered(answer) => match (answer.status, answer.payload) {
            (status @ (404 | ANOTHER_VERSION), payload) => Ok((status, payload)),
            (_, Payload::Error(error)) => bail!("{}: {}", error.code, error.message),
            done => Ok(done),
        },
        Reply::NotSent(why) | Reply::Lost(why) => bail!("{why}; re-run `sluice adopt` to continue"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sluice_cloud::{Cloud, Latencies};
    use sluice_model::azure::{GatewayBody, PublicIpBody};
    use sluice_model::call::{Body, Method};
    use sluice_model::effect::Listing;
    use sluice_model::names::Scope;
    use sluice_model::{Family, ServiceKey, Time, Uid};

    use super::super::candidates::candidates;
    use super::*;
    use crate::plan::foresight::Worlds;

    /// An Azure in which another client edits tags before each of the first writes arrives.
    struct Busy {
        cloud: Mutex<Cloud>,
        edits: Mutex<Vec<Tags>>,
    }

    impl Azure for Busy {
        async fn send(&self, request: Request, _: impl FnOnce() -> bool + Send) -> Reply {
            let mut cloud = self.cloud.lock().unwrap();
            if request.method == Method::PatchTags
                && let Some(tags) = self.edits.lock().unwrap().pop()
            {
                cloud.handle(
                    Time::ZERO,
                    &Request::with(Method::PatchTags, request.target.clone(), Body::Tags(tags)),
                );
            }
            Reply::Answered(cloud.handle(Time::ZERO, &request))
        }
    }

    fn tags(all: &[(&str, &str)]) -> Tags {
        all.iter().map(|(name, value)| (Arc::from(*name), Arc::from(*value))).collect()
    }

    fn scope() -> Scope {
        Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        }
    }

    /// A public IP that carries no cluster's tag, and what we would claim it with.
    fn world(edits: &[&[(&str, &str)]]) -> (Busy, Candidate) {
        let scope = scope();
        let config = sluice_cloud::Config { latency: Latencies::INSTANT, ..sluice_cloud::Config::default() };
        let mut cloud = Cloud::new(config);
        cloud.prepare(Time::ZERO, &scope);
        let key = ServiceKey::Inbound(Uid::from_number(1));
        let id = scope.public_ip_id(&key, Family::V4);
        let body = PublicIpBody { family: Family::V4, tags: tags(&[("team", "shop")]) };
        cloud.handle(Time::ZERO, &Request::with(Method::Put, id.clone(), Body::PublicIp(body)));
        let candidate =
            Candidate { what: "public IP", id, of: "service/shop/web".into(), tags: scope.tags(&key, None) };
        let edits = edits.iter().rev().map(|it| tags(it)).collect();
        (Busy { cloud: Mutex::new(cloud), edits: Mutex::new(edits) }, candidate)
    }

    fn carried(azure: &Busy, candidate: &Candidate) -> Tags {
        azure.cloud.lock().unwrap().state().public_ips[&candidate.id].meta.tags.clone()
    }

    #[tokio::test]
    async fn tags_that_came_since_the_plan_are_kept() {
        let (azure, candidate) = world(&[&[("team", "shop"), ("cost", "7")]]);
        assert_eq!(claim(&azure, &candidate).await.unwrap(), Claimed::Yes);
        let mut expected = tags(&[("team", "shop"), ("cost", "7")]);
        expected.extend(candidate.tags.clone());
        assert_eq!(carried(&azure, &candidate), expected);
    }

    #[tokio::test]
    async fn a_gateway_of_nobody_can_be_claimed_once() {
        let (azure, _) = world(&[]);
        let scope = scope();
        let body = GatewayBody {
            virtual_network: scope.virtual_network_id(),
            route_target_subnet: scope.subnet_id(),
            route_target_address: None,
            route_target_address_v6: None,
            tags: tags(&[("team", "network")]),
        };
        let put = Request::with(Method::Put, scope.gateway_id(), Body::Gateway(body));
        azure.cloud.lock().unwrap().handle(Time::ZERO, &put);
        let found = || {
            let gateway = azure.cloud.lock().unwrap().state().gateways[&scope.gateway_id()].clone();
            let foundation = Listing::Foundation { gateway: Some(gateway.clone()), subnet: None };
            let worlds = Worlds { kubernetes: Vec::new(), skipped: Vec::new(), azure: vec![foundation] };
            (gateway.meta.tags, candidates(&scope, &worlds).claimable)
        };
        let (_, claimable) = found();
        assert_eq!(claim(&azure, &claimable[0]).await.unwrap(), Claimed::Yes);
        let (now, claimable) = found();
        assert_eq!(now, tags(&[("team", "network"), (CLUSTER_TAG, "c1")]));
        assert_eq!(claimable, []);
    }

    #[tokio::test]
    async fn what_another_cluster_claims_meanwhile_is_left_to_it() {
        let (azure, candidate) = world(&[&[(CLUSTER_TAG, "c2")]]);
        let claimed = claim(&azure, &candidate).await.unwrap();
        assert_eq!(claimed, Claimed::LeftAlone("tagged by cluster c2 after the plan was shown".into()));
        assert_eq!(carried(&azure, &candidate), tags(&[(CLUSTER_TAG, "c2")]));
    }

    #[tokio::test]
    async fn what_is_gone_is_said_and_what_is_written_all_the_time_is_given_up() {
        let (azure, candidate) = world(&[]);
        let gone = Candidate { id: candidate.id.clone(), ..candidate.clone() };
        azure.cloud.lock().unwrap().handle(Time::ZERO, &Request::bare(Method::Delete, gone.id.clone()));
        assert_eq!(
            claim(&azure, &gone).await.unwrap(),
            Claimed::LeftAlone("deleted after the plan was shown".into())
        );

        let edits: Vec<[(&str, &str); 1]> = ["1", "2", "3", "4", "5", "6"].map(|it| [("edit", it)]).to_vec();
        let edits: Vec<&[(&str, &str)]> = edits.iter().map(|it| &it[..]).collect();
        let (azure, candidate) = world(&edits);
        let error = claim(&azure, &candidate).await.unwrap_err().to_string();
        assert!(error.contains("is being modified by another client"), "{error}");
    }
}
