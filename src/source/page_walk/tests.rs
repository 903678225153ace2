use super::*;
use crate::envelope;

fn page(metadata: &str, data: &str) -> AnswerPage {
    let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
    envelope::read(body.into_bytes(), None, data.starts_with('[')).expect("an envelope")
}

fn numbered(number: u32, pages: u32, total: u32, data: &str) -> AnswerPage {
    page(&format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#), data)
}

fn walk(pages: Vec<AnswerPage>) -> (WalkStep, PageWalk) {
    walk_knowing(None, pages)
}

fn walk_knowing(known: Option<ContentHash>, pages: Vec<AnswerPage>) -> (WalkStep, PageWalk) {
    let mut walk = PageWalk::new(true, Some(2), 1 << 20, known);
    let mut last = WalkStep::Next(1);
    for page in pages {
        last = walk.take(page);
        if !matches!(last, WalkStep::Next(_)) {
            break;
        }
    }
    (last, walk)
}

#[test]
fn a_walk_ends_where_the_server_says() {
    let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]);
    assert_eq!((step, walk.rows), (WalkStep::Whole, 3));
}

#[test]
fn an_empty_list_is_whole_with_or_without_pages() {
    assert_eq!(walk(vec![numbered(1, 0, 0, "[]")]).0, WalkStep::Whole);
    assert_eq!(walk(vec![page("", "[]")]).0, WalkStep::Whole);
}

#[test]
fn pages_that_do_not_fit_are_no_answer() {
    let shifted = |pages| matches!(walk(pages).0, WalkStep::Shifted(_));
    assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 4, "[3,4]")]), "the total changed");
    assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 3, 3, "[3]")]), "the pages changed");
    assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), page("", "[3]")]), "the totals vanished");
    assert!(shifted(vec![numbered(1, 2, 3, "[1,2]"), numbered(1, 2, 3, "[1,2]")]), "the same page again");
    assert!(shifted(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[2,4]")]), "a row in the place of another");
    assert!(shifted(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[3]")]), "a row short");
    assert!(shifted(vec![numbered(1, 1, 4, "[1,2]")]), "a page short");
    assert!(shifted(vec![numbered(1, 3, 5, "[1,2]"), numbered(2, 3, 5, "[]")]), "an empty page between");
    assert!(shifted(vec![numbered(1, 1, 0, "[1]")]), "more than nothing");
}

#[test]
fn rows_repeated_beyond_the_total_are_left_out() {
    let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[2,3]")]);
    assert_eq!(step, WalkStep::Whole);
    assert_eq!(walk.into_pages().repeated, [vec![], vec![0]]);
}

#[test]
fn equal_rows_that_the_total_counts_are_two_rows() {
    let (step, walk) = walk(vec![numbered(1, 1, 2, "[7,7]")]);
    assert_eq!(step, WalkStep::Whole);
    assert_eq!(walk.into_pages().repeated, [Vec::<usize>::new()]);
}

#[test]
fn bounds_hold() {
    assert!(matches!(walk(vec![numbered(1, 1001, 2002, "[1,2]")]).0, WalkStep::Hopeless(FailureKind::TooLarge, _)));
    assert!(matches!(walk(vec![page(r#""total":-1"#, "[]")]).0, WalkStep::Hopeless(FailureKind::Incomplete, _)));
    assert!(
        matches!(walk(vec![page("", "[1,2]")]).0, WalkStep::Hopeless(FailureKind::Incomplete, _)),
        "full, and not a word on pages"
    );
    assert_eq!(walk(vec![page("", "[1,2,3]")]).0, WalkStep::Whole, "a server that does not page");
    let mut object = PageWalk::new(false, None, 1 << 20, None);
    assert!(matches!(object.take(numbered(1, 2, 3, "{}")), WalkStep::Hopeless(FailureKind::Incomplete, _)));
    let mut tight = PageWalk::new(true, Some(2), 10, None);
    assert!(matches!(tight.take(numbered(1, 1, 1, "[1]")), WalkStep::Hopeless(FailureKind::TooLarge, _)));
}

#[test]
fn the_hash_tells_pages_apart() {
    let hash = |pages| walk(pages).1.into_pages().hash();
    let two = hash(vec![numbered(1, 2, 2, "[1]"), numbered(2, 2, 2, "[2]")]);
    assert_eq!(
        two,
        hash(vec![
            page(r#""page":1,"totalPages":2,"total":2,"credit":{"used":9}"#, "[1]"),
            page(r#""page":2,"totalPages":2,"total":2"#, "[2]")
        ])
    );
    assert_ne!(two, hash(vec![numbered(1, 1, 2, "[1,2]")]));
}

fn skimmed(number: u32, pages: u32, total: u32, data: &str) -> AnswerPage {
    let metadata = format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#);
    let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
    envelope::skim(body.into_bytes(), true).expect("skimmed")
}

#[test]
fn pages_that_were_whole_before_are_whole_again_and_gone_through_by_nobody() {
    let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
    let retry = |pages| walk_knowing(Some(known), pages);
    let (step, walk) = retry(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]);
    assert_eq!((step, walk.rows), (WalkStep::Same, 0));
    assert_eq!(retry(vec![numbered(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]).0, WalkStep::Same, "however they were read");
}

#[test]
fn pages_that_differ_from_the_known_ones_are_gone_through_as_ever() {
    let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
    let (step, walk) = walk_knowing(Some(known), vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[4]")]);
    assert_eq!((step, walk.rows), (WalkStep::Whole, 3));
    let shifted = |pages| matches!(walk_knowing(Some(known), pages).0, WalkStep::Shifted(_));
    assert!(shifted(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[3]")]), "the same rows, and one more counted");
    assert!(shifted(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[2,4]")]), "a row in the place of another");
    assert!(shifted(vec![skimmed(1, 3, 3, "[1,2]"), skimmed(2, 3, 3, "[ ]")]), "an empty page between");
    assert!(shifted(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[nonsense]")]), "no JSON behind a sound envelope");
}
