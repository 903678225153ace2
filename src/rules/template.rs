//! Templates of labels and annotations: minijinja with the same names as conditions.
//!
//! At load, a template is rendered twice: with a record that has every field, and with one that has none. Unknown names are
//! errors. At run time, a missing field is `none` and renders as "unknown". Work, recursion, and output size are limited. Source
//! text is not escaped here, but by the sender.

mod bounds;
mod check;
mod context;
mod engine;
mod filters;
mod sample;
mod tags;
mod words;

use std::sync::Arc;

use minijinja::Value;

use crate::aggregate::Window;

pub use check::extra_names;
pub use context::context;
pub use engine::TemplateEngine;
use engine::describe;
pub use filters::EXAMPLES as FILTER_EXAMPLES;
pub use sample::SampleScope;
pub use words::Words;

/// The maximum length of a label value, in characters.
const MAX_LABEL: usize = 512;

#[derive(Clone, Debug)]
pub struct Template {
    engine: Arc<TemplateEngine>,
    source: Arc<str>,
    /// The source with added size checks. This is the text that is rendered.
    guarded: Arc<str>,
    /// The names that the template can read.
    pub words: Words,
    /// The windows that the template reads. They are known at load, so that their sums are computed before rendering.
    pub windows: Vec<Window>,
    /// Whether the template reads the daily release of a token or group, or the age of its price.
    pub has_supply: bool,
    /// Whether the template reads the change of the daily release at an unlock.
    pub has_rate_steps: bool,
}

impl Template {
    /// Returns the text if it is the same for every record.
    pub fn constant(&self) -> Option<&str> {
        let is_plain = !["{{", "{%", "{#"].iter().any(|open| self.source.contains(open));
        is_plain.then_some(&*self.source)
    }

    pub fn annotation(&self, context: &Value) -> Result<String, String> {
        self.engine.render(&self.guarded, context.clone()).map_err(|error| describe(&error))
    }

    /// Renders the template as a label, on one line.
    pub fn label(&self, context: &Value) -> Result<String, String> {
        let text = self.annotation(context)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LABEL).collect())
    }
}
