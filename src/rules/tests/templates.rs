//! Tests of templates and the built-in text.

use super::*;

#[test]
fn templates_are_checked_at_load() {
    let template = |text: &str| format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[rule.annotations]\nsummary = '''{text}'''\n");
    for (text, covered, message, help) in [
        ("{{ cliffVale | usd }}", "cliffVale", "unknown name `cliffVale`", "did you mean `cliffValue`?"),
        ("{{ token.sybol }}", "token.sybol", "unknown name `token.sybol`", "did you mean `token.symbol`?"),
        ("{{ cliffValue | uds }}", "uds", "unknown filter `uds`", "did you mean `usd`?"),
        ("{% if cliffValue %}{{ x.y }}{% endif %}", "x.y", "unknown name `x.y`", ""),
        ("{{ change.kind }}", "change.kind", "`change.kind` is not available here", "in rules on changes"),
    ] {
        let (at, found, advice) = only_problem(&template(text));
        assert_eq!((at.as_str(), found.as_str()), (covered, message), "{text}");
        assert!(advice.contains(help), "{text}: {advice}");
    }
    for (text, severity) in [
        ("{{ cliffValue ", DiagnosticLevel::Error),
        ("{% for a in allocations %}{{ a.nope }}{% endfor %}", DiagnosticLevel::Error),
        ("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", DiagnosticLevel::Error),
        ("{{ 'x' * 20000 }}", DiagnosticLevel::Error),
        ("{{ tokenName | usd }}", DiagnosticLevel::Error),
        ("{{ cliffValue / 1000 }}", DiagnosticLevel::Warning),
    ] {
        let loaded = load_text(&template(text));
        assert_eq!(
            loaded.diagnostics.iter().map(|problem| problem.severity).collect::<Vec<_>>(),
            [severity],
            "{text}: {:#?}",
            loaded.diagnostics
        );
    }
    for text in [
        "{{ cliffValue | default(0) | usd }}",
        "{% if linearValue is not none %}{{ linearValue / 2 }}{% endif %}",
        "{{ record | json }}",
        "{{ allocations | length if allocations else 0 }}",
    ] {
        assert_eq!(load_text(&template(text)).diagnostics, [], "{text}");
    }
}

