//! The static files of pages: stylesheets, scripts, and an icon, all embedded in the binary. `assets/uplot` has the library that draws
//! interactive charts, with its license, which is also sent to browsers.
//!
//! Each file name contains a hash of the bytes, so that browsers can cache the file indefinitely.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

#[derive(Debug)]
pub struct Asset {
    /// The path with the hash: `/assets/style.0123456789abcdef.css`.
    pub href: String,
    pub content_type: &'static str,
    pub text: &'static str,
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, text: &'static str) -> Self {
        Self { href: format!("/assets/{stem}.{:016x}.{extension}", xxh3_64(text.as_bytes())), content_type, text }
    }
}

pub static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    // The colors of the dark scheme apply if the system prefers it, unless the reader chose the light one, and if the reader chose it.
    let text = concat!(
        include_str!("assets/style.css"),
        "@media screen {\n@media (prefers-color-scheme: dark) {\n:root:not([data-scheme=light]) {\n",
        include_str!("assets/dark.css"),
        "}\n}\n:root[data-scheme=dark] {\n",
        include_str!("assets/dark.css"),
        "}\n}\n",
    );
    Asset::new("style", "css", "text/css; charset=utf-8", text)
});

/// The script that applies the reader's color scheme before a page is drawn, and the reader's time zone.
pub static DISPLAY: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("display", "js", "text/javascript; charset=utf-8", include_str!("assets/display.js")));

pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("live", "js", "text/javascript; charset=utf-8", include_str!("assets/live.js")));

/// The script of pages with interactive charts.
pub static CHART: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("chart", "js", "text/javascript; charset=utf-8", include_str!("assets/chart.js")));

pub static UPLOT: LazyLock<Asset> = LazyLock::new(|| {
    let text = concat!("/*!\n", include_str!("assets/uplot/LICENSE"), "\n*/\n", include_str!("assets/uplot/uplot.min.js"));
    Asset::new("uplot", "js", "text/javascript; charset=utf-8", text)
});

pub static UPLOT_STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = concat!("/*!\n", include_str!("assets/uplot/LICENSE"), "\n*/\n", include_str!("assets/uplot/uplot.min.css"));
    Asset::new("uplot", "css", "text/css; charset=utf-8", text)
});

pub static ICON: LazyLock<Asset> = LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

/// Returns the asset with this file name, such as `style.0123456789abcdef.css`. `None` if the name or the hash does not match.
pub fn find(name: &str) -> Option<&'static Asset> {
    let all: [&'static LazyLock<Asset>; 7] = [&STYLE, &DISPLAY, &SCRIPT, &CHART, &UPLOT, &UPLOT_STYLE, &ICON];
    all.into_iter().map(|asset| &**asset).find(|asset| asset.href.strip_prefix("/assets/") == Some(name))
}

#[cfg(test)]
mod tests;
