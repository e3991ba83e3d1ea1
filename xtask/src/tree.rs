//! The repository as the checks see it: paths and texts.
//!
//! Checks take a [`Tree`] and return sentences, so a test is a few made-up files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files by their path from the root, with `/` between the parts; those that are no text are empty.
#[derive(Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Everything in the repository that this program was built from, but build output and git's own.
    pub(crate) fn read_repository() -> Tree {
        let mut tree = Tree::default();
        tree.read(&root(), "");
        tree
    }

    /// A made-up tree.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        Tree { files }
    }

    fn read(&mut self, folder: &Path, prefix: &str) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            // In a worktree, git's own is a file.
            if name == ".git" {
                continue;
            }
            if entry.path().is_dir() {
                if name != "target" {
                    self.read(&entry.path(), &format!("{path}/"));
                }
            } else {
                // A picture is there, and has no text.
                self.files.insert(path, std::fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is a file or folder of that path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(file, _)| file.starts_with(&folder))
    }

    /// All files that end so, in order.
    pub(crate) fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(end))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All files below a folder (`crates/model/`), in order.
    pub(crate) fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.starts_with(folder))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder of a path: `docs` of `docs/understand/glossary.md`, nothing of `README.md`.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A relative path seen from a folder; `None` when it leads out of the repository.
pub(crate) fn join(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_inside_the_repository_only() {
        assert_eq!(join("docs/decisions", "../use/egress.md").as_deref(), Some("docs/use/egress.md"));
        assert_eq!(join("", "./README.md").as_deref(), Some("README.md"));
        assert_eq!(join("docs", "../../elsewhere.md"), None);
    }

    #[test]
    fn folders_are_there_when_a_file_is() {
        let tree = Tree::of(&[("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/") && tree.has("docs/a.md"));
        assert!(!tree.has("doc") && !tree.has("docs/b.md"));
    }
}
