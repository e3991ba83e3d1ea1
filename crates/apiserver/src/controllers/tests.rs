//! Stories: all controllers, one store, and a clock that only moves when everybody waits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::kinds::{
    CONFIG_MAP, DEPLOYMENT, ENDPOINT_SLICE, EVENT, Kind, NAMESPACE, NODE, POD, REPLICA_SET, SERVICE,
    SERVICE_ACCOUNT,
};
use crate::refusal::Refusal;
use crate::store::{Deletion, Propagation, Selection, Write};
use crate::value::{list, name_of, number, text};

struct Cluster {
    store: Store,
    _running: JoinSet<()>,
}

impl Cluster {
    fn with(settings: Settings) -> Cluster {
        let store = Store::new();
        let cluster = Cluster { _running: run(&store, settings), store };
        cluster.make(&NAMESPACE, json!({"metadata": {"name": "shop"}}));
        cluster
    }

    fn new() -> Cluster {
        Cluster::with(Settings::default())
    }

    fn make(&self, kind: &'static Kind, object: Value) -> Arc<Value> {
        let namespace = if kind.namespaced { "shop" } else { "" };
        self.store.create(kind, namespace, object, &Write::by("tester")).unwrap()
    }

    fn change(&self, kind: &'static Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let done = self.store.modify(kind, "shop", name, &Write::by("tester"), |object| {
            let mut object = object.clone();
            change(&mut object);
            Ok(object)
        });
        done.unwrap();
    }

    fn all(&self, kind: &'static Kind) -> Vec<Arc<Value>> {
        self.store.list(kind, Some("shop"), &Selection::default()).items
    }

    fn get(&self, kind: &'static Kind, name: &str) -> Result<Arc<Value>, Refusal> {
        self.store.get(kind, if kind.namespaced { "shop" } else { "" }, name)
    }

    fn delete(&self, kind: &'static Kind, name: &str, propagation: Propagation) {
        let deletion = Deletion { propagation, ..Deletion::default() };
        let namespace = if kind.namespaced { "shop" } else { "" };
        self.store.delete(kind, namespace, name, &deletion).unwrap();
    }

    /// Waits until something is so. The clock is paused, so it takes no time, and an hour is never.
    async fn until(&self, what: &str, is_so: impl Fn(&Cluster) -> bool) {
        for _ in 0..36_000 {
            if is_so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "never: {what}; {:#?}",
            self.all(&EVENT).iter().map(|it| text(it, &["message"]).to_owned()).collect::<Vec<_>>()
        );
    }

    fn endpoints(&self) -> Vec<Value> {
        self.all(&ENDPOINT_SLICE).iter().flat_map(|slice| list(slice, &["endpoints"]).to_vec()).collect()
    }

    fn ready(&self) -> usize {
        self.endpoints().iter().filter(|it| it["conditions"]["ready"] == true).count()
    }

    fn reasons(&self, about: &str) -> Vec<String> {
        let events = self.all(&EVENT);
        let about = events.iter().filter(|it| text(it, &["involvedObject", "kind"]) == about);
        about.map(|it| text(it, &["reason"]).to_owned()).collect()
    }
}

fn deployment(replicas: u32, image: &str) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

fn service() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "selector": {"app": "web"},
        "ports": [{"port": 80, "targetPort": 80}]}})
}

