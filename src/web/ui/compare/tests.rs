use super::*;
use crate::ui::page::Section;
use model::wire::UnlockEvent;
use model::{Token, TokenId, TokenPieces};
use testkit::time;

const NOW: &str = "2026-03-09T12:00:00Z";
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}&\"'";

/// A token with a market cap of 1,000,000 USD at 2 USD per token, of which `amount` tokens unlock on `date`.
fn token(id: &str, symbol: &str, date: &str, amount: f64, by: ComparedBy) -> ComparedToken {
    let mut token = Token::unknown(TokenId::from(id));
    token.item.symbol = symbol.to_owned().into();
    token.item.market_cap = 1e6.into();
    let event: UnlockEvent = serde_json::from_value(serde_json::json!({"unlockDate": date, "cliffUnlocks": {
        "cliffAmount": amount, "cliffValue": amount * 2.0, "allocationBreakdown": [{"unlockDate": date, "cliffAmount": amount,
        "cliffValue": amount * 2.0, "referencePrice": 2.0, "referencePriceUpdatedTime": NOW}]}}))
    .expect("an event");
    let pieces = TokenPieces::of([&event]);
    let sums = windows(by, time(NOW)).into_iter().map(|window| pieces.sum(window)).collect();
    let supply = TokenSupply {
        known: KnownSupply::All,
        linear_until: None,
        price: pieces.price,
        windows: sums,
        rate: pieces.rate_at(time(NOW)),
    };
    ComparedToken { snapshot: TokenSnapshot::of(token), supply }
}

fn shown(tokens: &[ComparedToken], by: ComparedBy) -> String {
    page(tokens, by, TimeDelta::days(3), time(NOW), &PageFrame::of(Section::Tokens, time(NOW)))
}

/// Returns the cells of the row of a period.
fn cells(html: &str, period: &str) -> Vec<String> {
    let row = html.split(&format!("<th scope=\"row\">{period}</th>")).nth(1).and_then(|rest| rest.split("</tr>").next());
    let cells = row.unwrap_or_else(|| panic!("no row {period} in {html}")).split("<td>").skip(1);
    cells.map(|cell| cell.replace("<span class=\"sub\">", "").replace("</span></td>", "").replace("</td>", "")).collect()
}

#[test]
fn each_period_has_the_share_of_each_token() {
    for (is_of_circulating, sizes) in [(false, ["$10.00K", "$4.00K"]), (true, ["5.00K AAA", "2.00K BBB"])] {
        let by = ComparedBy { is_monthly: true, is_of_circulating };
        let tokens =
            [token("a", "AAA", "2026-03-20T00:00:00Z", 5000.0, by), token("b", "BBB", "2026-05-01T00:00:00Z", 2000.0, by)];
        let html = shown(&tokens, by);
        assert_eq!(cells(&html, "Mar 2026"), [format!("1.00% {}", sizes[0]), "–".to_owned()]);
        assert_eq!(cells(&html, "May 2026"), ["–".to_owned(), format!("0.40% {}", sizes[1])]);
        assert!(html.contains("Mar 2026; AAA 1.00% · BBB 0.00%"), "{html}");
    }
}

#[test]
fn unread_token_has_no_share() {
    let by = ComparedBy::default();
    let mut unread = token("b", "BBB", "2026-03-10T00:00:00Z", 1.0, by);
    unread.supply = TokenSupply::unread(windows(by, time(NOW)).len());
    let html = shown(&[token("a", "AAA", "2026-03-10T00:00:00Z", 5000.0, by), unread], by);
    assert_eq!(cells(&html, "9 Mar to 16 Mar 2026")[1].trim(), phrase::NOT_READ);
}

#[test]
fn one_token_is_compared_with_nothing() {
    let by = ComparedBy::default();
    let html = shown(&[token("a", "AAA", "2026-03-10T00:00:00Z", 5000.0, by)], by);
    assert!(html.contains("Choose two to four tokens.") && !html.contains("<svg class=\"chart"), "{html}");
}

#[test]
fn hostile_names_are_escaped() {
    let by = ComparedBy::default();
    let tokens = [HOSTILE, "BBB"].map(|name| token(name, name, "2026-03-10T00:00:00Z", 5000.0, by));
    let html = shown(&tokens, by);
    assert!(!html.contains("<script>alert") && !html.contains('\u{202e}'), "{html}");
    assert!(html.contains("<svg class=\"chart"), "no chart: {html}");
}
