//! Nodes and their addresses.

use std::sync::atomic::Ordering;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::World;

impl World {
    /// A node with one IPv4 address, 10.0.0.N.
    pub(crate) async fn node(&self, name: &str) -> Result<()> {
        let number = self.shared.nodes_made.fetch_add(1, Ordering::Relaxed) + 1;
        self.node_at(name, &[&format!("10.0.{}.{}", number / 250, number % 250 + 4)]).await
    }

    /// Several nodes with one IPv4 address each.
    pub(crate) async fn nodes(&self, names: &[&str]) -> Result<()> {
        for name in names {
            self.node(name).await?;
        }
        Ok(())
    }

    /// A node with these InternalIPs.
    pub(crate) async fn node_at(&self, name: &str, ips: &[&str]) -> Result<()> {
        self.tell(format!("node {name} joins at {}", ips.join(" and ")));
        self.quiet_node_at(name, ips).await
    }

    /// The same for one of many, so nothing is told about it.
    pub(crate) async fn quiet_node_at(&self, name: &str, ips: &[&str]) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        let object = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        nodes.create(&PostParams::default(), &object).await?;
        self.write_node_ips(name, ips).await
    }

    /// The node has other InternalIPs from now on.
    pub(crate) async fn move_node(&self, name: &str, ips: &[&str]) -> Result<()> {
        self.tell(format!("node {name} has {} now", ips.join(" and ")));
        self.write_node_ips(name, ips).await
    }

    /// The node is gone; its pods are not, as in life.
    pub(crate) async fn delete_node(&self, name: &str) -> Result<()> {
        self.tell(format!("node {name} is gone"));
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete(name, &Default::default()).await?;
        Ok(())
    }

    /// Deletes all nodes, without a word.
    pub(crate) async fn delete_all_nodes(&self) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.delete_collection(&Default::default(), &Default::default()).await?;
        Ok(())
    }

    /// The addresses that a node was given, also before it is made or after it is gone.
    pub(crate) fn ips_of_node(&self, name: &str) -> Vec<String> {
        let nodes = self.shared.nodes.lock().expect("nobody panics with the nodes in hand");
        nodes.get(name).cloned().unwrap_or_default()
    }

    async fn write_node_ips(&self, name: &str, ips: &[&str]) -> Result<()> {
        let addresses: Vec<_> = ips.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
        let status = json!({
            "status": {
                "addresses": addresses,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        });
        let nodes = Api::<Node>::all(self.client.clone());
        // A merge patch replaces the list; a strategic one would keep the old addresses.
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        let mut nodes = self.shared.nodes.lock().expect("nobody panics with the nodes in hand");
        nodes.insert(name.to_string(), ips.iter().map(|ip| ip.to_string()).collect());
        Ok(())
    }
}
