//! Who wrote what to Azure, and what must not have been written.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::{Look, Scene};
use crate::azure::{GATEWAY, Request, gateway_id, network_id, resource_id, subnet_id};
use crate::judge::cluster::Cluster;
use crate::judge::history::Others;
use crate::judge::wanted::lower;
use crate::judge::{Contract, egress, found, history};

/// The egress of others, and its NAT gateway.
pub(crate) const CORPORATE: &str = "corporate";

/// Where the resources of others are.
pub(crate) const LOCATION: &str = "westeurope";

/// The address of a fence.
const FENCE: &str = "10.9.255.254";

/// A place in the request log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark(u64);

impl Scene {
    /// Remembers where the request log ends now.
    pub(crate) async fn mark_writes(&self) -> Result<Mark> {
        Ok(Mark(self.azure.newest_request().await?))
    }

    /// The mark before the first request.
    pub(crate) fn start_of_writes(&self) -> Mark {
        Mark(0)
    }

    /// All requests since a mark, without their bodies.
    pub(crate) async fn requests_since(&self, mark: Mark) -> Result<Vec<Request>> {
        self.azure.requests(mark.0).await
    }

    /// The writes since a mark.
    pub(crate) async fn writes_since(&self, mark: Mark) -> Result<Vec<Request>> {
        let all = self.azure.requests_with_bodies(mark.0).await?;
        Ok(all.into_iter().filter(Request::is_write).collect())
    }

    /// Waits until these resources carry the cluster's tag.
    pub(crate) async fn until_tagged(&self, ids: &[String]) -> Result<()> {
        self.until("all of them have the cluster tag", async || {
            for id in ids {
                let now = self.azure.resource(id).await?;
                if now["tags"]["sluice-cluster"] != self.setting.cluster_id {
                    return Ok(Look::NotYet(format!("{id} has the tags {}", now["tags"])));
                }
            }
            Ok(Look::Yes(()))
        })
        .await
    }

    /// Fails if a read since the mark was anything but a page of a list, the poll of an operation, or the
    /// one GET of the gateway and the one of the subnet that every leader begins with.
    pub(crate) async fn reads_are_listings(&self, mark: Mark, leaders: usize) -> Result<()> {
        let all = self.azure.requests(mark.0).await?;
        let reads: Vec<&Request> = all.iter().filter(|it| it.area == "arm" && !it.is_write()).collect();
        let is = |it: &&&Request, call: &str| it.call.as_deref() == Some(call);
        let single: Vec<&&Request> = reads.iter().filter(|it| is(it, "Get")).collect();
        let strange: Vec<String> = reads
            .iter()
            .filter(|it| !["Get", "List", "Poll"].iter().any(|call| is(it, call)))
            .chain(single.iter().copied().filter(|it| !it.is_foundation()))
            .map(|it| it.line())
            .collect();
        if !strange.is_empty() {
            bail!(
                "these reads are neither pages of lists nor the gateway and its subnet:\n  {}",
                strange.join("\n  ")
            );
        }
        for kind in ["serviceGateways", "subnets"] {
            let number = single.iter().filter(|it| it.kind.as_deref() == Some(kind)).count();
            if number != leaders {
                bail!("{number} GETs of {kind} by {leaders} leaders, who need one each");
            }
        }
        let pages = reads.iter().filter(|it| is(it, "List")).count();
        self.tell(format!("{pages} pages of lists, and {} GETs of gateway and subnet", single.len()));
        Ok(())
    }

    /// Fails if there was a write since the mark.
    pub(crate) async fn no_write_since(&self, mark: Mark) -> Result<()> {
        let lines: Vec<String> = self.writes_since(mark).await?.iter().map(Request::line).collect();
        if !lines.is_empty() {
            bail!("there should have been no write to Azure, and there were\n  {}", lines.join("\n  "));
        }
        self.tell("there was no write to Azure");
        Ok(())
    }

    /// Fails if there was a write since the mark that names this service, its IP or its address.
    pub(crate) async fn no_write_about(&self, mark: Mark, name: &str) -> Result<()> {
        let writes = self.writes_since(mark).await?;
        let lines: Vec<String> = writes.iter().filter(|it| it.is_about(name)).map(Request::line).collect();
        if !lines.is_empty() {
            bail!("there should have been no write about {name}, and there were\n  {}", lines.join("\n  "));
        }
        self.tell(format!("there was no write about {name}"));
        Ok(())
    }

    /// Fails if there was a write since the mark that names none of these.
    pub(crate) async fn writes_only_about(&self, mark: Mark, names: &[&str]) -> Result<()> {
        let writes = self.writes_since(mark).await?;
        let is_strange = |it: &&Request| !names.iter().any(|name| it.is_about(name));
        let lines: Vec<String> = writes.iter().filter(is_strange).map(Request::line).collect();
        if !lines.is_empty() {
            bail!("there should have been no other write, and there were\n  {}", lines.join("\n  "));
        }
        Ok(())
    }

