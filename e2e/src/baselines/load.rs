//! Makes the objects of a baseline on an API server, with their status, as an administrator.
//!
//! Slices of the EndpointSlice controller are not made: it makes them itself, and that is waited for. What is
//! being deleted is made and then deleted; its finalizer keeps it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::files::Baseline;
use super::picture;
use super::record::as_object;
use crate::judge::cluster::Cluster;
use crate::judge::differences;

/// The label by which a slice names its maker, and the maker that Kubernetes itself has.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
/// How long the EndpointSlice controller may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(100);

/// Makes everything, and compares the Services with those that were recorded.
pub(super) async fn put(baseline: &Baseline, client: &Client) -> Result<()> {
    let made_by_others = |it: &&Value| it["metadata"]["labels"][MANAGED_BY] == SLICE_CONTROLLER;
    for object in baseline.objects.iter().filter(|it| !made_by_others(it)) {
        make(object, client)
            .await
            .with_context(|| format!("{} {}", object["kind"], object["metadata"]["name"]))?;
    }
    let began = Instant::now();
    loop {
        let behind = Cluster::read(client).await?.slices_behind();
        if behind.is_empty() {
            break;
        }
        if began.elapsed() > PATIENCE {
            bail!(
                "the EndpointSlice controller is not done after {PATIENCE:?}:\n  - {}",
                behind.join("\n  - ")
            );
        }
        tokio::time::sleep(GLANCE).await;
    }
    let services = baseline.objects.iter().filter(|it| it["kind"] == "Service");
    for recorded in services {
        let (api, name) = place(recorded, client)?;
        if !recorded["metadata"]["deletionTimestamp"].is_null() {
            api.delete(&name, &Default::default()).await?;
        }
        let comparable = |mut object: Value| {
            let was_deleted = !object["metadata"]["deletionTimestamp"].is_null();
            for own in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
                object["metadata"].as_object_mut().map(|it| it.remove(own));
            }
            object["metadata"]["isDeleted"] = json!(was_deleted);
            picture::flat(&name, &object)
        };
        let found = comparable(as_object(serde_json::to_value(api.get(&name).await?)?));
        let problems = differences(&comparable(recorded.clone()), &found);
        super::fail_on("the API server has made another Service of it", &problems)?;
    }
    Ok(())
}

/// Makes one object, and then its status.
async fn make(object: &Value, client: &Client) -> Result<()> {
    let (api, name) = place(object, client)?;
    let mut fresh = object.clone();
    for own in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"] {
        fresh["metadata"].as_object_mut().map(|it| it.remove(own));
    }
    let status = fresh.as_object_mut().and_then(|it| it.remove("status")).unwrap_or_default();
    let fresh: DynamicObject = serde_json::from_value(fresh)?;
    api.create(&PostParams::default(), &fresh).await?;
    if ["Node", "Pod", "Service"].iter().any(|kind| object["kind"] == *kind) {
        let patch = json!({"status": status});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    Ok(())
}

/// Where an object is made, and its name.
fn place(object: &Value, client: &Client) -> Result<(Api<DynamicObject>, String)> {
    let types = serde_json::from_value(object.clone())?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let api = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().context("an object has no name")?;
    Ok((api, name.to_string()))
}
