//! What pages load beside themselves: one sheet, one script, one icon, all in the binary.
//!
//! Their names hold a hash of their bytes, so that a browser may keep them for ever and never shows a page with an old sheet.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

/// A file that is served as it stands.
#[derive(Debug)]
pub struct Asset {
    /// Where it is served, with the hash of its bytes: `/assets/style.0123456789abcdef.css`.
    pub href: String,
    /// Its `Content-Type`.
    pub kind: &'static str,
    /// What it holds.
    pub text: &'static str,
}

impl Asset {
    fn of(stem: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        Self { href: format!("/assets/{stem}.{:016x}.{ending}", xxh3_64(text.as_bytes())), kind, text }
    }
}

/// The sheet of every page.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("style", "css", "text/css; charset=utf-8", include_str!("assets/style.css")));

/// The script of every page.
pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("live", "js", "text/javascript; charset=utf-8", include_str!("assets/live.js")));

/// The icon.
pub static ICON: LazyLock<Asset> = LazyLock::new(|| Asset::of("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

/// The asset of this file name, such as `style.0123456789abcdef.css`; none where there is none, or only one with other bytes.
pub fn find(name: &str) -> Option<&'static Asset> {
    let all: [&'static LazyLock<Asset>; 3] = [&STYLE, &SCRIPT, &ICON];
    all.into_iter().map(|asset| &**asset).find(|asset| asset.href.strip_prefix("/assets/") == Some(name))
}

#[cfg(test)]
mod tests;
