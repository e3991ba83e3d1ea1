//! Reads from a `Cargo.toml` the little that the checks need, line by line.
//!
//! Only the shapes that this workspace uses are understood: `name.workspace = true`,
//! `name = …`, and `[dependencies.name]`.

/// One dependency.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    /// The package.
    pub(crate) name: String,
    /// It is there for tests only.
    pub(crate) dev: bool,
    /// It is there only with a feature.
    pub(crate) optional: bool,
}

/// All dependencies of a manifest.
pub(crate) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut dev = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = section(line) {
            let (table, name) = section.split_once('.').unwrap_or((section, ""));
            dev = match table {
                "dependencies" | "build-dependencies" => Some(false),
                "dev-dependencies" => Some(true),
                _ => None,
            };
            if let (Some(dev), false) = (dev.filter(|_| !name.is_empty()), name.is_empty()) {
                found.push(Dependency { name: name.to_string(), dev, optional: false });
            }
            // The lines below `[dependencies.name]` are about that one, not further names.
            if !name.is_empty() {
                dev = None;
            }
            continue;
        }
        if let (Some(dev), Some((left, right))) = (dev, line.split_once('=')) {
            let name = left.trim().split('.').next().unwrap_or("").trim_matches('"');
            if !name.is_empty() && !name.starts_with('#') {
                let optional = right.contains("optional = true");
                found.push(Dependency { name: name.to_string(), dev, optional });
            }
        }
    }
    found
}

/// The value of `key = "value"` in one section (`workspace.package`).
pub(crate) fn value<'a>(manifest: &'a str, wanted_section: &str, key: &str) -> Option<&'a str> {
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = section(line) {
            inside = section == wanted_section;
        } else if inside
            && let Some((left, right)) = line.split_once('=')
            && left.trim() == key
        {
            return right.trim().strip_prefix('"')?.split('"').next();
        }
    }
    None
}

/// Every `path = "….rs"` of the targets: files that no `mod` has to reach.
pub(crate) fn target_paths(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path"))
        .filter_map(|rest| rest.trim_start().strip_prefix('='))
        .filter_map(|rest| rest.trim().strip_prefix('"')?.split('"').next())
        .filter(|path| path.ends_with(".rs"))
        .collect()
}

fn section(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']').map(|inner| inner.trim_matches(['[', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[package]
name = "sluice-engine"

[dependencies]
sluice-model.workspace = true
# a remark = with a sign
hashbrown = { version = "1", default-features = false }

[dependencies.foldhash]
version = "2"

[dev-dependencies]
proptest.workspace = true

[[bench]]
path = "benches/engine.rs"
"#;

    #[test]
    fn dependencies_are_found_in_every_shape() {
        let names: Vec<(String, bool)> =
            dependencies(MANIFEST).into_iter().map(|found| (found.name, found.dev)).collect();
        let expected =
            [("sluice-model", false), ("hashbrown", false), ("foldhash", false), ("proptest", true)];
        assert_eq!(names, expected.map(|(name, dev)| (name.to_string(), dev)));
    }

    #[test]
    fn values_come_from_their_own_section() {
        let text = "[workspace.package]\nrust-version = \"1.95\"\n[other]\nrust-version = \"1.0\"";
        assert_eq!(value(text, "workspace.package", "rust-version"), Some("1.95"));
        assert_eq!(value(text, "package", "rust-version"), None);
        assert_eq!(target_paths(MANIFEST), ["benches/engine.rs"]);
    }
}
