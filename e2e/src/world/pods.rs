//! Pods, and what a kubelet would write into their status.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{World, count};
use crate::judge::egress::LABEL;

/// A pod that is about to be made.
#[must_use = "a pod is made by run() or until()"]
pub(crate) struct PodToMake<'a> {
    world: &'a World,
    name: String,
    node: Option<String>,
    labels: BTreeMap<String, String>,
    ips: Option<Vec<String>>,
    ports: Vec<(String, u16)>,
    on_the_host: bool,
    host_ips: Option<Vec<String>>,
    told: bool,
}

impl World {
    /// A pod: `world.pod("web-1").of("web").on("a").run()`.
    pub(crate) fn pod(&self, name: &str) -> PodToMake<'_> {
        PodToMake {
            world: self,
            name: name.to_string(),
            node: None,
            labels: BTreeMap::new(),
            ips: None,
            ports: Vec::new(),
            on_the_host: false,
            host_ips: None,
            told: true,
        }
    }

    /// So many pods of an app, `web-1`, `web-2`, …, running and ready, in turn on these nodes.
    pub(crate) async fn pods(&self, app: &str, number: usize, nodes: &[&str]) -> Result<()> {
        self.pods_from(app, 1, number, nodes).await
    }

    /// The same, counted from another number than one.
    pub(crate) async fn pods_from(
        &self,
        app: &str,
        first: usize,
        number: usize,
        nodes: &[&str],
    ) -> Result<()> {
        self.tell(format!("{} of {app} on {}", count(number, "pod"), nodes.join(", ")));
        let make = |at: usize| {
            self.pod(&format!("{app}-{at}")).of(app).on(nodes[at % nodes.len()]).quietly(Step::Ready)
        };
        futures::future::try_join_all((first..first + number).map(make)).await?;
        Ok(())
    }

    /// The same with an egress label each.
    pub(crate) async fn egress_pods(
        &self,
        egress: &str,
        first: usize,
        number: usize,
        nodes: &[&str],
    ) -> Result<()> {
        self.tell(format!("{} with egress {egress} on {}", count(number, "pod"), nodes.join(", ")));
        let make = |at: usize| {
            let pod = self.pod(&format!("{}-{at}", egress.to_ascii_lowercase().replace(['.', '_'], "-")));
            pod.egress(egress).on(nodes[at % nodes.len()]).quietly(Step::Ready)
        };
        futures::future::try_join_all((first..first + number).map(make)).await?;
        Ok(())
    }

    /// The readiness of a pod changes.
    pub(crate) async fn set_ready(&self, name: &str, ready: bool) -> Result<()> {
        self.tell(format!("pod {name} is {}", if ready { "ready" } else { "not ready" }));
        let word = if ready { "True" } else { "False" };
        let conditions: Vec<Value> = ["Ready", "ContainersReady", "Initialized", "PodScheduled"]
            .map(|kind| {
                let status = if kind.ends_with("eady") { word } else { "True" };
                json!({"type": kind, "status": status})
            })
            .to_vec();
        self.patch_status(name, json!({"conditions": conditions})).await
    }

    /// Its containers have ended, for good (`Succeeded`) or bad (`Failed`).
    pub(crate) async fn finish(&self, name: &str, phase: &str) -> Result<()> {
        self.tell(format!("the containers of pod {name} have ended: {phase}"));
        let conditions = [json!({"type": "Ready", "status": "False"})];
        self.patch_status(name, json!({"phase": phase, "conditions": conditions})).await
    }

    /// A pod has other addresses; none takes them away.
    pub(crate) async fn set_pod_ips(&self, name: &str, ips: &[&str]) -> Result<()> {
        self.tell(format!(
            "pod {name} has {} now",
            if ips.is_empty() { "no address".into() } else { ips.join(" and ") }
        ));
        self.patch_status(name, pod_ips(ips)).await
    }

    /// A label of a pod changes; `None` takes it off.
    pub(crate) async fn label_pod(&self, name: &str, key: &str, value: Option<&str>) -> Result<()> {
        self.tell(match value {
            Some(value) => format!("labels pod {name} {key}={value}"),
            None => format!("takes label {key} off pod {name}"),
        });
        let patch = json!({"metadata": {"labels": {key: value}}});
        self.api::<Pod>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// The egress label of a pod changes; `None` takes it off.
    pub(crate) async fn set_egress(&self, name: &str, egress: Option<&str>) -> Result<()> {
        self.label_pod(name, LABEL, egress).await
    }

    /// Somebody deletes a pod: it is ending from now on, and its containers go on for their grace period.
    pub(crate) async fn begin_ending(&self, name: &str) -> Result<()> {
        self.tell(format!("pod {name} begins to end"));
        self.api::<Pod>().delete(name, &DeleteParams::default().grace_period(3_600)).await?;
        Ok(())
    }

    /// The kubelet says that a pod has ended: the object goes.
    pub(crate) async fn pod_ended(&self, name: &str) -> Result<()> {
        self.tell(format!("pod {name} has ended"));
        self.force_delete(name).await
    }

    /// Deletes a pod and plays its kubelet.
    pub(crate) async fn delete_pod(&self, name: &str) -> Result<()> {
        self.tell(format!("deletes pod {name}"));
        self.api::<Pod>().delete(name, &DeleteParams::default().grace_period(3_600)).await?;
        self.force_delete(name).await
    }

    /// Deletes pods `app-first` to `app-(first+number-1)`.
    pub(crate) async fn delete_pods(&self, app: &str, first: usize, number: usize) -> Result<()> {
        self.tell(format!("deletes {} of {app}", count(number, "pod")));
        for at in first..first + number {
            self.force_delete(&format!("{app}-{at}")).await?;
        }
        Ok(())
    }

    /// Ends every pod of the namespace at once, as when its node is switched off.
    pub(crate) async fn end_all_pods(&self) -> Result<()> {
        for pod in self.api::<Pod>().list(&ListParams::default()).await? {
            self.force_delete(&pod.name_any()).await?;
        }
        Ok(())
    }

    /// The first address of a pod.
    pub(crate) async fn ip_of_pod(&self, name: &str) -> Result<String> {
        let pod = self.api::<Pod>().get(name).await?;
        pod.status
            .and_then(|status| status.pod_ip)
            .ok_or_else(|| anyhow::anyhow!("pod {name} has no address yet"))
    }

    async fn force_delete(&self, name: &str) -> Result<()> {
        match self.api::<Pod>().delete(name, &DeleteParams::default().grace_period(0)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(problem) => Err(problem.into()),
        }
    }

    async fn patch_status(&self, name: &str, status: Value) -> Result<()> {
        let patch = json!({"status": status});
        self.api::<Pod>().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
}

/// How far a new pod goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The object is there; nobody has written its status.
    Exists,
    /// It has an address and is still starting.
    Pending,
    /// It is running, and not ready yet.
    Running,
    /// It is running and ready.
    Ready,
}

