//! The tests that drive an API server with the Python client of Kubernetes.

use std::path::Path;
use std::process::{Command, Stdio};

use super::server::Side;
use crate::cache;
use crate::packages::{self, Environment};

/// The one test that a fresh real server cannot pass.
const FORGOTTEN: &str = "test_playground.py::test_a_watch_from_a_version_that_is_forgotten_is_gone";

/// Installs the client if need be, and runs the tests.
pub(super) fn run(side: Side, kubeconfig: &Path, folder: &Path) -> Result<String, String> {
    let requirements = folder.join("python").join("requirements.txt");
    let list = std::fs::read_to_string(&requirements)
        .map_err(|error| format!("{} cannot be read: {error}", requirements.display()))?;
    let home = cache::folder()?.join("python-kubernetes");
    let lock = cache::Lock::take("python-kubernetes")?;
    let environment = Environment {
        purpose: "the Python client of Kubernetes",
        home: &home,
        install: &["--requirement", &requirements.to_string_lossy()],
        list: &list,
        probe: &["python3", "-c", "import kubernetes, pytest"],
    };
    environment.ensure()?;
    drop(lock);
    let mut command = Command::new(packages::program_of(&home, "python3"));
    command.args(["-m", "pytest", "--quiet"]).current_dir(folder.join("python"));
    // The tree stays as it is: no caches beside the tests.
    command.args(["-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
    if side == Side::Real {
        // A real server forgets after five minutes, which nobody waits for here.
        command.args(["--deselect", FORGOTTEN]);
    }
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, "127.0.0.1,localhost");
    }
    let ended = command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).status();
    match ended.map_err(|error| format!("the Python tests cannot be run: {error}"))? {
        end if end.success() => Ok("the Python client of Kubernetes passes its tests".to_string()),
        end => Err(format!("the Python client's tests ended with {end}; see above")),
    }
}
