//! The control plane: an API server without the controllers that would act by themselves.

use std::path::Path;

use kube::Client;
use sluice_e2e::testenv::Testenv;

pub(crate) struct Plane {
    pub(crate) client: Client,
    testenv: Testenv,
    /// Has the log of the control plane.
    _folder: tempfile::TempDir,
}

impl Plane {
    pub(crate) async fn start(program: &Path) -> anyhow::Result<Plane> {
        let folder = tempfile::tempdir()?;
        let testenv = Testenv::start(program, &folder.path().join("testenv.log")).await?;
        // The garbage collector and the EndpointSlice controller are played by the stories.
        testenv.tell("stop controllers").await?;
        let connection = sluice_k8s::connect::connect(Some(&testenv.ready.kubeconfig), None).await?;
        Ok(Plane { client: connection.client, testenv, _folder: folder })
    }

    /// Ends everything.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.testenv.stop().await
    }
}
