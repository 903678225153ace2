use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::{
    AllocationsData, BurnData, BuybackData, CliffAllocation, Emission, FundingRound, InvestorDetail, TokenItem, UnlockEvent,
    UpcomingItem, lenient::Lenient,
};

fn packed<T: Pack>(value: &T) -> Vec<u8> {
    let mut packer = Packer::default();
    value.pack(&mut packer);
    packer.into_bytes()
}

fn unpacked<T: Pack>(bytes: &[u8]) -> Option<T> {
    let mut unpacker = Unpacker::new(bytes);
    let value = T::unpack(&mut unpacker)?;
    unpacker.is_done().then_some(value)
}

/// An event with everything that a pack must distinguish: null and absent fields, unknown fields, and all forms of numbers and times.
fn event() -> Value {
    json!({
        "unlockDate": "2026-03-16T13:00:00Z", "tokenName": "Arbitrum", "tokenSymbol": "ARB", "linearUnlocks": null,
        "dataSource": "https://docs.example.org/token", "latestUpdateDate": "2026-03-01T10:00:00.123456789Z",
        "cliffUnlocks": {"cliffAmount": 92_645_833.333_333, "cliffValue": 27_625_413.63, "valueToMarketCap": 0.1 + 0.2,
            "allocationBreakdown": [
                {"unlockDate": "2026-03-16T13:00:00Z", "allocationName": "Team", "cliffAmount": 92_645_833.333_333,
                 "referencePrice": 2.0, "committedClaim": {"amount": 0.0, "timestamp": -5}, "somethingNew": {"deep": [1, null]}},
                {"unlockDate": "2026-03-16T13:00:00Z", "allocationName": "Team", "cliffAmount": 1e29, "unlockPrecision": "month"},
            ]},
        "unknown": 1.5,
    })
}

#[test]
fn packed_record_round_trips() {
    let events: Vec<UnlockEvent> = serde_json::from_value(json!([event(), event(), {}, {"cliffUnlocks": {}}])).unwrap();
    assert_eq!(unpacked::<Vec<UnlockEvent>>(&packed(&events)), Some(events));
    let days: Vec<Emission> =
        serde_json::from_value(json!([{"startDate": "2026-03-16"}, {"unlockByAllocation": ["Team"]}])).unwrap();
    assert_eq!(unpacked::<Vec<Emission>>(&packed(&days)), Some(days));
    let item: TokenItem =
        serde_json::from_value(json!({"id": "arb", "hasBurn": true, "hasBuyback": null, "x": "\u{202e}"})).unwrap();
    assert_eq!(unpacked::<TokenItem>(&packed(&item)), Some(item));
}

#[test]
fn bundled_schedules_pack_to_a_tenth_of_json() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/unlock-events");
    let (mut texts, mut packs) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let events: Vec<UnlockEvent> = serde_json::from_str(&text).unwrap();
        let bytes = packed(&events);
        texts += serde_json::to_string(&events).unwrap().len();
        packs += bytes.len();
        assert_eq!(unpacked::<Vec<UnlockEvent>>(&bytes), Some(events));
    }
    println!("{texts} bytes of JSON are {packs} packed");
    assert!(packs * 10 < texts, "{texts} bytes of JSON are {packs} packed");
}

/// Databases contain these bytes. If this test fails, a field was moved or renamed, or the format changed: packs that were written before
/// must stay readable.
#[test]
fn reads_pack_of_earlier_version() {
    let event: UnlockEvent = serde_json::from_value(event()).unwrap();
    let hex: String = packed(&event).iter().map(|byte| format!("{byte:02x}")).collect();
    insta::assert_snapshot!(hex);
}

#[test]
fn reads_field_that_was_unknown_when_packed() {
    let mut part = CliffAllocation::default();
    part.extra.insert("cliffAmount".into(), json!(12.5));
    part.extra.insert("other".into(), json!("kept"));
    let read: CliffAllocation = unpacked(&packed(&part)).unwrap();
    assert_eq!((read.cliff_amount, read.extra.len()), (12.5.into(), 1));
}

