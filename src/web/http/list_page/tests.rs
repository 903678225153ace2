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
    let page = ListPage::from_all((1..=5).collect(), 2, 2);
    assert_eq!((page.rows, page.total, page.next.as_deref()), (vec![3, 4], 5, Some("4")));
    let page = ListPage::from_all((1..=5).collect(), 4, u32::MAX);
    assert_eq!((page.rows, page.next), (vec![5], None));
    let page: ListPage<u32> = ListPage::from_all(Vec::new(), usize::MAX, 2);
    assert_eq!((page.rows, page.total, page.next), (vec![], 0, None));
}

#[test]
fn next_link_keeps_the_filters() {
    let uri: Uri = "/api/v1/alerts?rule=Big%20Cliff&after=old&paged=true".parse().expect("a URL");
    assert_eq!(url_of_page(&uri, "1.al_2"), "/api/v1/alerts?rule=Big+Cliff&paged=true&after=1.al_2");
    assert_eq!(url_of_page(&"/api/v1/outbox".parse().expect("a URL"), "7"), "/api/v1/outbox?after=7");
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
