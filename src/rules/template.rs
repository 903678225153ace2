//! Templates of labels and annotations: minijinja over the same words that conditions know.
//!
//! A template is tried twice at load, with a record that has every field and with one that has none. A name that nothing has is an
//! error there; at run time a missing field is none and reads "unknown". Work, recursion and output are bounded. Text of the source
//! stays plain text here: it is escaped where it is delivered.

mod bounds;
mod check;
mod context;
mod engine;
mod filters;
mod sample;
mod tags;

use std::sync::Arc;

use minijinja::Value;

use crate::aggregate::Window;

pub use check::extra_names;
pub use context::context;
pub use engine::TemplateEngine;
use engine::describe;
pub use filters::EXAMPLES as FILTER_EXAMPLES;
pub use sample::SampleScope;

/// Longest value of a label, characters.
const MAX_LABEL: usize = 512;

/// A template that has been checked, by its name in the engine.
#[derive(Clone, Debug)]
pub struct Template {
    engine: Arc<TemplateEngine>,
    source: Arc<str>,
    /// The same within bounds, as it is rendered.
    guarded: Arc<str>,
    /// Windows that it asks for: known at load, so that they are worked out before it is rendered.
    pub windows: Vec<Window>,
}

impl Template {
    /// Its text where it is the same for every record.
    pub fn constant(&self) -> Option<&str> {
        let is_plain = !["{{", "{%", "{#"].iter().any(|open| self.source.contains(open));
        is_plain.then_some(&*self.source)
    }

    pub fn annotation(&self, context: &Value) -> Result<String, String> {
        self.engine.render(&self.guarded, context.clone()).map_err(|error| describe(&error))
    }

    /// Renders a label: one line.
    pub fn label(&self, context: &Value) -> Result<String, String> {
        let text = self.annotation(context)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LABEL).collect())
    }
}