#[test]
fn rejects_pack_with_unknown_field() {
    let part = CliffAllocation { cliff_amount: 1.0.into(), ..CliffAllocation::default() };
    let mut bytes = packed(&part);
    // Replace the field's name by another one.
    bytes[2] = u8::try_from(FIELD_NAMES.iter().position(|name| *name == "linearAmount").unwrap() + 1).unwrap();
    assert_eq!(unpacked::<CliffAllocation>(&bytes), None);
}

#[test]
fn schedule_fields_have_one_byte_names() {
    use crate::wire::{CliffUnlocks, CommittedClaim, LinearAllocation, LinearUnlocks};
    let all = [
        UnlockEvent::FIELDS,
        CliffUnlocks::FIELDS,
        CliffAllocation::FIELDS,
        LinearUnlocks::FIELDS,
        LinearAllocation::FIELDS,
        CommittedClaim::FIELDS,
    ];
    let missing: Vec<_> = all.into_iter().flatten().filter(|name| !FIELD_NAMES.contains(name)).collect();
    assert!(missing.is_empty(), "append {missing:?} to the names");
}

/// Random JSON: known and unknown fields, twice in one object too, of valid and invalid types.
struct RandomJson(u64);

impl RandomJson {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn text(&mut self) -> &'static str {
        self.pick(&[
            "",
            "Team",
            "Team ",
            "2026-03-16T13:00:00Z",
            "2026-03-16T13:00:00.123456789Z",
            "1969-12-31T23:59:59Z",
            "2016-12-31T23:59:60Z",
            "9999-12-31",
            "0.30000000000000004",
            "NaN",
            "-5",
            "a\\u0000b",
            "\u{202e}\u{200b}",
            "😀é\u{10ffff}",
            "\\\"\\\\\\n",
            "to be determined",
        ])
    }

    fn number(&mut self) -> &'static str {
        self.pick(&[
            "0",
            "-0.0",
            "1",
            "0.1",
            "0.30000000000000004",
            "1e308",
            "5e-324",
            "2.2250738585072014e-308",
            "1e30",
            "18446744073709551615",
            "-9223372036854775808",
            "123456789012345678901234567890",
            "562949953421312",
            "562949953421311.99",
            "27625413.63",
            "1e-7",
            "9007199254740993",
        ])
    }

    fn value(&mut self, fields: &[&str], depth: usize) -> String {
        match self.below(if depth == 0 { 5 } else { 12 }) {
            0 => "null".to_owned(),
            1 => self.pick(&["true", "false"]).to_owned(),
            2 | 3 => self.number().to_owned(),
            4 => format!("\"{}\"", self.text()),
            5..=7 => {
                let items: Vec<String> = (0..self.below(4)).map(|_| self.value(fields, depth - 1)).collect();
                format!("[{}]", items.join(","))
            }
            _ => self.object(fields, depth - 1),
        }
    }

    fn object(&mut self, fields: &[&str], depth: usize) -> String {
        let field = |this: &mut Self| {
            let name = match this.below(6) {
                0 => this.text().to_owned(),
                1 => "somethingNew".to_owned(),
                _ => this.pick(fields).to_owned(),
            };
            format!("\"{name}\":{}", this.value(fields, depth))
        };
        let all: Vec<String> = (0..self.below(9)).map(|_| field(self)).collect();
        format!("{{{}}}", all.join(","))
    }
}

