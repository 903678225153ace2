//! Tests of export and import with unknown fields and hostile files.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use std::collections::BTreeMap;
use std::fs;

/// Any JSON up to the supported depth, with extreme numbers.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        prop_oneof![Just(1e300), Just(-1e-300), Just(f64::MAX), Just(1e22)].prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(Value::from("}}\u{0}\"\\{{")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Unknown fields, some of which look like known fields or sort after all others.
fn unknown_fields() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "",
            "}",
            "Burns",
            "burns ",
            "token_id",
            "TokenId",
            "tokenID",
            "Amount",
            "verdict",
            "zzz",
            "\u{10ffff}",
            "events",
            "sources",
            "é"
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,3}[0-9]".prop_map(|name| name),
    ];
    prop::collection::btree_map(name, any_json(), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn with(known: Value, unknown: &Map<String, Value>) -> Value {
    let Value::Object(mut fields) = known else { unreachable!("an object") };
    fields.extend(unknown.clone());
    fields.into()
}

/// A folder in which every kind of object has unknown fields.
fn folder(f: &[Map<String, Value>]) -> Vec<(String, Value)> {
    let day = "2026-01-05T00:00:00Z";
    let part = with(json!({"unlockDate": day, "allocationName": "Team", "cliffAmount": 5, "unlockPrecision": "day"}), &f[0]);
    let cliffs = with(json!({"cliffAmount": 5, "cliffValue": 5, "allocationBreakdown": [part]}), &f[1]);
    let burn = json!({"burnDate": day, "amount": 5, "metadata": with(json!({"burners": ["PROJECT"]}), &f[2])});
    vec![
        (
            "tokens.json".into(),
            json!([with(json!({"id": "alpha", "name": "Alpha", "symbol": "A", "lastUpdatedDate": day}), &f[3])]),
        ),
        (
            "unlock-events/alpha.json".into(),
            json!([with(json!({"unlockDate": day, "linearUnlocks": null, "cliffUnlocks": cliffs}), &f[4])]),
        ),
        (
            "allocations/alpha.json".into(),
            with(
                json!({"name": "Alpha", "allocations": [with(json!({"allocationName": "Team", "allocationAmount": 5}), &f[5])]}),
                &f[6],
            ),
        ),
        ("daily-emission/alpha.json".into(), json!([with(json!({"startDate": day, "unlockAmount": 1}), &f[7])])),
        ("burn/alpha.json".into(), with(json!({"tokenId": "alpha", "totalBurnAmount": 5, "burns": [with(burn, &f[8])]}), &f[9])),
        (
            "buyback/alpha.json".into(),
            with(json!({"tokenId": "alpha", "buybacks": [with(json!({"buybackDate": day, "tokenAmount": 5}), &f[10])]}), &f[11]),
        ),
    ]
}

/// Parses the files of a folder.
fn read(root: &Path) -> BTreeMap<String, Value> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(read(&path).into_iter().map(|(file, value)| (format!("{name}/{file}"), value)));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            files.insert(name, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display())));
        }
    }
    files
}

/// Returns whether `value` has all `fields` unchanged.
fn has(value: &Value, fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, field)| value.get(name) == Some(field))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn export_and_import_keep_unknown_fields(unknown in prop::collection::vec(unknown_fields(), 12)) {
        let given: Vec<_> = folder(&unknown)
            .into_iter()
            .map(|(path, value)| Ok(SourceFile { path, text: value.to_string() }))
            .collect();
        let space = tempfile::tempdir().unwrap();
        let first = Service::in_memory(options()).unwrap();
        first.import(given, |_| {}).unwrap();
        first.export(&space.path().join("one"), &mut |_| {}).unwrap();
        let second = Service::in_memory(options()).unwrap();
        second.import(DataFolder::open(&space.path().join("one")).unwrap(), |_| {}).unwrap();
        second.export(&space.path().join("two"), &mut |_| {}).unwrap();
        let (one, two) = (read(&space.path().join("one")), read(&space.path().join("two")));
        prop_assert_eq!(&one, &two);
        let event = &two["unlock-events/alpha.json"][0];
        let places = [
            (&event["cliffUnlocks"]["allocationBreakdown"][0], 0),
            (&event["cliffUnlocks"], 1),
            (&two["burn/alpha.json"]["burns"][0]["metadata"], 2),
            (&two["tokens.json"][0], 3),
            (event, 4),
            (&two["allocations/alpha.json"]["allocations"][0], 5),
            (&two["allocations/alpha.json"], 6),
            (&two["daily-emission/alpha.json"][0], 7),
            (&two["burn/alpha.json"]["burns"][0], 8),
            (&two["burn/alpha.json"], 9),
            (&two["buyback/alpha.json"]["buybacks"][0], 10),
            (&two["buyback/alpha.json"], 11),
        ];
        for (place, index) in places {
            prop_assert!(has(place, &unknown[index]), "{} lost some of {:?}", place, unknown[index]);
        }
    }
}

