use super::*;
use daemon::config::{Environment, load_text};

async fn planned(text: &str, tokens: Option<u64>) -> String {
    let loaded = load_text(None, text, &Environment::default());
    let config = loaded.config.expect("a valid config");
    let now = model::wire::parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp");
    let (month, credit) = simulate_month(&config, &RuleSet::default(), None, tokens, now).await.expect("a plan");
    format!("{}\n{}", listing(&month).table(Some(80)), sentences(&month, &credit, &config.budget))
}

#[tokio::test]
async fn describes_the_month() {
    let few = "[watch]\ntokens = [\"arbitrum\", \"aptos\"]\n";
    let mut golden = planned(&format!("{few}[budget]\nmonthly_credits = 2000\n"), None).await;
    for (text, tokens) in [
        (format!("{few}[budget]\nmonthly_credits = 1000\n"), None),
        ("[budget]\nmonthly_credits = 1000\n".to_owned(), None),
        ("[budget]\nmonthly_credits = 1000\n".to_owned(), Some(40)),
        ("[budget]\nmonthly_credits = 100\n[schedule]\nallocations = \"off\"\n".to_owned(), Some(10)),
        (few.to_owned(), None),
    ] {
        golden.push_str("\n━━━━\n");
        golden.push_str(&planned(&text, tokens).await);
    }
    insta::assert_snapshot!(golden);
}