/// Packs a list of records that were read from random JSON, and compares bit for bit: JSON shows the sign of zero, too.
fn round_trips<T: Lenient + Pack + Clone + PartialEq + serde::Serialize + std::fmt::Debug>(seed: u64) {
    let fields: Vec<&str> =
        FIELD_NAMES.iter().copied().chain(["id", "name", "hasBurn", "data", "investors", "unlockByAllocation"]).collect();
    let mut random = RandomJson(seed);
    random.below(2);
    let texts: Vec<String> = (0..random.below(12)).map(|_| random.object(&fields, 3)).collect();
    let read = |text: &String| serde_json::from_str::<Maybe<T>>(text).ok().and_then(Maybe::into_option);
    let records: Vec<T> = texts.iter().filter_map(read).collect();
    let unpacked: Vec<T> = unpacked(&packed(&records)).unwrap_or_else(|| panic!("seed {seed} is unreadable: {texts:?}"));
    assert_eq!(unpacked, records, "seed {seed}");
    assert_eq!(serde_json::to_string(&unpacked).unwrap(), serde_json::to_string(&records).unwrap(), "seed {seed}");
}

#[test]
fn records_of_every_kind_round_trip() {
    for seed in 0..40 {
        round_trips::<UnlockEvent>(seed);
        round_trips::<UpcomingItem>(seed);
        round_trips::<Emission>(seed);
        round_trips::<TokenItem>(seed);
        round_trips::<BurnData>(seed);
        round_trips::<BuybackData>(seed);
        round_trips::<AllocationsData>(seed);
        round_trips::<FundingRound>(seed);
        round_trips::<InvestorDetail>(seed);
    }
}

#[test]
fn every_cut_of_a_pack_is_rejected() {
    let events: Vec<UnlockEvent> = serde_json::from_value(json!([event(), event(), {}])).unwrap();
    let bytes = packed(&events);
    for end in 0..bytes.len() {
        assert_eq!(unpacked::<Vec<UnlockEvent>>(&bytes[..end]), None, "cut off after {end} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_number_time_and_text_round_trips(
        numbers in prop::collection::vec(prop_oneof![any::<f64>(), (0_u64..1 << 52).prop_map(|n| n as f64 / 100.0), Just(-0.0)], 0..400),
        seconds in prop::collection::vec((-60_000_000_000_i64..60_000_000_000, prop_oneof![Just(0_u32), 0_u32..1_999_999_999]), 0..400),
        texts in prop::collection::vec(".{0,20}|[ab]{0,3}", 0..600),
    ) {
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(unpacked::<Vec<f64>>(&packed(&numbers)).map(|read| bits(&read)), Some(bits(&numbers)));
        let times: Vec<Timestamp> = seconds.into_iter().filter_map(|(at, nanos)| DateTime::from_timestamp(at, nanos)).collect();
        prop_assert_eq!(unpacked::<Vec<Timestamp>>(&packed(&times)), Some(times));
        prop_assert_eq!(unpacked::<Vec<String>>(&packed(&texts)), Some(texts));
    }

    #[test]
    fn damaged_bytes_never_panic(at in 0_usize..600, to in any::<u8>(), cut in 0_usize..600) {
        let events: Vec<UnlockEvent> = serde_json::from_value(json!([event(), event()])).unwrap();
        let mut bytes = packed(&events);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        let _ = unpacked::<Vec<UnlockEvent>>(&bytes);
        bytes.truncate(cut);
        let _ = unpacked::<Vec<UnlockEvent>>(&bytes);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = unpacked::<Vec<UnlockEvent>>(&bytes);
    }
}

#[test]
fn field_with_a_reserved_name_does_not_make_a_record_unreadable() {
    for value in [r#""draft""#, r#""[1]""#, "7"] {
        let reserved = r#"{"$serde_json::private::RawValue": "#.to_owned() + value + "}";
        for text in [format!(r#"{{"note": {reserved}}}"#), format!(r#"{{"note": [{{"deep": {reserved}}}]}}"#), reserved] {
            let event: UnlockEvent = serde_json::from_str(&text).expect("parsed");
            assert_eq!(unpacked::<UnlockEvent>(&packed(&event)), Some(event.clone()), "{text}");
            let written = serde_json::to_string(&event).expect("written");
            assert_eq!(serde_json::from_str::<UnlockEvent>(&written).expect("read again"), event, "{text}");
        }
    }
}
