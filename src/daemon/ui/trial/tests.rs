use super::*;

fn found(text: &str, word: &str, message: &str) -> Diagnostic {
    let start = text.find(word).expect("it is there");
    Diagnostic::error("a.toml", Some(start..start + word.len()), message)
}

#[test]
fn what_is_wrong_stands_below_its_line() {
    let text = "one\ntwo bad\nthree\n";
    let lines = code_lines(text, &[found(text, "bad", "no"), Diagnostic::error("a.toml", None, "all of it")], None);
    let of: Vec<(usize, usize)> = lines.iter().map(|line| (line.number, line.problems.len())).collect();
    assert_eq!(of, [(0, 1), (1, 0), (2, 1), (3, 0)]);
    let problem = &lines[2].problems[0];
    assert_eq!((problem.column, problem.what.as_str(), problem.message.as_str()), (5, "bad", "no"));
}

#[test]
fn a_long_file_shows_what_is_around() {
    let text: String = (1..=40).map(|n| format!("line-{n}-\n")).collect();
    let lines = code_lines(&text, &[found(&text, "line-5-", "a"), found(&text, "line-30-", "b")], Some(1));
    let of: Vec<(usize, bool)> = lines.iter().map(|line| (line.number, line.is_after_gap)).collect();
    assert_eq!(of, [(4, true), (5, false), (6, false), (29, true), (30, false), (31, false)]);
}

#[test]
fn a_place_outside_of_the_text_is_shown_all_the_same() {
    let far = Diagnostic::error("a.toml", Some(90..99), "far");
    let shown: usize = code_lines("é\n", std::slice::from_ref(&far), None).iter().map(|line| line.problems.len()).sum();
    assert_eq!(shown, 1);
    let shown: usize = code_lines("", &[far], Some(2)).iter().map(|line| line.problems.len()).sum();
    assert_eq!(shown, 1);
}

#[test]
fn the_bars_of_the_weeks_fit_their_picture() {
    let week = NaiveDate::from_ymd_opt(2026, 9, 21).expect("a day");
    let bars = bars(&[week; 53], &[vec![0, 1, 200], vec![7; 50]].concat());
    assert!(bars.iter().all(|bar| bar.x + bar.width <= 1000 && bar.y + bar.height == 100), "{bars:?}");
    let heights: Vec<u32> = bars.iter().take(3).map(|bar| bar.height).collect();
    assert_eq!(heights, [0, 3, 100]);
}