impl PodToMake<'_> {
    /// It belongs to an app, which Services select it by.
    pub(crate) fn of(mut self, app: &str) -> Self {
        self.labels.insert("app".to_string(), app.to_string());
        self
    }

    /// It has a further label.
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_string(), value.to_string());
        self
    }

    /// It has the egress label.
    pub(crate) fn egress(self, egress: &str) -> Self {
        self.label(LABEL, egress)
    }

    /// It runs on this node, which need not exist (yet).
    pub(crate) fn on(mut self, node: &str) -> Self {
        self.node = Some(node.to_string());
        self
    }

    /// It has these addresses, instead of the next free one.
    pub(crate) fn at(mut self, ips: &[&str]) -> Self {
        self.ips = Some(ips.iter().map(|ip| ip.to_string()).collect());
        self
    }

    /// Its status names these addresses of its node.
    pub(crate) fn host_ips(mut self, ips: &[&str]) -> Self {
        self.host_ips = Some(ips.iter().map(|ip| ip.to_string()).collect());
        self
    }

    /// Its container has a port with a name.
    pub(crate) fn container_port(mut self, name: &str, port: u16) -> Self {
        self.ports.push((name.to_string(), port));
        self
    }

    /// It shares the node's network and has its address.
    pub(crate) fn on_the_host(mut self) -> Self {
        self.on_the_host = true;
        self
    }

    /// It is one of many, so nothing is told about it.
    pub(crate) fn quiet(mut self) -> Self {
        self.told = false;
        self
    }

    /// Makes it, running and ready.
    pub(crate) async fn run(self) -> Result<()> {
        self.tell("");
        self.quietly(Step::Ready).await
    }

    /// Makes it as far as this.
    pub(crate) async fn until(self, step: Step) -> Result<()> {
        self.tell(match step {
            Step::Exists => ", of which no kubelet knows yet",
            Step::Pending => ", which is still starting",
            Step::Running => ", not ready yet",
            Step::Ready => "",
        });
        self.quietly(step).await
    }

    fn tell(&self, more: &str) {
        if !self.told {
            return;
        }
        let egress = self.labels.get(LABEL).map(|it| format!(" with egress {it}")).unwrap_or_default();
        let node = self.node.as_ref().map(|it| format!(" on {it}")).unwrap_or_default();
        self.world.tell(format!("pod {}{egress}{node}{more}", self.name));
    }

    async fn quietly(self, step: Step) -> Result<()> {
        let world = self.world;
        let ports: Vec<Value> =
            self.ports.iter().map(|(name, port)| json!({"name": name, "containerPort": port})).collect();
        let object = json!({
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {
                "nodeName": self.node,
                "hostNetwork": self.on_the_host,
                "containers": [{"name": "main", "image": "example.invalid/app", "ports": ports}],
            },
        });
        let pod = serde_json::from_value(object)?;
        world.api::<Pod>().create(&PostParams::default(), &pod).await?;
        if step == Step::Exists {
            return Ok(());
        }
        let hosts = match self.host_ips {
            Some(ips) => ips,
            None => self.node.as_deref().map(|node| world.ips_of_node(node)).unwrap_or_default(),
        };
        let ips = match self.ips {
            Some(ips) => ips,
            None if self.on_the_host => hosts.clone(),
            None => {
                let number = world.number_of_pod();
                vec![format!("10.1.{}.{}", number / 250, number % 250 + 1)]
            }
        };
        let word = |is: bool| if is { "True" } else { "False" };
        let mut status = pod_ips(&ips.iter().map(String::as_str).collect::<Vec<_>>());
        status["phase"] = json!(if step == Step::Pending { "Pending" } else { "Running" });
        status["conditions"] = json!([
            {"type": "PodScheduled", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "ContainersReady", "status": word(step == Step::Ready)},
            {"type": "Ready", "status": word(step == Step::Ready)},
        ]);
        if !hosts.is_empty() {
            status["hostIP"] = json!(hosts[0]);
            status["hostIPs"] = hosts.iter().map(|ip| json!({"ip": ip})).collect();
        }
        world.patch_status(&self.name, status).await
    }
}

fn pod_ips(ips: &[&str]) -> Value {
    json!({
        "podIP": ips.first(),
        "podIPs": ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<Value>>(),
    })
}
