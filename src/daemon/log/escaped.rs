//! Standard error for JSON lines. Also escapes terminal control characters that serializers leave unescaped.

use std::io::{self, Write};

use model::text::harmless_json;

/// Standard error. The log writes one line per call.
pub(super) struct EscapedStderr;

impl Write for EscapedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(harmless_json(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
