use super::*;

fn found(text: &str, word: &str, message: &str) -> Diagnostic {
    let start = text.find(word).expect("the word");
    Diagnostic::error("a.toml", Some(start..start + word.len()), message)
}

#[test]
fn diagnostic_is_below_its_line() {
    let text = "one\ntwo bad\nthree\n";
    let lines = code_lines(text, &[found(text, "bad", "no"), Diagnostic::error("a.toml", None, "all of it")], None);
    let counts: Vec<(Option<usize>, usize)> = lines.iter().map(|line| (line.number, line.problems.len())).collect();
    assert_eq!(counts, [(None, 1), (Some(1), 0), (Some(2), 1), (Some(3), 0)]);
    let problem = &lines[2].problems[0];
    assert_eq!((problem.excerpt.as_str(), problem.message.as_str()), ("bad", "no"));
}

#[test]
fn long_file_is_cut_to_context() {
    let text: String = (1..=40).map(|n| format!("line-{n}-\n")).collect();
    let lines = code_lines(&text, &[found(&text, "line-5-", "a"), found(&text, "line-30-", "b")], Some(1));
    let gaps: Vec<(usize, bool)> = lines.iter().filter_map(|line| Some((line.number?, line.is_after_gap))).collect();
    assert_eq!(gaps, [(4, true), (5, false), (6, false), (29, true), (30, false), (31, false)]);
}

#[test]
fn diagnostic_outside_of_the_text_is_shown() {
    let far = Diagnostic::error("a.toml", Some(90..99), "far");
    let shown: usize = code_lines("é\n", std::slice::from_ref(&far), None).iter().map(|line| line.problems.len()).sum();
    assert_eq!(shown, 1);
    let shown: usize = code_lines("", &[far], Some(2)).iter().map(|line| line.problems.len()).sum();
    assert_eq!(shown, 1);
}
