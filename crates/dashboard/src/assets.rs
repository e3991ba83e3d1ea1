//! The files beside the pages: the style sheet and two small scripts, named after what is in them.
//!
//! A name never stands for two contents, so a browser may keep a file for ever, and a new version
//! of the program is seen at once because its pages name other files.

/// What a page may load and do, as the header `Content-Security-Policy`: only from here, nothing
/// written into the page itself, and no frame around it.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asset {
    /// Its name before the hash.
    stem: &'static str,
    /// Its name after the hash.
    extension: &'static str,
    /// What it is, as the header `Content-Type`.
    pub content_type: &'static str,
    /// What is in it.
    pub body: &'static str,
    hash: u64,
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The style sheet.
pub const STYLE: Asset =
    Asset::of("style", "css", "text/css; charset=utf-8", include_str!("../assets/style.css"));
/// Sets the chosen colours before anything is painted.
pub const THEME: Asset = Asset::of("theme", "js", JAVASCRIPT, include_str!("../assets/theme.js"));
/// Keeps a page live.
pub const LIVE: Asset = Asset::of("live", "js", JAVASCRIPT, include_str!("../assets/live.js"));
/// The long table of the front page, which `live.js` brings in.
pub const TABLE: Asset = Asset::of("table", "js", JAVASCRIPT, include_str!("../assets/table.js"));
/// The picture in the tab.
pub const ICON: Asset = Asset::of("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg"));

/// All of them.
pub const ALL: [Asset; 5] = [STYLE, THEME, LIVE, TABLE, ICON];

impl Asset {
    const fn of(
        stem: &'static str,
        extension: &'static str,
        content_type: &'static str,
        body: &'static str,
    ) -> Asset {
        Asset { stem, extension, content_type, body, hash: hash(body.as_bytes()) }
    }

    /// The file's name: `style-0123456789abcdef.css`.
    pub fn name(&self) -> String {
        format!("{}-{:016x}.{}", self.stem, self.hash, self.extension)
    }

    /// Where it is.
    pub fn path(&self) -> String {
        format!("/assets/{}", self.name())
    }

    /// The header `ETag`.
    pub fn etag(&self) -> String {
        format!("\"{:016x}\"", self.hash)
    }

    /// The file of this name, if its content is still that.
    pub fn named(name: &str) -> Option<Asset> {
        ALL.into_iter().find(|asset| asset.name() == name)
    }
}

/// FNV-1a: tells contents apart, and keeps no secret.
pub const fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_content() {
        assert_ne!(hash(b"a"), hash(b"b"));
        for asset in ALL {
            assert_eq!(Asset::named(&asset.name()), Some(asset));
        }
        assert_eq!(Asset::named("style-0000000000000000.css"), None);
        assert_eq!(Asset::named("style.css"), None);
    }

    #[test]
    fn nothing_comes_from_another_host() {
        for asset in ALL {
            let body = asset.body.replace("http://www.w3.org/2000/svg", "");
            for mark in ["http:", "https:", "@import", "//cdn"] {
                assert!(!body.contains(mark), "{} has {mark}", asset.name());
            }
        }
        assert!(!POLICY.contains("unsafe") && !POLICY.contains('*'));
    }
}
