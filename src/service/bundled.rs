//! The bundled data: the folder `data/`, compressed into the program by the build script.

use std::io::{self, BufRead as _, BufReader, Read as _};

use flate2::bufread::GzDecoder;

use crate::SourceFile;

/// Returns the files of `data/` for [`Service::import`](crate::Service::import). See `data/README.md` for the sources.
pub fn bundled() -> impl Iterator<Item = io::Result<SourceFile>> {
    unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/data.gz")))
}

/// Returns the files of `data/revisions` with dated versions of real schedules, sorted by name.
pub fn bundled_versions() -> impl Iterator<Item = io::Result<SourceFile>> {
    unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/versions.gz")))
}

/// Unpacks one file at a time. Ends after the first error.
fn unpacked(packed: &'static [u8]) -> impl Iterator<Item = io::Result<SourceFile>> {
    let mut files = Some(BufReader::new(GzDecoder::new(packed)));
    std::iter::from_fn(move || {
        let file = next_file(files.as_mut()?).transpose();
        if !matches!(file, Some(Ok(_))) {
            files = None;
        }
        file
    })
}

/// Reads a line with path and size in bytes, and the text after it. `None` at the end.
fn next_file(files: &mut BufReader<GzDecoder<&'static [u8]>>) -> io::Result<Option<SourceFile>> {
    let mut line = String::new();
    if files.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the bundled data has a line without path and size");
    let (path, size) = line.trim_end().rsplit_once(' ').ok_or_else(invalid)?;
    let size: usize = size.parse().map_err(|_| invalid())?;
    let mut text = String::with_capacity(size);
    files.take(size as u64).read_to_string(&mut text)?;
    Ok(Some(SourceFile { path: path.to_owned(), text }))
}
