//! The API server as a program: `serve up` prints one line of JSON when it is ready, and ends with its input.
//!
//! It has no nodes, so no scheduler and no kubelet: that is how it is compared with a real API server that
//! has none. `serve up 3` has three.
#![allow(clippy::print_stdout, reason = "whoever starts it reads its first line")]

use std::io::Read as _;

use sluice_apiserver::{Options, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = match std::env::args().nth(2) {
        Some(number) => number.parse()?,
        None => 0,
    };
    let folder = tempfile::tempdir()?;
    let options =
        Options { listen: "127.0.0.1:0".parse()?, dir: folder.path().to_owned(), nodes, time_factor: 1.0 };
    let running = start(options).await?;
    let ready = serde_json::json!({
        "url": running.url, "kubeconfig": running.kubeconfig, "dir": folder.path(), "version": "v1.36.3",
    });
    println!("{ready}");
    // A thread of its own, since a read of the input cannot be broken off.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    running.stop().await;
    Ok(())
}
