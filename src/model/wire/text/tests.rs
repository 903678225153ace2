use super::super::{UnlockEvent, gather};
use super::*;

fn names(event: &UnlockEvent) -> Vec<&Text> {
    let parts = event.cliff_unlocks.get().expect("cliffs").allocation_breakdown.items();
    parts.iter().filter_map(|part| part.allocation_name.get()).collect()
}

#[test]
fn equal_texts_of_one_response_share_memory() {
    let json = r#"{"cliffUnlocks": {"allocationBreakdown": [{"allocationName": "Team"}, {"allocationName": "Investors"}, {"allocationName": "Team"}]}}"#;
    let (event, _) = gather(|| serde_json::from_str::<UnlockEvent>(json).expect("an event"));
    let names = names(&event);
    assert_eq!(names, ["Team", "Investors", "Team"]);
    assert!(Arc::ptr_eq(&names[0].0, &names[2].0));
    assert!(!Arc::ptr_eq(&names[0].0, &names[1].0));
}

#[test]
fn cloned_record_shares_texts() {
    let event: UnlockEvent = serde_json::from_str(r#"{"tokenName": "Arbitrum"}"#).expect("an event");
    let copy = event.clone();
    assert!(Arc::ptr_eq(&event.token_name.get().expect("a name").0, &copy.token_name.get().expect("a name").0));
}

#[test]
fn text_cache_is_cleared_after_reading() {
    sharing(|| {
        let first = shared("Team");
        sharing(|| assert!(!Arc::ptr_eq(&first.0, &shared("Team").0)));
        assert!(Arc::ptr_eq(&first.0, &shared("Team").0));
    });
    assert!(RECENT.with_borrow(Option::is_none));
    assert!(!Arc::ptr_eq(&shared("Team").0, &shared("Team").0));
}

#[test]
fn texts_with_equal_cache_slot_stay_distinct() {
    let texts: Vec<String> = (0..500).map(|number| format!("{number} of many")).collect();
    sharing(|| assert!(texts.iter().chain(&texts).all(|text| shared(text).as_str() == text)));
}
