use super::*;
use crate::vocabulary::Vocabulary;

#[test]
fn contains_every_name_of_conditions() {
    for on in On::all() {
        let entries = reference(Some(on));
        for name in Vocabulary::of(on).all() {
            if name.starts_with("old.") || name.starts_with("new.") {
                continue;
            }
            let entry = entries.iter().find(|entry| entry.name == name);
            let entry = entry.unwrap_or_else(|| panic!("{name} is missing where a rule listens to {on}"));
            assert!(!entry.about.is_empty() && !entry.unit.is_empty(), "{name}");
        }
    }
}

#[test]
fn every_field_has_an_example() {
    for entry in reference(None) {
        let has_none = entry.example.is_empty();
        assert!(!has_none, "{} of {} has no example: give the made-up record a value", entry.name, entry.known_by);
    }
}

#[test]
fn every_sample_use_is_valid() {
    for entry in reference(None) {
        let on = match entry.kind {
            ReferenceKind::Window => match entry.known_by {
                KnownBy::Token => On::Token,
                KnownBy::Resource(resource) => On::Change(resource, None),
                _ => On::Portfolio,
            },
            ReferenceKind::Function => On::Change(Resource::Unlock, None),
            _ => continue,
        };
        let (text, compare) = (entry.example.as_str(), |rest: &str| format!("{}{rest}", entry.example));
        let amount_of_group = text.contains(".amount");
        let tried = [text.to_owned(), compare(" > 0"), compare(" > timestamp(\"2026-01-01\")"), compare(" < duration(\"2d\")")];
        let is_right = tried.iter().any(|text| crate::condition::Condition::compile(text, on).0.is_some());
        assert!(is_right || amount_of_group, "{text}");
    }
}

#[test]
fn filters_names_by_target() {
    let names = |on| reference(Some(on)).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    let burns = names(On::Record(Resource::Burn));
    assert!(burns.contains(&"burnType".to_owned()) && burns.contains(&"token.symbol".to_owned()));
    assert!(!burns.contains(&"cliffAmount".to_owned()) && !burns.contains(&"change.kind".to_owned()));
    assert!(names(On::Portfolio).contains(&"ahead".to_owned()) && !names(On::Source).contains(&"ahead".to_owned()));
}
