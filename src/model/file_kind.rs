//! What a file is, before it is opened: a pipe may never begin, a device may never end.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// Opens a file to be read, where it is one, or a link to one.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(&std::fs::metadata(path)?)?;
    File::open(path)
}

/// Fails where this is no regular file, and says what it is. Links were followed by whoever asked for the metadata.
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
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, no regular file")))
}
