//! Free ports for programs that need a fixed port.

use std::net::TcpListener;

/// Returns a free port outside the ephemeral range, so that no other process gets it from the system.
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(15_000..32_000)).find(is_free).expect("a port")
}