    /// Waits until the controller has surely seen every change of a Service so far: it serves one that
    /// was made after them, which the same watch brings later. The fence is taken away again; its UID
    /// is given back, for [`Scene::writes_only_about`]. Slices come by another watch: see
    /// [`Scene::fence_of_slices`].
    pub(crate) async fn fence(&self, name: &str) -> Result<String> {
        let uid = self.service(name).port(1, 1).quiet().make().await?;
        self.calm_down().await?;
        self.ip_of(name).await?;
        self.delete_service(name).await?;
        self.service_gone(name).await?;
        Ok(uid)
    }

    /// Waits until the controller has surely seen every change of a Service and of a slice so far: an address that
    /// was written after them comes into the gateway, and goes again with its slice.
    pub(crate) async fn fence_of_slices(&self, name: &str, node: &str) -> Result<()> {
        self.service(name).port(1, 1).quiet().make().await?;
        self.slice(name).of(name).endpoint(FENCE, node).quiet().write().await?;
        self.calm_down().await?;
        self.fenced_in(true).await?;
        self.delete_slice(name).await?;
        self.fenced_in(false).await?;
        self.delete_service(name).await?;
        self.service_gone(name).await
    }

    /// Waits until the fence's address is in the gateway, or not any more.
    async fn fenced_in(&self, is_in: bool) -> Result<()> {
        self.until(&format!("that {FENCE} is in the gateway is {is_in}"), async || {
            let gateways = self.azure.state().await?["serviceGateways"].to_string();
            let is_so = gateways.contains(&format!("\"{FENCE}\"")) == is_in;
            Ok(if is_so { Look::Yes(()) } else { Look::NotYet("it is otherwise".to_string()) })
        })
        .await
    }

    /// Puts a resource of somebody else into the group, which must never change from then on.
    pub(crate) async fn foreign(&self, kind: &str, name: &str, body: Value) -> Result<String> {
        self.tell(format!("somebody else has {kind}/{name}"));
        let id = resource_id(kind, name);
        self.azure.tamper(json!({"do": "put", "id": id, "body": body})).await?;
        self.keep_foreign(&id).await?;
        Ok(id)
    }

