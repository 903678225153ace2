//! The binary: everything is in the rooms, so that tests enter by the same door.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Two TLS providers in one program panic, and so does none: this is the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cliffwatch::cli::main()
}
