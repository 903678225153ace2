#![no_main]

use std::path::Path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::rule_tests(data, Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))));
