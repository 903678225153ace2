use std::io::Read as _;

use proptest::prelude::*;

use super::*;

fn unpacked(parts: &[Bytes]) -> Vec<u8> {
    let packed = parts.concat();
    let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
    let mut whole = Vec::new();
    decoder.read_to_end(&mut whole).unwrap();
    assert!(decoder.into_inner().is_empty(), "one member, and nothing after it");
    whole
}

proptest! {
    #[test]
    fn head_and_tail_are_one_gzip_member(head in prop::collection::vec(any::<u8>(), 0..300), tail in prop::collection::vec(any::<u8>(), 0..5_000)) {
        let packed = Packed::of(&tail).unwrap();
        prop_assert_eq!(unpacked(&packed.body(&head)), [head, tail].concat());
    }
}

#[test]
fn head_can_exceed_one_block() {
    let head = vec![b'x'; 70_000];
    assert_eq!(unpacked(&Packed::of(b"tail").unwrap().body(&head)), [head.as_slice(), b"tail"].concat());
}

#[test]
fn accept_encoding_is_parsed() {
    let check = |values: &[&str], expected: bool| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT_ENCODING, value.parse().unwrap());
        }
        assert_eq!(accepts_gzip(&headers), expected, "{values:?}");
    };
    check(&[], false);
    check(&["gzip"], true);
    check(&["br, GZIP;q=0.5"], true);
    check(&["br", "gzip"], true);
    check(&["gzip;q=0"], false);
    check(&["gzip; q=0.000, *"], false);
    check(&["*"], true);
    check(&["*;q=0"], false);
    check(&["identity, deflate, br"], false);
    check(&["gzip;q=much"], false);
}
