//! Writes SVG elements. Numbers are rounded to tenths, and text is sanitized and escaped.

use std::fmt::Write as _;

use model::text::harmless;

/// A writer of one drawing.
#[derive(Debug)]
pub struct Svg {
    out: String,
}

/// The alignment of a text relative to its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Starts a chart with the coordinates 0 to `width` and 0 to `height`, and the CSS classes `chart` and `class`. `label` is its
    /// accessible name. Its role is `group`, so that screen readers reach the links inside.
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

    /// Starts a small drawing whose label says everything, with the CSS class `class`.
    pub fn picture(width: f64, height: f64, class: &str, label: &str) -> Self {
        let mut out = String::with_capacity(4 * 1024);
        let (width, height, label) = (number(width), number(height), escaped(label));
        let _ = write!(out, "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">");
        Self { out }
    }

    /// Starts a drawing without text that is stretched to the size of its container.
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

    /// Writes a circle. `index` becomes the attribute `data-i` for scripts.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, index: Option<usize>) {
        let (x, y, radius) = (number(x), number(y), number(radius));
        let index = index.map(|index| format!(" data-i=\"{index}\"")).unwrap_or_default();
        let _ = write!(self.out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{index}/>");
    }

    /// Writes a path. `d` is not escaped.
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

    /// Writes a group with a tooltip and an optional link.
    pub fn marked_group(&mut self, href: Option<&str>, title: &str, inside: impl FnOnce(&mut Self)) {
        let (name, attributes) = match href {
            Some(href) => ("a", &[("href", href)][..]),
            None => ("g", &[][..]),
        };
        self.group(name, attributes, |svg| {
            let _ = write!(svg.out, "<title>{}</title>", escaped(title));
            inside(svg);
        });
    }

    /// Writes a group that takes keyboard focus, with a tooltip that is also its accessible name.
    pub fn focusable_group(&mut self, class: &str, title: &str, inside: impl FnOnce(&mut Self)) {
        self.group("g", &[("class", class), ("tabindex", "0"), ("role", "img"), ("aria-label", title)], |svg| {
            let _ = write!(svg.out, "<title>{}</title>", escaped(title));
            inside(svg);
        });
    }

    /// Writes an element with these attributes around the elements that `inside` writes.
    pub fn group(&mut self, name: &str, attributes: &[(&str, &str)], inside: impl FnOnce(&mut Self)) {
        let _ = write!(self.out, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.out, " {attribute}=\"{}\"", escaped(value));
        }
        self.out.push('>');
        inside(self);
        let _ = write!(self.out, "</{name}>");
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// Formats a coordinate in tenths. Zero if it is not finite.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{:.1}", value.clamp(-1e6, 1e6));
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Cuts a label to `max_chars`. The last character of a cut label is an ellipsis.
pub fn shortened(label: &str, max_chars: usize) -> String {
    match label.chars().count() {
        length if length > max_chars => label.chars().take(max_chars - 1).chain(['…']).collect(),
        _ => label.to_owned(),
    }
}

/// Sanitizes and escapes a text for an element or an attribute.
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