#[tokio::test(start_paused = true)]
async fn a_deployment_and_a_service_end_in_three_ready_endpoints() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(3, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("three are ready", |it| it.ready() == 3).await;
    assert_eq!(cluster.all(&ENDPOINT_SLICE).len(), 1);
    let mut nodes: Vec<Value> = cluster.endpoints().iter().map(|it| it["nodeName"].clone()).collect();
    nodes.sort_by_key(Value::to_string);
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
    let available =
        |it: &Cluster| number(&it.get(&DEPLOYMENT, "web").unwrap(), &["status", "availableReplicas"]);
    cluster.until("the Deployment says so", |it| available(it) == Some(3)).await;
    assert_eq!(cluster.reasons("Deployment"), ["ScalingReplicaSet"]);
    assert_eq!(cluster.reasons("ReplicaSet"), ["SuccessfulCreate"; 3]);
    for reason in ["Scheduled", "Pulled", "Created", "Started"] {
        assert_eq!(cluster.reasons("Pod").iter().filter(|it| *it == reason).count(), 3, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_kubelet_pods_stay_pending_and_serve_nothing() {
    let cluster = Cluster::with(Settings { kubelet: false, ..Settings::default() });
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    cluster.make(&SERVICE, service());
    let replicas = |it: &Cluster| number(&it.get(&DEPLOYMENT, "web").unwrap(), &["status", "replicas"]);
    cluster.until("both are there", |it| replicas(it) == Some(2)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(cluster.all(&POD).iter().all(|pod| text(pod, &["spec", "nodeName"]).is_empty()));
    assert!(cluster.endpoints().is_empty());
    assert_eq!(cluster.all(&ENDPOINT_SLICE).len(), 1, "an empty slice");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_never_has_too_few_and_ends_with_the_new_pods() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(4, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("four are ready", |it| it.ready() == 4).await;
    cluster.change(&DEPLOYMENT, "web", |it| {
        it["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    });
    let is_new = |pod: &Arc<Value>| text(&list(pod, &["spec", "containers"])[0], &["image"]) == "web:2";
    cluster
        .until("all are new", |it| {
            assert!(it.ready() >= 3, "{} are ready", it.ready());
            let pods = it.all(&POD);
            pods.len() == 4 && pods.iter().all(is_new) && it.ready() == 4
        })
        .await;
    let web = cluster.get(&DEPLOYMENT, "web").unwrap();
    assert_eq!(text(&web, &["metadata", "annotations", "deployment.kubernetes.io/revision"]), "2");
    let sizes: Vec<Option<i64>> =
        cluster.all(&REPLICA_SET).iter().map(|set| number(set, &["spec", "replicas"])).collect();
    assert!(sizes.contains(&Some(0)) && sizes.contains(&Some(4)), "{sizes:?}");
    let told = |it: &Cluster| {
        let web = it.get(&DEPLOYMENT, "web").unwrap();
        list(&web, &["status", "conditions"]).iter().any(|it| it["reason"] == "NewReplicaSetAvailable")
    };
    cluster.until("it says that it has progressed", told).await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_recreates_has_old_pods_or_new_ones() {
    let cluster = Cluster::new();
    let mut web = deployment(2, "web:1");
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.make(&DEPLOYMENT, web);
    cluster.make(&SERVICE, service());
    cluster.until("two are ready", |it| it.ready() == 2).await;
    cluster.change(&DEPLOYMENT, "web", |it| {
        it["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    });
    let image = |pod: &Arc<Value>| text(&list(pod, &["spec", "containers"])[0], &["image"]).to_owned();
    cluster
        .until("the new ones are ready", |it| {
            let mut images: Vec<String> = it.all(&POD).iter().map(image).collect();
            images.dedup();
            assert!(images.len() < 2, "{images:?}");
            images == ["web:2"] && it.ready() == 2
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn scaling_down_takes_pods_through_serving_no_more_to_gone() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(3, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("three are ready", |it| it.ready() == 3).await;
    cluster.change(&DEPLOYMENT, "web", |it| it["spec"]["replicas"] = json!(1));
    let in_state = |it: &Cluster, serving: bool| {
        let going = it.endpoints().into_iter().filter(|it| it["conditions"]["terminating"] == true);
        going
            .filter(|it| it["conditions"]["serving"] == serving && it["conditions"]["ready"] == false)
            .count()
    };
    cluster.until("two terminate and serve", |it| in_state(it, true) == 2).await;
    cluster.until("two terminate and serve no more", |it| in_state(it, false) == 2).await;
    cluster.until("one is left", |it| it.endpoints().len() == 1 && it.all(&POD).len() == 1).await;
    assert_eq!(cluster.ready(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_annotated_as_unready_runs_and_is_not_ready() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(1, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("it is ready", |it| it.ready() == 1).await;
    let pod = name_of(&cluster.all(&POD)[0]).to_owned();
    let annotate = |value: &str| {
        let value = json!(value);
        cluster.change(&POD, &pod, |it| {
            it["metadata"]["annotations"] = json!({"playground.sluice/ready": value})
        });
    };
    annotate("false");
    cluster.until("it is not", |it| it.ready() == 0).await;
    assert_eq!(text(&cluster.get(&POD, &pod).unwrap(), &["status", "phase"]), "Running");
    assert_eq!(cluster.endpoints().len(), 1);
    annotate("true");
    cluster.until("it is again", |it| it.ready() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_owns_goes_after_it_before_it_or_not_at_all() {
    for propagation in [Propagation::Background, Propagation::Foreground, Propagation::Orphan] {
        let cluster = Cluster::new();
        cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
        let running = |it: &Cluster| {
            it.all(&POD).iter().filter(|pod| text(pod, &["status", "phase"]) == "Running").count()
        };
        cluster.until("two run", |it| running(it) == 2).await;
        cluster.delete(&DEPLOYMENT, "web", propagation);
        let is_gone = |it: &Cluster| it.get(&DEPLOYMENT, "web").is_err();
        cluster
            .until("the Deployment is gone", |it| {
                let blocked = propagation == Propagation::Foreground && !it.all(&REPLICA_SET).is_empty();
                assert!(!(blocked && is_gone(it)), "it went before its ReplicaSet");
                is_gone(it)
            })
            .await;
        if propagation == Propagation::Orphan {
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert_eq!((cluster.all(&REPLICA_SET).len(), cluster.all(&POD).len()), (1, 2));
            assert!(list(&cluster.all(&REPLICA_SET)[0], &["metadata", "ownerReferences"]).is_empty());
        } else {
            cluster
                .until("all is gone", |it| it.all(&REPLICA_SET).is_empty() && it.all(&POD).is_empty())
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_takes_over_the_pods_that_an_earlier_one_left() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("two are ready", |it| it.ready() == 2).await;
    let names = |it: &Cluster| it.all(&POD).iter().map(|pod| name_of(pod).to_owned()).collect::<Vec<_>>();
    let before = names(&cluster);
    cluster.delete(&DEPLOYMENT, "web", Propagation::Orphan);
    cluster.until("it is gone", |it| it.get(&DEPLOYMENT, "web").is_err()).await;
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    let available =
        |it: &Cluster| number(&it.get(&DEPLOYMENT, "web").unwrap(), &["status", "availableReplicas"]);
    cluster.until("the new one has both", |it| available(it) == Some(2)).await;
    assert_eq!((names(&cluster), cluster.all(&REPLICA_SET).len()), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_was_is_collected_and_others_are_not() {
    let cluster = Cluster::new();
    let owned = |name: &str, uid: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
        json!({"metadata": {"name": name, "ownerReferences": [owner]}})
    };
    let owner = cluster.make(&CONFIG_MAP, json!({"metadata": {"name": "owner"}}));
    cluster.make(&CONFIG_MAP, owned("kept", text(&owner, &["metadata", "uid"])));
    cluster.make(&CONFIG_MAP, owned("lost", "nobody"));
    cluster.until("the lost one is gone", |it| it.get(&CONFIG_MAP, "lost").is_err()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(cluster.get(&CONFIG_MAP, "kept").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_its_content_is_gone_and_says_what_it_waits_for() {
    let cluster = Cluster::new();
    cluster.until("it has its account", |it| it.get(&SERVICE_ACCOUNT, "default").is_ok()).await;
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.make(&CONFIG_MAP, json!({"metadata": {"name": "kept", "finalizers": ["example.com/keep"]}}));
    cluster.until("two are ready", |it| it.ready() == 2).await;
    cluster.delete(&NAMESPACE, "shop", Propagation::Background);
    cluster
        .until("only the kept one is there", |it| {
            let shop = it.get(&NAMESPACE, "shop").unwrap();
            list(&shop, &["status", "conditions"]).iter().any(|it| {
                it["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
            })
        })
        .await;
    let shop = cluster.get(&NAMESPACE, "shop").unwrap();
    let waits = list(&shop, &["status", "conditions"]).iter().any(|it| {
        it["message"]
            == "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
    });
    assert!(waits, "{shop:#}");
    assert!(
        cluster
            .store
            .create(&CONFIG_MAP, "shop", json!({"metadata": {"name": "late"}}), &Write::by("tester"))
            .is_err()
    );
    cluster.change(&CONFIG_MAP, "kept", |it| it["metadata"]["finalizers"] = json!([]));
    cluster.until("it is gone", |it| it.get(&NAMESPACE, "shop").is_err()).await;
}

#[tokio::test(start_paused = true)]
async fn everything_takes_its_time_divided_by_the_time_factor() {
    let mut took = Vec::new();
    for time_factor in [1.0, 10.0] {
        let cluster = Cluster::with(Settings { time_factor, ..Settings::default() });
        let start = tokio::time::Instant::now();
        cluster.make(&DEPLOYMENT, deployment(1, "web:1"));
        cluster.make(&SERVICE, service());
        cluster.until("it is ready", |it| it.ready() == 1).await;
        took.push(start.elapsed());
    }
    assert!(took[0] >= Duration::from_secs(2) && took[1] < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_that_is_gone_are_replaced_elsewhere() {
    let cluster = Cluster::with(Settings { nodes: 2, ..Settings::default() });
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("two are ready", |it| it.ready() == 2).await;
    cluster.delete(&NODE, "node-1", Propagation::Background);
    let all_on = |it: &Cluster, node: &str| {
        it.all(&POD).len() == 2 && it.all(&POD).iter().all(|pod| text(pod, &["spec", "nodeName"]) == node)
    };
    cluster.until("both are on the other", |it| all_on(it, "node-2") && it.ready() == 2).await;
    assert!(
        cluster
            .all(&POD)
            .iter()
            .all(|pod| { text(pod, &["metadata", "labels", "topology.kubernetes.io/zone"]) == "zone-2" })
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_relabelled_is_replaced_and_stays_when_its_deployment_goes() {
    let cluster = Cluster::new();
    cluster.make(&DEPLOYMENT, deployment(2, "web:1"));
    cluster.make(&SERVICE, service());
    cluster.until("two are ready", |it| it.ready() == 2).await;
    let pod = name_of(&cluster.all(&POD)[0]).to_owned();
    cluster.change(&POD, &pod, |it| it["metadata"]["labels"]["app"] = json!("quarantine"));
    cluster.until("it is replaced", |it| it.all(&POD).len() == 3 && it.ready() == 2).await;
    let is_free =
        |it: &Cluster| list(&it.get(&POD, &pod).unwrap(), &["metadata", "ownerReferences"]).is_empty();
    assert!(is_free(&cluster));
    cluster.delete(&DEPLOYMENT, "web", Propagation::Background);
    cluster.until("only it is left", |it| it.all(&POD).len() == 1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(cluster.get(&POD, &pod).is_ok());
}
