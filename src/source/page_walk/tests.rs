use super::*;
use crate::envelope;

fn page(metadata: &str, data: &str) -> ResponsePage {
    let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
    envelope::read(body.into_bytes(), None, data.starts_with('[')).expect("an envelope")
}

fn numbered(number: u32, pages: u32, total: u32, data: &str) -> ResponsePage {
    page(&format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#), data)
}

fn walk(pages: Vec<ResponsePage>) -> (WalkStep, PageWalk) {
    walk_knowing(None, pages)
}

fn walk_knowing(known: Option<ContentHash>, pages: Vec<ResponsePage>) -> (WalkStep, PageWalk) {
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
fn walk_ends_after_the_reported_pages() {
    let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]);
    assert_eq!((step, walk.rows), (WalkStep::Complete, 3));
}

#[test]
fn empty_list_is_complete() {
    assert_eq!(walk(vec![numbered(1, 0, 0, "[]")]).0, WalkStep::Complete);
    assert_eq!(walk(vec![page("", "[]")]).0, WalkStep::Complete);
}

#[test]
fn inconsistent_pages_are_rejected() {
    let is_inconsistent = |pages| matches!(walk(pages).0, WalkStep::Inconsistent(_));
    assert!(is_inconsistent(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 4, "[3,4]")]), "the total changed");
    assert!(is_inconsistent(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 3, 3, "[3]")]), "the pages changed");
    assert!(is_inconsistent(vec![numbered(1, 2, 3, "[1,2]"), page("", "[3]")]), "no totals on the second page");
    assert!(is_inconsistent(vec![numbered(1, 2, 3, "[1,2]"), numbered(1, 2, 3, "[1,2]")]), "a repeated page");
    assert!(is_inconsistent(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[2,4]")]), "a repeated row in place of another");
    assert!(is_inconsistent(vec![numbered(1, 2, 4, "[1,2]"), numbered(2, 2, 4, "[3]")]), "a missing row");
    assert!(is_inconsistent(vec![numbered(1, 1, 4, "[1,2]")]), "a missing page");
    assert!(is_inconsistent(vec![numbered(1, 3, 5, "[1,2]"), numbered(2, 3, 5, "[]")]), "an empty page between");
    assert!(is_inconsistent(vec![numbered(1, 1, 0, "[1]")]), "a row although the total is zero");
}

#[test]
fn repeated_rows_beyond_the_total_are_skipped() {
    let (step, walk) = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[2,3]")]);
    assert_eq!(step, WalkStep::Complete);
    assert_eq!(walk.into_pages().repeated, [vec![], vec![0]]);
}

#[test]
fn equal_rows_within_the_total_are_kept() {
    let (step, walk) = walk(vec![numbered(1, 1, 2, "[7,7]")]);
    assert_eq!(step, WalkStep::Complete);
    assert_eq!(walk.into_pages().repeated, [Vec::<usize>::new()]);
}

#[test]
fn responses_beyond_the_limits_are_rejected() {
    assert!(matches!(walk(vec![numbered(1, 1001, 2002, "[1,2]")]).0, WalkStep::Invalid(FailureKind::TooLarge, _)));
    assert!(matches!(walk(vec![page(r#""total":-1"#, "[]")]).0, WalkStep::Invalid(FailureKind::Incomplete, _)));
    assert!(
        matches!(walk(vec![page("", "[1,2]")]).0, WalkStep::Invalid(FailureKind::Incomplete, _)),
        "a full page without the number of pages"
    );
    assert_eq!(walk(vec![page("", "[1,2,3]")]).0, WalkStep::Complete, "a server without pages");
    let mut object = PageWalk::new(false, None, 1 << 20, None);
    assert!(matches!(object.take(numbered(1, 2, 3, "{}")), WalkStep::Invalid(FailureKind::Incomplete, _)));
    let mut tight = PageWalk::new(true, Some(2), 10, None);
    assert!(matches!(tight.take(numbered(1, 1, 1, "[1]")), WalkStep::Invalid(FailureKind::TooLarge, _)));
}

#[test]
fn hash_depends_on_the_split_into_pages() {
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

fn skimmed(number: u32, pages: u32, total: u32, data: &str) -> ResponsePage {
    let metadata = format!(r#""page":{number},"pageSize":2,"totalPages":{pages},"total":{total}"#);
    let body = format!(r#"{{"metadata":{{{metadata}}},"status":true,"data":{data}}}"#);
    envelope::skim(body.into_bytes(), true).expect("skimmed")
}

#[test]
fn known_pages_are_complete_without_counting_rows() {
    let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
    let retry = |pages| walk_knowing(Some(known), pages);
    let (step, walk) = retry(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]);
    assert_eq!((step, walk.rows), (WalkStep::Unchanged, 0));
    assert_eq!(retry(vec![numbered(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[3]")]).0, WalkStep::Unchanged, "skimmed or not");
}

#[test]
fn changed_pages_are_checked_again() {
    let known = walk(vec![numbered(1, 2, 3, "[1,2]"), numbered(2, 2, 3, "[3]")]).1.into_pages().hash();
    let (step, walk) = walk_knowing(Some(known), vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[4]")]);
    assert_eq!((step, walk.rows), (WalkStep::Complete, 3));
    let is_inconsistent = |pages| matches!(walk_knowing(Some(known), pages).0, WalkStep::Inconsistent(_));
    assert!(is_inconsistent(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[3]")]), "a changed total");
    assert!(is_inconsistent(vec![skimmed(1, 2, 4, "[1,2]"), skimmed(2, 2, 4, "[2,4]")]), "a repeated row in place of another");
    assert!(is_inconsistent(vec![skimmed(1, 3, 3, "[1,2]"), skimmed(2, 3, 3, "[ ]")]), "an empty page between");
    assert!(is_inconsistent(vec![skimmed(1, 2, 3, "[1,2]"), skimmed(2, 2, 3, "[nonsense]")]), "invalid JSON in a valid envelope");
}