#[test]
fn missing_fields_render_unknown_and_control_characters_are_removed() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nlabels = { name = \"{{ tokenName }}\" }\n[rule.annotations]\nsummary = '{{ cliffValue | usd }} {{ tokenName }} {{ unlockDate }} {{ daysUntil | days }} {{ labels.name }}'\n",
    );
    let (token, record) =
        (arb(), record(Resource::Unlock, r#"{"unlockDate":"2026-03-16T00:00:00Z","tokenName":"A\u001b[31m\r\nB<b>\u202e"}"#));
    let rendered = rule.render(&scope(&token, &record), None);
    assert_eq!(rendered.annotations["summary"], "unknown A[31m\nB<b> 2026-03-16T00:00:00Z 7 days A[31m B<b>");
    assert_eq!(rendered.labels["name"], "A[31m B<b>");
    assert_eq!((rendered.labels["alertname"].as_str(), rendered.labels["token"].as_str()), ("A", "arbitrum"));
}

#[test]
fn template_failure_at_run_time_uses_the_built_in_text() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\n[rule.annotations]\nsummary = '{{ cliffValue / 1000 }} {{ token.name }}'\nother = 'fine'\n",
    );
    let (token, record) = (arb(), record(Resource::Unlock, r#"{"unlockDate":"2026-03-16T00:00:00Z"}"#));
    let rendered = rule.render(&scope(&token, &record), None);
    assert_eq!(rendered.annotations["summary"], "ARB: an unknown amount unlocks on 16 Mar 2026 (in 7 days)");
    assert_eq!(rendered.annotations["other"], "fine");
    let error = rendered.error.expect("an error");
    assert!(error.starts_with("rule A: annotation `summary`: "), "{error}");
    assert_eq!(rendered.annotations["template_error"], error);
}

#[test]
fn formats_built_in_summaries() {
    let token = arb();
    let summary = |resource, json: &str| built_in_summary(&scope(&token, &record(resource, json)));
    assert_eq!(summary(Resource::Unlock, CLIFF), "ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026 (in 7 days)");
    let month = r#"{"unlockDate":"2026-04-01T00:00:00Z","cliffUnlocks":{"cliffAmount":1000000000,"allocationBreakdown":[{"unlockPrecision":"month"}]}}"#;
    assert_eq!(
        summary(Resource::Unlock, month),
        "ARB: 1.00B ARB unlock in April 2026 (~1 Apr; the source confirms only the month)"
    );
    assert_eq!(summary(Resource::Unlock, "{}"), "ARB: an unknown amount unlocks on a date to be determined");
    assert_eq!(
        summary(Resource::Burn, r#"{"burnDate":"2026-03-01T00:00:00Z","value":5250000,"burnEventLabel":"Q1 burn"}"#),
        "ARB: $5.25M burned on 1 Mar 2026 (Q1 burn)"
    );
    assert_eq!(
        summary(Resource::Buyback, r#"{"buybackDate":"2026-03-01T00:00:00Z","tokenAmount":5250}"#),
        "ARB: 5.25K ARB bought back on 1 Mar 2026"
    );
    assert_eq!(
        summary(
            Resource::Funding,
            r#"{"roundName":"Series B","fundingDate":"2026-03-01T00:00:00Z","totalAmountRaisedinThatRound":120000000}"#
        ),
        "ARB: Series B: $120.00M raised on 1 Mar 2026"
    );
    let source = SourceFacts {
        kind: "unreachable".into(),
        endpoint: None,
        receiver: None,
        message: "the API\ncannot be reached".into(),
        count: 1,
        since: at("2026-03-09"),
    };
    assert_eq!(built_in_summary(&Scope { source: Some(&source), ..Scope::at(at("2026-03-09")) }), "the API cannot be reached");
}

#[test]
fn rendering_memory_is_limited() {
    let template =
        |text: &str| format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[rule.annotations]\nsummary = \'\'\'{text}\'\'\'\n");
    let doubled = |times: usize| format!("{{% set a = 'x' %}}{}ok", "{% set a = a ~ a %}".repeat(times));
    let long = "x".repeat(600);
    for (text, message) in [
        (format!("{{{{ range(100000)|join('{long}') }}}}"), "at most 1000 numbers"),
        (format!("{{{{ range(900)|join('{long}')|length }}}}"), "the filters create more than"),
        (doubled(26), "the value assigned by `set` is too large"),
        (format!("{{% set a = ['x'] %}}{}ok", "{% set a = [a, a] %}".repeat(26)), "the value assigned by `set` is too large"),
        (
            "{% set ns = namespace(a='xx') %}{% for i in range(26) %}{% set ns.a = ns.a + ns.a %}{% endfor %}ok".into(),
            "the value assigned by `set` is too large",
        ),
        ("{{ ('x' ~ tokenName) * 90000000 }}".into(), "strings and lists cannot be multiplied"),
        ("{{ (90000000 * tokenName)|length }}".into(), "this template fails"),
        ("{% macro m(a) %}{{ a }}{% endmacro %}".into(), "`macro` is not supported here"),
        ("{% set a %}x{% endset %}".into(), "`set` without `=` is not supported here"),
        ("{% for x in ['a' ~ tokenName] %}x{% endfor %}".into(), "a loop cannot iterate over an expression"),
        ("{{ '%90000000s'|format(tokenName) }}".into(), "unknown filter `format`"),
        (format!("{{{{ {} }}}}", vec!["tokenName"; 70].join("~")), "at most 64 are allowed"),
    ] {
        let loaded = load_text(&template(&text));
        let found: Vec<&str> = loaded.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
        assert!(found.iter().any(|found| found.contains(message)), "{}: {found:#?}", &text[..text.len().min(90)]);
        assert!(loaded.diagnostics.iter().all(|problem| problem.severity == DiagnosticLevel::Error), "{found:#?}");
    }
    for (text, rendered) in [
        ("{% set ns = namespace(sum=0) %}{% for i in range(3) %}{% set ns.sum = ns.sum + i * 2 %}{% endfor %}{{ ns.sum }}", "6"),
        ("{%- set a = 2 * 3 -%} {{ a ** 2 * 2 / 4 - 1 * 2 }}", "16"),
        ("{{ ['a', 'b']|join(', ') }} {{ 'abc'|join('-') }} {{ 'banana'|replace('an', '*') }}", "a, b a-b-c b**a"),
        (
            "{{ [{'n': 1}, {'n': 2}]|join('/', attribute='n') }} {{ '2 * 3' }} {{ range(1, 4)|join }} {{ range(5, 0, -2)|join }}",
            "1/2 2 * 3 123 531",
        ),
    ] {
        let rule = rule(&template(text));
        let (token, record) = (arb(), record(Resource::Unlock, "{}"));
        assert_eq!(rule.render(&scope(&token, &record), None).annotations["summary"].trim(), rendered, "{text}");
    }
    // Source data does not exceed the limit at run time either.
    let rule = rule(&template("{{ tokenName|replace('a', tokenName) }}"));
    let hostile = format!("{{\"tokenName\":\"{}\"}}", "a".repeat(100_000));
    let (token, record) = (arb(), record(Resource::Unlock, &hostile));
    let rendered = rule.render(&scope(&token, &record), None);
    assert!(rendered.error.is_some_and(|error| error.contains("the filters create more than")), "the built-in text is used");
    assert!(rendered.annotations["summary"].starts_with("ARB: "), "{:?}", rendered.annotations);
}

#[test]
fn rejects_deep_templates_and_files() {
    let engine = TemplateEngine::new();
    for text in [
        format!("{{{{ {} }}}}", vec!["1"; 4_000].join("+")),
        format!("{{{{ token{} }}}}", ".a".repeat(8_000)),
        format!("{{{{ token{} }}}}", "[0]".repeat(5_000)),
        format!("{{{{ 1{} }}}}", "|string".repeat(2_000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(8_000), ")".repeat(8_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(4_000)),
        format!("{{{{ {}1 }}}}", "-".repeat(16_000)),
        format!("{{{{ {} }}}}", vec!["1"; 4_000].join("~")),
        format!("{{{{ {} }}}}", vec!["1"; 3_000].join(" and ")),
        format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(1_300)),
        format!("{}x{}", "{% if 1 %}".repeat(800), "{% endif %}".repeat(700)),
        format!("{{% if 1 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(1_300)),
        format!("{{{{ '}}}}' ~ {} }}}}", vec!["1"; 4_000].join("+")),
    ] {
        let (_, faults) = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
        assert!(faults.iter().any(|fault| fault.is_error), "{}", &text[..60]);
    }
    // Input at the limits does not overflow the stack.
    for text in [
        format!("{{{{ {} }}}}", vec!["1"; 395].join("+")),
        format!("{{{{ token{} }}}}", ".a".repeat(390)),
        format!("{{{{ {}1 }}}}", "-".repeat(790)),
        format!("{{{{ 1{} }}}}", "|abs".repeat(190)),
        format!("{}x{}", "{% if 1 %}".repeat(100), "{% endif %}".repeat(100)),
        format!("{{% if 1 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(190)),
    ] {
        let _ = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
    }
    for value in [
        format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("{}1{}", "{a=".repeat(5_000), "}".repeat(5_000)),
        format!("1{}", ".a".repeat(5_000)),
    ] {
        assert!(!load_text(&format!("[[rule]]\nalert = {value}\n")).is_usable());
    }
    assert!(!load_text(&format!("{}x = 1\n", "a.".repeat(10_000))).is_usable());
    assert!(!load_text(&format!("[{}x]\n", "a.".repeat(10_000))).is_usable());
}
