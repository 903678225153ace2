use super::*;

fn listed(count: u32, total: u64) -> Listed<u32> {
    Listed { rows: (1..=count).collect(), total }
}

#[test]
fn a_part_names_the_place_after_it_only_where_there_is_more() {
    let part = ListPart::of(listed(3, 9), 2, |row| format!("row {row}"));
    assert_eq!((part.rows, part.total, part.next.as_deref()), (vec![1, 2], 9, Some("row 2")));
    let part = ListPart::of(listed(2, 2), 2, |row| format!("row {row}"));
    assert_eq!((part.rows, part.next), (vec![1, 2], None));
    let part = ListPart::from_whole((1..=5).collect(), 2, 2);
    assert_eq!((part.rows, part.total, part.next.as_deref()), (vec![3, 4], 5, Some("4")));
    let part = ListPart::from_whole((1..=5).collect(), 4, u32::MAX);
    assert_eq!((part.rows, part.next), (vec![5], None));
    let part: ListPart<u32> = ListPart::from_whole(Vec::new(), usize::MAX, 2);
    assert_eq!((part.rows, part.total, part.next), (vec![], 0, None));
}

#[test]
fn the_next_part_keeps_the_filters() {
    let uri: Uri = "/api/alerts?rule=Big%20Cliff&after=old&paged=true".parse().expect("an address");
    assert_eq!(address_after(&uri, "1.al_2"), "/api/alerts?rule=Big+Cliff&paged=true&after=1.al_2");
    assert_eq!(address_after(&"/api/outbox".parse().expect("an address"), "7"), "/api/outbox?after=7");
}

#[test]
fn bare_items_stay_bare() {
    let uri: Uri = "/api/alerts".parse().expect("an address");
    let answer = ListPart::of(listed(3, 9), 2, u32::to_string).answer(&ListQuery::default(), &uri);
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("cliffwatch-has-more"), Some("true"));
    assert_eq!(header("cliffwatch-total"), Some("9"));
    assert_eq!(header("link"), Some("</api/alerts?after=2>; rel=\"next\""));
}
