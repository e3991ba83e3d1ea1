//! The control plane: an API server without the controllers that would act by themselves.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use kube::Client;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) struct Plane {
    pub(crate) client: Client,
    child: Child,
    orders: ChildStdin,
}

impl Plane {
    pub(crate) async fn start(program: &Path) -> anyhow::Result<Plane> {
        let mut child = Command::new(program)
            .arg("up")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let mut orders = child.stdin.take().context("it has a standard input")?;
        let mut answers = BufReader::new(child.stdout.take().context("it has a standard output")?).lines();
        let ready = answer(&mut answers).await?;
        // The garbage collector and the EndpointSlice controller are played by the stories.
        orders.write_all(b"stop controllers\n").await?;
        answer(&mut answers).await?;
        let kubeconfig = ready["kubeconfig"].as_str().context("the first line names a kubeconfig")?;
        let connection = sluice_k8s::connect::connect(Some(Path::new(kubeconfig)), None).await?;
        Ok(Plane { client: connection.client, child, orders })
    }

    /// Ends everything; whoever holds its standard input holds it.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let Plane { mut child, orders, .. } = self;
        drop(orders);
        child.wait().await?;
        Ok(())
    }
}

async fn answer(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<serde_json::Value> {
    let Some(line) = lines.next_line().await? else { bail!("the control plane ended without a word") };
    let answer: serde_json::Value = serde_json::from_str(&line).with_context(|| line.clone())?;
    match answer["error"].as_str() {
        Some(error) => bail!("the control plane says: {error}"),
        None => Ok(answer),
    }
}
