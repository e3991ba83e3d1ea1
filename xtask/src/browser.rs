//! The dashboard in headless Chromium, driven by Playwright: `e2e/browser/`.
//!
//! The pages come from the example `dashboard` of the controller. The browser is Debian's, the two
//! npm packages are pinned and kept in the cache; nothing is downloaded by Playwright itself.
//! Screenshots and what was measured stay in `target/browser/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::conformance::target_folder;
use crate::packages::{self, DEBIAN_NODE};
use crate::stage::cargo_quietly;
use crate::tree::{Tree, root};

/// What the stage needs, in words.
pub(crate) const TOOLS: &str = "node, npm and chromium";

/// The browser: `SLUICE_CHROMIUM` where it has another name.
fn chromium() -> PathBuf {
    std::env::var_os("SLUICE_CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}

/// Makes sure of node, npm and chromium, with apt-get's help if need be.
pub(crate) fn ensure_tools() -> Result<(), String> {
    packages::ensure(missing, &[DEBIAN_NODE[0], DEBIAN_NODE[1], "chromium"])
}

fn missing() -> Vec<String> {
    let mut missing = packages::missing_node();
    if !packages::works(&chromium(), &["--version"]) {
        missing.push("chromium is missing (SLUICE_CHROMIUM says where it is)".to_string());
    }
    missing
}

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    ensure_tools().map_err(|why| vec![why])?;
    cargo_quietly(&["build", "--quiet", "-p", "sluice-controller", "--example", "dashboard"])?;
    let example = target_folder().join("debug/examples/dashboard");
    let artefacts = target_folder().join("browser");
    drive(&example, &artefacts).map_err(|why| vec![why])?;
    let measured = fs::read_to_string(artefacts.join("measured.json"));
    let measured = measured.map_err(|error| vec![format!("nothing was measured: {error}")])?;
    Ok(told(&measured, &artefacts))
}

fn drive(example: &Path, artefacts: &Path) -> Result<(), String> {
    let source = root().join("e2e/browser");
    let home = {
        let _lock = crate::cache::Lock::take("browser")?;
        let home = crate::cache::folder()?.join("browser");
        packages::ensure_node("the browser test", &source, &home)?;
        home
    };
    packages::clear(artefacts)?;
    // One after the other: they measure, and the machine may be small.
    let mut node = Command::new("node");
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        // A test that fails, or waits for what never comes, ends all the same.
        .args(["--test-force-exit", "--test-timeout=600000"])
        .args(["dashboard.test.mjs", "large.test.mjs"])
        .current_dir(&source)
        .env("SLUICE_BROWSER_PACKAGES", home)
        .env("SLUICE_DASHBOARD", example)
        .env("SLUICE_CHROMIUM", chromium())
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