#[test]
fn field_with_deep_nesting_is_cut_and_can_be_imported() {
    let deep = (0..50).fold(json!(1), |inner, _| json!([inner]));
    let file = |burn: &Value| {
        let text = json!({"tokenId": "alpha", "burns": [], "deep": burn}).to_string();
        let tokens = r#"[{"id":"alpha","lastUpdatedDate":"2026-01-05T00:00:00Z"}]"#;
        let of = |path: &str, text: &str| Ok(SourceFile { path: path.into(), text: text.to_owned() });
        vec![of("tokens.json", tokens), of("burn/alpha.json", &text)]
    };
    let service = Service::in_memory(options()).unwrap();
    let refused = service.import(file(&deep), |_| {}).unwrap_err().to_string();
    assert!(refused.contains("deeper than 32 levels"), "{refused}");
    let (cut, _) = wire::gather(|| serde_json::from_value::<wire::BurnData>(json!({"deep": deep})).unwrap());
    service.import(file(&cut.extra["deep"]), |_| {}).unwrap();
}

#[test]
fn special_files_are_rejected_at_once_with_their_path() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let space = tempfile::tempdir().unwrap();
    let service = small(options());
    let tokens = service.token_count().unwrap();
    for (name, reason) in [
        ("endless", "it is a device"),
        ("pipe", "it is a named pipe"),
        ("socket", "it is a socket"),
        ("folder", "it is a folder"),
        ("huge", "exceed the limit of 268435456"),
        ("nowhere", "No such file"),
    ] {
        let data = space.path().join(name);
        fs::create_dir_all(data.join("burn")).unwrap();
        fs::write(data.join("tokens.json"), r#"[{"tokenId":"gamma","name":"Gamma","symbol":"G"}]"#).unwrap();
        let path = data.join("burn/gamma.json");
        match name {
            "endless" => symlink("/dev/zero", &path).unwrap(),
            "pipe" => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "socket" => drop(UnixListener::bind(&path).unwrap()),
            "folder" => fs::create_dir(&path).unwrap(),
            "huge" => fs::File::create(&path).unwrap().set_len(3 << 30).unwrap(),
            _ => symlink("/nowhere/at/all", &path).unwrap(),
        }
        let begun = Instant::now();
        let error = DataFolder::open(&data).map(drop).unwrap_err();
        let error = model::text::error_chain(&error);
        assert!(begun.elapsed() < Duration::from_secs(2), "{name} took long");
        assert!(error.contains(&path.display().to_string()) && error.contains(reason), "{name}: {error}");
    }
    // A file that changes after the first check is not read either.
    let data = space.path().join("changes");
    fs::create_dir_all(data.join("burn")).unwrap();
    fs::write(data.join("tokens.json"), r#"[{"tokenId":"gamma","name":"Gamma","symbol":"G"}]"#).unwrap();
    fs::write(data.join("burn/gamma.json"), r#"{"burns":[]}"#).unwrap();
    let opened = DataFolder::open(&data).unwrap();
    fs::remove_file(data.join("burn/gamma.json")).unwrap();
    symlink("/dev/zero", data.join("burn/gamma.json")).unwrap();
    let error = model::text::error_chain(&service.import(opened, |_| {}).unwrap_err());
    assert!(error.contains("it is a device"), "{error}");
    assert_eq!(service.token_count().unwrap(), tokens, "nothing was imported");
    // The error about invalid UTF-8 contains the position.
    fs::remove_file(data.join("burn/gamma.json")).unwrap();
    fs::write(data.join("burn/gamma.json"), b"{\n\"burns\": [\"\xff\"]}").unwrap();
    let error = model::text::error_chain(&service.import(DataFolder::open(&data).unwrap(), |_| {}).unwrap_err());
    assert!(error.contains("burn/gamma.json") && error.contains("line 2, byte 12 of it is 0xff"), "{error}");
}

#[test]
fn tokens_with_ids_that_are_not_file_names_are_not_exported() {
    let space = tempfile::tempdir().unwrap();
    let service = small(options());
    let long = "é".repeat(128);
    for id in ["../../etc/passwd", "a\u{1b}[31mb", &long] {
        let item = serde_json::from_value(json!({"id": id, "name": "Nasty", "symbol": "N"})).unwrap();
        service.edit(|edit| edit.put_token(&item)).unwrap();
    }
    let exported = service.export(&space.path().join("out"), &mut |_| {}).unwrap();
    assert_eq!((exported.tokens, exported.left_out), (2, 3));
    let again = Service::in_memory(options()).unwrap();
    again.import(DataFolder::open(&space.path().join("out")).unwrap(), |_| {}).unwrap();
    assert_eq!(again.token_count().unwrap(), 2);
}
