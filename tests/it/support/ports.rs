//! Ports for programs that are told where to listen.

use std::net::TcpListener;

/// A port where nobody listens, of those that the system hands out to nobody who asks for any.
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(15_000..32_000)).find(is_free).expect("a port")
}
