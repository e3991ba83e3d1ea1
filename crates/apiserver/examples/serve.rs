//! The API server as a program of its own: it prints one line of JSON when it is ready, and ends with Ctrl-C.
//!
//! Without `--nodes=N` it has no nodes, so no scheduler and no kubelet: that is how it is compared with a real
//! API server that has none. What else is said to it, it does not hear: it stands in for
//! `sluice playground --kubernetes-only`, and is built in seconds.
#![allow(clippy::print_stdout, reason = "whoever starts it reads its first line")]

use sluice_apiserver::{Options, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = match std::env::args().find_map(|word| Some(word.strip_prefix("--nodes=")?.to_owned())) {
        Some(number) => number.parse()?,
        None => 0,
    };
    let folder = tempfile::tempdir()?;
    let options =
        Options { listen: "127.0.0.1:0".parse()?, dir: folder.path().to_owned(), nodes, time_factor: 1.0 };
    let running = start(options).await?;
    let ready = serde_json::json!({"kubernetesUrl": running.url, "kubeconfig": running.kubeconfig});
    println!("{ready}");
    tokio::signal::ctrl_c().await?;
    running.stop().await;
    Ok(())
}
