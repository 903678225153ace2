use super::*;

fn listed(count: u32, total: u64) -> Listed<u32> {
    Listed { rows: (1..=count).collect(), total, is_cut: false }
}

#[test]
fn page_has_cursor_only_if_another_page_follows() {
    let page = ListPage::of(listed(3, 9), 2, |row| format!("row {row}"));
    assert_eq!((page.rows, page.total, page.next.as_deref()), (vec![1, 2], 9, Some("row 2")));
    let page = ListPage::of(listed(2, 2), 2, |row| format!("row {row}"));
    assert_eq!((page.rows, page.next), (vec![1, 2], None));
}

#[test]
fn next_link_keeps_the_filters() {
    let uri: Uri = "/api/v1/alerts?rule=Big%20Cliff&after=old&paged=true".parse().expect("a URL");
    assert_eq!(url_of_page(&uri, AFTER, "1.al_2"), "/api/v1/alerts?rule=Big+Cliff&paged=true&after=1.al_2");
    assert_eq!(url_of_page(&"/api/v1/outbox?after=9".parse().expect("a URL"), BEFORE, "7"), "/api/v1/outbox?before=7");
}

#[test]
fn headers_contain_total_and_next_link() {
    let uri: Uri = "/api/v1/alerts".parse().expect("a URL");
    let response = ListPage::of(listed(3, 9), 2, u32::to_string).response(&ListQuery::default(), &uri);
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("cliffwatch-has-more"), Some("true"));
    assert_eq!(header("cliffwatch-total"), Some("9"));
    assert_eq!(header("link"), Some("</api/v1/alerts?after=2>; rel=\"next\""));
}

#[test]
fn page_before_a_position_has_the_nearest_rows_and_can_be_continued_in_both_directions() {
    let of = |rows: &[i64], position: ListPosition| {
        let listed = Listed { rows: rows.to_vec(), total: 9, is_cut: false };
        ListPage::of_numbered(listed, 2, position, |row| *row)
    };
    let links = |page: ListPage<i64>| (page.rows, page.previous, page.next);
    let text = |number: i64| Some(number.to_string());
    assert_eq!(links(of(&[9, 8, 7], ListPosition::default())), (vec![9, 8], text(9), text(8)));
    assert_eq!(links(of(&[2, 1], ListPosition::after(3))), (vec![2, 1], text(2), None));
    assert_eq!(links(of(&[6, 5, 4], ListPosition::before(3))), (vec![5, 4], text(5), text(4)));
    assert_eq!(links(of(&[4], ListPosition::before(3))), (vec![4], text(4), text(4)));
    assert_eq!(links(of(&[], ListPosition::before(9))), (vec![], text(9), None), "a client asks again later");
    assert_eq!(links(of(&[], ListPosition::default())), (vec![], None, None));
}
