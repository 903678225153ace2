//! Checks the type of a file before opening it: reading a pipe may never start, and reading a device may never end.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// Opens a regular file, or a link to one, for reading.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(&std::fs::metadata(path)?)?;
    File::open(path)
}

/// Checks that metadata are of a regular file.
///
/// # Errors
/// If not, with the type of the file. The caller's metadata must have followed links.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "something else"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}