    /// Makes a gateway with our tags whose default outbound service is that of others.
    pub(crate) async fn our_gateway_with_egress_of_others(&self) -> Result<()> {
        let gateway = json!({
            "location": LOCATION,
            "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {
                "virtualNetwork": {"id": network_id()},
                "routeTargetAddress": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet_id()}},
            },
            "tags": {"sluice-cluster": self.setting.cluster_id},
        });
        self.tell(format!("there is a gateway {GATEWAY} of ours with an egress of others in it"));
        self.azure.tamper(json!({"do": "put", "id": gateway_id(), "body": gateway})).await?;
        self.egress_of_others().await?;
        self.agree(|it| it.default_outbound = false);
        self.except(|it| it.claimed_gateway = true);
        Ok(())
    }

    /// Makes the default outbound service of others, with its NAT gateway and public IP; they must never change.
    pub(crate) async fn egress_of_others(&self) -> Result<()> {
        let ip = json!({
            "location": LOCATION,
            "sku": {"name": "StandardV2"},
            "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
        });
        let ip = self.foreign("publicIPAddresses", "corporate-ip", ip).await?;
        let nat = json!({
            "location": LOCATION,
            "sku": {"name": "StandardV2"},
            "properties": {"serviceGateway": {"id": gateway_id()}, "publicIpAddresses": [{"id": ip}]},
        });
        let nat = self.foreign("natGateways", CORPORATE, nat).await?;
        let service = json!({
            "name": CORPORATE, "serviceType": "Outbound", "isDefault": true, "publicNatGatewayId": nat,
        });
        self.azure.tamper(json!({"do": "register", "gateway": gateway_id(), "service": service})).await?;
        // The registration has changed their versions.
        for id in [&ip, &nat] {
            self.keep_foreign(id).await?;
        }
        self.except(|it| {
            it.foreign_registrations.insert(CORPORATE.to_string());
        });
        Ok(())
    }

    /// From now on a resource is somebody else's and must stay as it is.
    pub(crate) async fn keep_foreign(&self, id: &str) -> Result<()> {
        let state = self.azure.state().await?;
        let Some(shown) = resource(&state, id) else { bail!("{id} is not there") };
        {
            let mut foreign = self.foreign.lock().expect("nobody panics with the foreigners in hand");
            foreign.retain(|(other, _)| other != id);
            foreign.push((id.to_string(), shown));
        }
        self.except(|it| {
            it.foreign.insert(lower(id));
        });
        Ok(())
    }

    /// Foreign resources that are not what they were, to the letter and the ETag.
    pub(super) fn changed_foreigners(&self, azure: &Value) -> Vec<String> {
        let foreign = self.foreign.lock().expect("nobody panics with the foreigners in hand");
        let mut problems = Vec::new();
        for (id, before) in &*foreign {
            match resource(azure, id) {
                None => problems.push(format!("{id} is somebody else's and is gone")),
                Some(now) if now != *before => {
                    problems.push(format!(
                        "{id} is somebody else's and was\n      {before}\n    and is\n      {now}"
                    ));
                }
                Some(_) => {}
            }
        }
        problems
    }

    /// Writes down who may have asked for something, since what is gone at the end did, too.
    pub(super) fn note_identities(&self, cluster: &Cluster, contract: &Contract) {
        let mut identities = self.identities.lock().expect("nobody panics with the identities in hand");
        identities.insert("default-natgw".to_string());
        identities.extend(cluster.services.iter().filter_map(|it| it.uid()));
        identities.extend(egress::wanted(cluster, contract));
    }

    /// Tells the judge that an egress of this name was asked for, in case it never sees the pod.
    pub(crate) fn asked_for(&self, identity: &str) {
        let mut identities = self.identities.lock().expect("nobody panics with the identities in hand");
        identities.insert(identity.to_ascii_lowercase());
    }

    /// Tells the judge that the status of a Service is about to be wiped by somebody else, once.
    pub(crate) fn wiped_by_others(&self, uid: &str) {
        self.wiped.lock().expect("nobody panics with the wiped in hand").push(uid.to_string());
    }

    /// What only the whole story shows.
    pub(crate) async fn history(&self) -> Result<Vec<String>> {
        self.until("the recorder has seen what there is", async || {
            let all = Api::<Service>::all(self.client.clone()).list(&Default::default()).await?;
            Ok(Look::unless(&self.recorder.behind(&all.items)))
        })
        .await?;
        let requests = self.azure.requests_with_bodies(0).await?;
        let mut identities: BTreeSet<String> =
            self.identities.lock().expect("nobody panics with the identities in hand").clone();
        let shown = self.recorder.shown();
        identities.extend(shown.iter().map(|it| it.uid.clone()));
        let mut problems = history::strange_writes(&requests, &identities);
        let wiped = self.wiped.lock().expect("nobody panics with the wiped in hand").clone();
        let mut others = BTreeMap::new();
        for uid in shown.iter().map(|it| &it.uid) {
            let deleted = self.azure.deleted_by_others(&format!("{uid}-pip")).await;
            let wiped = wiped.iter().filter(|it| *it == uid).count();
            others.insert(uid.clone(), Others { deleted, wiped });
        }
        let others = |uid: &str| others.get(uid).copied().unwrap_or_default();
        let by_us = |uid: &str| {
            let public_ip = format!("{uid}-pip");
            let all = requests.iter().filter(|it| it.is_delete_of("publicIPAddresses", &public_ip));
            all.map(Request::line).collect()
        };
        problems.extend(history::moved_ips(&shown, others, by_us));
        Ok(problems)
    }

    /// From now on the deletion of a resource of this kind does not end, until [`crate::azure::Azure::calm`].
    pub(crate) async fn deletions_wait(&self, kind: &str) -> Result<()> {
        self.waits("Delete", kind).await
    }

    /// From now on the PUT of a resource of this kind does not end, until [`crate::azure::Azure::calm`].
    pub(crate) async fn puts_wait(&self, kind: &str) -> Result<()> {
        self.waits("Put", kind).await
    }

    async fn waits(&self, call: &str, kind: &str) -> Result<()> {
        let rule = json!({
            "match": {"call": call, "kind": kind}, "fault": "slowBy", "factor": 100_000,
        });
        self.azure.tell("faults", rule).await.map(|_| ())
    }

    /// Waits until the controller has asked for a resource.
    pub(crate) async fn put_begun(&self, mark: Mark, kind: &str, name: &str) -> Result<()> {
        self.until(&format!("the PUT of {kind}/{name} has begun"), async || {
            let all = self.requests_since(mark).await?;
            let is_so =
                all.iter().any(|it| it.is_put_of(kind, name) && it.status.is_some_and(|status| status < 300));
            Ok(if is_so { Look::Yes(()) } else { Look::NotYet("it has not".to_string()) })
        })
        .await
    }

    /// Waits until the controller has asked for the deletion of a resource.
    pub(crate) async fn deletion_begun(&self, mark: Mark, kind: &str, name: &str) -> Result<()> {
        self.until(&format!("the deletion of {kind}/{name} has begun"), async || {
            let all = self.requests_since(mark).await?;
            let is_so = all.iter().any(|it| it.is_delete_of(kind, name) && it.status == Some(202));
            Ok(if is_so { Look::Yes(()) } else { Look::NotYet("it has not".to_string()) })
        })
        .await
    }

    /// What runs in Azure right now.
    pub(crate) async fn running(&self) -> Result<Vec<String>> {
        Ok(found::running(&self.azure.state().await?))
    }

    /// Waits until every request that came has been answered.
    pub(crate) async fn quiet(&self) -> Result<()> {
        self.until("every request has its answer", async || {
            let open = self.azure.requests(0).await?;
            let open: Vec<String> =
                open.iter().filter(|it| it.answered_ms.is_none()).map(Request::line).collect();
            Ok(Look::unless(&open))
        })
        .await
    }
}

fn resource(azure: &Value, id: &str) -> Option<Value> {
    let kinds = ["publicIPAddresses", "loadBalancers", "natGateways", "serviceGateways", "subnets"];
    let all = kinds.iter().filter_map(|kind| azure[kind].as_array()).flatten();
    all.into_iter().find(|it| it["id"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(id))).cloned()
}
