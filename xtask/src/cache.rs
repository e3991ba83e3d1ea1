//! What takes long to make and is kept outside the tree, for every checkout of this machine.
//!
//! A thing has a name that says what it was made from, so what has that name is right for ever and is
//! never written over. Who makes one holds a lock, so that two who need it at once make it once. The
//! folder may be removed at any time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The variable that names the folder.
const VARIABLE: &str = "SLUICE_CACHE";

/// Where the cache is.
pub(crate) fn folder() -> Result<PathBuf, String> {
    folder_by(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn folder_by(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, String> {
    let folder = variable(VARIABLE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|home| home.join("sluice")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache").join("sluice")))
        .ok_or(format!("there is no HOME to keep the cache in; set {VARIABLE} to a folder"))?;
    if folder.is_relative() {
        return Err(format!("{}: the cache's folder must be an absolute path", folder.display()));
    }
    Ok(folder)
}

/// Holds a name for this process, waiting for whoever else has it; given back when dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a name; says so if it has to wait.
    pub(crate) fn take(name: &str) -> Result<Lock, String> {
        let folder = folder()?;
        let path = folder.join(format!("{name}.lock"));
        let cannot = |error: std::io::Error| format!("{} cannot be locked: {error}", path.display());
        fs::create_dir_all(&folder).map_err(cannot)?;
        let file = File::create(&path).map_err(cannot)?;
        if file.try_lock().is_err() {
            eprintln!("somebody else is making {name}; waiting for them");
            file.lock().map_err(cannot)?;
        }
        Ok(Lock { _file: file })
    }
}

/// Puts a finished file into its place, whole or not at all.
pub(crate) fn put(made: &Path, place: &Path) -> Result<(), String> {
    fs::rename(made, place)
        .map_err(|error| format!("{} cannot be put in its place: {error}", place.display()))
}

/// The newest few things whose names begin so are kept; the others go.
pub(crate) fn keep_newest(folder: &Path, prefix: &str, count: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    found.reverse();
    for (_, path) in found.into_iter().skip(count) {
        // Somebody's who may not be cleared up costs only room.
        let _ = fs::remove_file(path);
    }
}

/// A short name for some texts: the same for the same ones, in the same order (FNV-1a, 64 bits).
pub(crate) fn key<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in texts {
        // The mark between two texts is no byte of UTF-8.
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_about_the_folder_wins() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> =
                set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            folder_by(move |name| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), (VARIABLE, "/s")]), Ok("/s".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Ok("/x/sluice".into()));
        assert_eq!(of(&[("HOME", "/h")]), Ok("/h/.cache/sluice".into()));
        assert!(of(&[]).unwrap_err().contains(VARIABLE));
        assert!(of(&[(VARIABLE, "near")]).unwrap_err().contains("absolute"));
    }

    #[test]
    fn a_key_tells_texts_and_their_borders_apart() {
        assert_eq!(key(["a", "b"]), key(["a", "b"]));
        assert_ne!(key(["a", "b"]), key(["b", "a"]));
        assert_ne!(key(["ab", ""]), key(["a", "b"]));
    }
}
