//! The dashboard in headless Chromium, driven by Playwright: `e2e/browser/`.
//!
//! The pages come from the example `dashboard` of the controller. The browser is Debian's, the two
//! npm packages are pinned and kept in the cache; nothing is downloaded by Playwright itself.
//! Screenshots and what was measured stay in `target/browser/`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::packages;
use crate::parts::{Part, tool};
use crate::programs::{Program, target_folder};
use crate::tree::{Tree, root};

/// The variable that names the browser where it is not Debian's.
pub(crate) const VARIABLE: &str = "SLUICE_CHROMIUM";

/// The browser.
pub(crate) fn chromium() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}

/// Installs the npm packages of the test, unless they are there, and says where they are.
pub(crate) fn install_packages() -> Result<PathBuf, String> {
    let _lock = crate::cache::Lock::take("browser")?;
    let home = crate::cache::folder()?.join("browser");
    packages::ensure_node("the browser test", &root().join("e2e/browser"), &home)?;
    Ok(home)
}

/// The task.
pub(crate) fn task() -> Result<String, Vec<String>> {
    Part::ensure_all(&[Part::Chromium, Part::BrowserPackages])
        .map_err(|trouble| vec![trouble.to_string()])?;
    run(&Tree::read_repository())
}

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let example = Program::Dashboard.path()?;
    let artefacts = target_folder().join("browser");
    drive(&example, &artefacts).map_err(|why| vec![why])?;
    let measured = fs::read_to_string(artefacts.join("measured.json"));
    let measured = measured.map_err(|error| vec![format!("nothing was measured: {error}")])?;
    Ok(told(&measured, &artefacts))
}

fn drive(example: &Path, artefacts: &Path) -> Result<(), String> {
    let home = install_packages()?;
    packages::clear(artefacts)?;
    // One after the other: they measure, and the machine may be small.
    let mut node = tool("node");
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        // A test that fails, or waits for what never comes, ends all the same.
        .args(["--test-force-exit", "--test-timeout=600000"])
        .args(["dashboard.test.mjs", "large.test.mjs"])
        .current_dir(root().join("e2e/browser"))
        .env("SLUICE_BROWSER_PACKAGES", home)
        .env("SLUICE_DASHBOARD", example)
        .env(VARIABLE, chromium())
        .env("SLUICE_ARTEFACTS", artefacts);
    packages::run(&mut node)
        .map_err(|why| format!("the dashboard does not do in a browser what it should: {why}"))
}

/// The numbers in one line.
fn told(measured: &str, artefacts: &Path) -> String {
    let number = |name: &str| {
        let rest = measured.split_once(&format!("\"{name}\":")).map_or("", |(_, rest)| rest);
        rest.split([',', '\n', '}']).next().unwrap_or("").trim().to_owned()
    };
    format!(
        "with {} services and {} addresses: first paint {} ms, filtering {} ms, a frame while scrolling {} ms; screenshots in {}",
        number("services"),
        number("addresses"),
        number("firstPaintMs"),
        number("filterMs"),
        number("scrollFrameMs"),
        artefacts.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_told_in_one_line() {
        let measured = "{\n  \"services\": 10000,\n  \"addresses\": 100000,\n  \"firstPaintMs\": 120.5,\n  \"filterMs\": 5,\n  \"scrollFrameMs\": 17\n}\n";
        assert_eq!(
            told(measured, Path::new("t")),
            "with 10000 services and 100000 addresses: first paint 120.5 ms, filtering 5 ms, a frame while scrolling 17 ms; screenshots in t"
        );
    }
}
