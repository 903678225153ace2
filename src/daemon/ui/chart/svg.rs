//! Elements of SVG as text. Numbers are rounded to tenths; what is shown is made harmless and escaped.

use std::fmt::Write as _;

use model::text::harmless;

/// A drawing under way.
#[derive(Debug)]
pub struct Svg {
    out: String,
}

/// Where a text begins, relative to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty drawing of that size; `label` says what it shows to those who do not see it, `class` which screens it is for.
    pub fn new(width: f64, height: f64, class: &str, label: &str) -> Self {
        let mut out = String::with_capacity(16 * 1024);
        let _ = write!(
            out,
            "<svg class=\"chart {class}\" viewBox=\"0 0 {} {}\" role=\"group\" aria-label=\"{}\">",
            number(width),
            number(height),
            escaped(label)
        );
        Self { out }
    }

    /// A drawing that is stretched to wherever it stands: a bar.
    pub fn stretched(width: f64, height: f64, class: &str, label: &str) -> Self {
        let mut out = String::with_capacity(512);
        let (width, height, label) = (number(width), number(height), escaped(label));
        let _ = write!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\">"
        );
        Self { out }
    }

    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, round: f64) {
        let (x, y, width, height) = (number(x), number(y), number(width.max(0.0)), number(height.max(0.0)));
        let round = if round > 0.0 { format!(" rx=\"{}\"", number(round)) } else { String::new() };
        let _ = write!(self.out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{round}/>");
    }

    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (number(x1), number(y1), number(x2), number(y2));
        let _ = write!(self.out, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    pub fn circle(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        let _ =
            write!(self.out, "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", number(x), number(y), number(radius));
    }

    /// A path; `d` is made of numbers alone.
    pub fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(self.out, "<text{class} x=\"{}\" y=\"{}\"{anchor}>{}</text>", number(x), number(y), escaped(text));
    }

    /// What `inside` draws, as one mark that says `title` where one points at it, and leads to `href` where there is one. It is no stop
    /// of the keyboard: the list beside the drawing has the same links.
    pub fn mark(&mut self, href: Option<&str>, title: &str, inside: impl FnOnce(&mut Self)) {
        match href {
            Some(href) => {
                let _ = write!(self.out, "<a href=\"{}\" tabindex=\"-1\">", escaped(href));
            }
            None => self.out.push_str("<g>"),
        }
        let _ = write!(self.out, "<title>{}</title>", escaped(title));
        inside(self);
        self.out.push_str(if href.is_some() { "</a>" } else { "</g>" });
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// A number of a drawing: tenths, without a needless end; zero where it is not finite.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{:.1}", value.clamp(-1e6, 1e6));
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A text for an element or an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#x27;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
