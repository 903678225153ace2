//! Compressed bodies. The end of a body, which all responses to a query share, is compressed once. Its beginning, which differs each
//! time, is stored uncompressed before it. Both form one valid gzip member.

use std::io::Write as _;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use flate2::{Compression, Crc, write::DeflateEncoder};

/// The size in bytes from which bodies are compressed. Below it, compression would save less than a network packet.
pub const MIN_PACKED: usize = 1024;
/// The maximum number of values of `Accept-Encoding` to parse.
const MAX_CODINGS: usize = 32;
/// Magic number, deflate, no flags, no time, no hint, unknown system (RFC 1952).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The compressed end of a body.
#[derive(Debug)]
pub struct Packed {
    deflated: Bytes,
    crc: Crc,
}

impl Packed {
    /// Compresses the end of a body.
    pub fn of(tail: &[u8]) -> std::io::Result<Self> {
        let mut crc = Crc::new();
        crc.update(tail);
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(tail.len() / 4), Compression::default());
        encoder.write_all(tail)?;
        let mut deflated = encoder.finish()?;
        deflated.shrink_to_fit();
        Ok(Self { deflated: deflated.into(), crc })
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.deflated.len()
    }

    /// Returns the complete compressed body that begins with `head`.
    pub fn body(&self, head: &[u8]) -> [Bytes; 3] {
        let mut begin = Vec::with_capacity(GZIP_HEADER.len() + head.len() + 16);
        begin.extend_from_slice(&GZIP_HEADER);
        // Stored blocks (RFC 1951, 3.2.4) without the flag of the last block. They end at a byte boundary, where the deflated end begins.
        for block in head.chunks(usize::from(u16::MAX)) {
            let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
            begin.push(0);
            begin.extend_from_slice(&length.to_le_bytes());
            begin.extend_from_slice(&(!length).to_le_bytes());
            begin.extend_from_slice(block);
        }
        let mut crc = Crc::new();
        crc.update(head);
        crc.combine(&self.crc);
        let mut end = Vec::with_capacity(8);
        end.extend_from_slice(&crc.sum().to_le_bytes());
        end.extend_from_slice(&crc.amount().to_le_bytes());
        [begin.into(), self.deflated.clone(), end.into()]
    }
}

/// Returns whether the client accepts gzip (RFC 9110, 12.5.3): `gzip` or `*` is listed without a weight of zero.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut any = false;
    for coding in headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(MAX_CODINGS)
    {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = parameters.trim().strip_prefix("q=").or_else(|| parameters.trim().strip_prefix("Q="));
        let is_wanted = weight.is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0));
        match name.trim() {
            "*" => any = is_wanted,
            name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => return is_wanted,
            _ => {}
        }
    }
    any
}

#[cfg(test)]
mod tests;
