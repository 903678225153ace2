use super::*;

#[test]
fn keeps_first_items_and_returns_the_others() {
    let mut first = FirstOf::new(3);
    let sizes = [Some(5.0), None, Some(9.0), Some(1.0), Some(7.0), None, Some(8.0)];
    let back: Vec<Option<f64>> =
        sizes.into_iter().zip(0..).filter_map(|(size, no)| first.push((LargestFirst(size), no))).map(|(of, _)| of.0).collect();
    assert_eq!(back, [None, Some(1.0), None, Some(5.0)]);
    let kept: Vec<(Option<f64>, i32)> = first.into_sorted().into_iter().map(|(of, no)| (of.0, no)).collect();
    assert_eq!(kept, [(Some(9.0), 2), (Some(8.0), 6), (Some(7.0), 4)]);
    assert_eq!(FirstOf::new(0).push(1), Some(1));
}
