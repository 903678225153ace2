//! The template engine of a rule set: strict about names, with limited work, recursion, and output size.

use std::{io, sync::Arc};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};

use model::text::{error_chain, is_hostile, replaced};

use super::{bounds, filters};

/// The maximum length of rendered text, in bytes.
const MAX_OUTPUT: usize = 16 << 10;

/// The maximum number of engine steps of one rendering.
const FUEL: u64 = 100_000;

#[derive(Debug)]
pub struct TemplateEngine {
    pub(super) environment: Environment<'static>,
}

impl TemplateEngine {
    pub fn new() -> Arc<Self> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(50);
        environment.set_debug(true);
        environment.remove_global("debug");
        environment.set_formatter(|out, _, value| {
            if value.is_undefined() {
                return Err(Error::from(ErrorKind::UndefinedError));
            }
            out.write_str(&filters::plain(value)).map_err(Error::from)
        });
        filters::add(&mut environment);
        bounds::bound(&mut environment);
        Arc::new(Self { environment })
    }

    pub fn render(&self, source: &str, context: Value) -> Result<String, Error> {
        let template = self.environment.template_from_named_str("template", source)?;
        let mut output = CappedOutput { bytes: Vec::new() };
        template.render_captured_to(context, &mut output)?;
        let text = String::from_utf8_lossy(&output.bytes);
        Ok(text.chars().filter(|c| *c == '\n' || *c == '\t' || !is_hostile(*c)).collect())
    }

    pub fn has_filter(&self, name: &str) -> bool {
        let expression = format!("1|{name}");
        let Ok(compiled) = self.environment.compile_expression(&expression) else {
            return false;
        };
        !matches!(compiled.eval(()), Err(error) if error.kind() == ErrorKind::UnknownFilter)
    }
}

/// A writer that fails after [`MAX_OUTPUT`] bytes.
struct CappedOutput {
    bytes: Vec<u8>,
}

impl io::Write for CappedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other(format!("the text is longer than {MAX_OUTPUT} bytes")));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats an engine error on one line.
pub(super) fn describe(error: &Error) -> String {
    let mut text = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    if let Some(cause) = std::error::Error::source(error) {
        text.push_str(&format!(": {}", error_chain(cause)));
    }
    replaced(&text, ' ', 300)
}
