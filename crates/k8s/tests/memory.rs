//! What many pods cost in memory, counted by the allocator.
//!
//! A pod is some 4 KiB of JSON; of a complete list, a few hundred bytes a pod may be held, and not much more while
//! it arrives. The bounds are in bytes, so they hold on any machine.

use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::channel::Channel;
use kube::Client;
use kube::client::Body;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use sluice_k8s::convert::Selection;
use sluice_k8s::watch::{Closed, Facts, Watches};
use sluice_model::event::{Event, Relist};
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PODS: usize = 10_000;
/// 150,000 pods are then 45 MB of the 300 MiB that everything may take.
const HELD_MAX: usize = 300;
/// Besides what is held: the index of the list, and vectors that grow by doubling.
const PEAK_MAX: usize = 600;

#[derive(Clone)]
struct Ear(mpsc::Sender<Event>);

impl Facts for Ear {
    async fn tell(&self, event: Event) -> Result<(), Closed> {
        self.0.send(event).await.map_err(|_| Closed)
    }
}

#[tokio::test]
async fn a_pod_of_a_list_costs_a_few_hundred_bytes() {
    let client = Client::new(tower::service_fn(answer), "default");
    let watches = Watches::new(client, Selection::default());
    let (ear, mut told) = mpsc::channel(1);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let running = tokio::spawn(async move { watches.run(Ear(ear)).await });
    let pods = loop {
        let event = told.recv().await.expect("the watches live");
        if let Event::Relisted { objects: Relist::Pods(pods), .. } = event {
            break pods;
        }
    };
    let peak = ALLOCATOR.peak_usage().saturating_sub(before) / PODS;
    running.abort();
    let _ = running.await;
    let held = ALLOCATOR.current_usage().saturating_sub(before) / PODS;
    assert_eq!(pods.len(), PODS);

    assert!(pods.iter().all(|pod| pod.ips.len() == 1 && pod.egress.is_some() && pod.node.is_some()));
    assert!(held <= HELD_MAX, "a pod takes {held} bytes when it is told");
    assert!(peak <= PEAK_MAX, "a pod takes {peak} bytes while it arrives");
    // The bounds can fail: what is measured is not nothing.
    assert!(held >= size_of::<sluice_model::kube::PodObject>());
}

/// Every kind is empty but the pods.
async fn answer(request: Request<Body>) -> Result<Response<Channel<Bytes, io::Error>>, io::Error> {
    let pods = if request.uri().path() == "/api/v1/pods" { PODS } else { 0 };
    let (mut sender, body) = Channel::new(1);
    tokio::spawn(async move {
        for number in 0..pods {
            if sender.send_data(Bytes::from(pod(number))).await.is_err() {
                return;
            }
        }
        let end = json!({"metadata": {"resourceVersion": "9000000", "annotations": {"k8s.io/initial-events-end": "true"}}});
        let line = format!("{}\n", json!({"type": "BOOKMARK", "object": end}));
        if sender.send_data(Bytes::from(line)).await.is_ok() {
            std::future::pending::<()>().await;
        }
    });
    Ok(Response::new(body))
}

/// The line of one pod.
fn pod(number: usize) -> String {
    let (node, egress) = (number % 500, number % 40);
    TEMPLATE
        .replace("%number%", &format!("{number:012x}"))
        .replace("%version%", &(1_000_000 + number).to_string())
        .replace("%egress%", &egress.to_string())
        .replace("%node%", &format!("{node:04}"))
        .replace("%ip%", &format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255))
        .replace("%host%", &format!("10.240.{}.{}", node >> 8, node & 255))
}

/// A pod as a Deployment makes it, with all that we do not want.
static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let fields: serde_json::Map<String, Value> =
        (0..60).map(|field| (format!("f:field-number-{field}"), json!({".": {}, "f:name": {}}))).collect();
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "shop-frontend-%number%", "namespace": "team-%egress%",
            "uid": "0a1b2c3d-0000-4000-8000-%number%", "resourceVersion": "%version%",
            "creationTimestamp": "2026-11-16T00:00:01Z",
            "labels": {"app": "shop-frontend", "pod-template-hash": "6d4cf56db6",
                "kubernetes.azure.com/service-egress-gateway": "egress-%egress%"},
            "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-16T00:00:00Z"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop-frontend-6d4cf56db6",
                "uid": "0a1b2c3d-0000-4000-8000-ffffffffffff", "controller": true}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "nodeName": "aks-pool-%node%", "serviceAccountName": "shop",
            "containers": [{"name": "shop", "image": "registry.example/shop:1.2.3", "env": [
                {"name": "SHOP_DATABASE", "value": "postgres://db.shop.svc:5432/shop"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Running", "podIP": "%ip%", "podIPs": [{"ip": "%ip%"}],
            "hostIP": "%host%", "hostIPs": [{"ip": "%host%"}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
            "containerStatuses": [{"name": "shop", "ready": true, "restartCount": 0}],
        },
    });
    format!("{}\n", json!({"type": "ADDED", "object": object}))
});
