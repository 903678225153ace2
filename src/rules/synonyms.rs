//! Suggestions by meaning for unknown words, for cases in which spelling does not help.

use model::Recipient;

/// Other words for the first word of `on`.
const SUBJECTS: [(&str, &str); 22] = [
    ("unlocks", "unlock"),
    ("cliff", "unlock"),
    ("cliffs", "unlock"),
    ("vesting", "unlock"),
    ("vest", "unlock"),
    ("schedule", "unlock"),
    ("burns", "burn"),
    ("burned", "burn"),
    ("buybacks", "buyback"),
    ("repurchase", "buyback"),
    ("boughtback", "buyback"),
    ("emissions", "emission"),
    ("emitted", "emission"),
    ("inflation", "emission"),
    ("group", "portfolio"),
    ("groups", "portfolio"),
    ("watchlist", "portfolio"),
    ("investor", "funding"),
    ("fundraising", "funding"),
    ("round", "funding"),
    ("supply", "allocation"),
    ("api", "source"),
];

/// Words for a change of any kind.
const ANY_KIND: [&str; 3] = ["changed", "change", "any"];

/// Other words for names in conditions and templates. Of several meanings, the first that the rule knows is suggested.
const NAMES: [(&str, &[&str]); 51] = [
    ("lastbuyback.days", &["lastBuyback.daysSince"]),
    ("lastbuyback.age", &["lastBuyback.daysSince"]),
    ("lastburn.days", &["lastBurn.daysSince"]),
    ("lastburn.age", &["lastBurn.daysSince"]),
    ("percent", &["valueToMarketCap"]),
    ("percentage", &["valueToMarketCap"]),
    ("pct", &["valueToMarketCap"]),
    ("percentofmarketcap", &["valueToMarketCap"]),
    ("marketcap", &["marketCap", "token.marketCap"]),
    ("mcap", &["marketCap", "token.marketCap"]),
    ("circulatingsupply", &["circulatingSupply", "token.circulatingSupply"]),
    ("supply", &["circulatingSupply", "token.circulatingSupply"]),
    ("maxsupply", &["maxSupply", "token.maxSupply"]),
    ("totalsupply", &["maxSupply", "token.maxSupply"]),
    ("amount", &["cliffAmount", "tokenAmount", "unlockAmount", "allocationAmount", "totalAmountRaisedinThatRound"]),
    ("tokens", &["cliffAmount", "tokenAmount", "amount", "unlockAmount"]),
    ("value", &["cliffValue", "unlockValue", "totalAmountRaisedinThatRound"]),
    ("usd", &["cliffValue", "value", "unlockValue", "totalAmountRaisedinThatRound"]),
    ("usdvalue", &["cliffValue", "value", "unlockValue"]),
    ("price", &["referencePrice", "pricePerToken"]),
    ("date", &["unlockDate", "burnDate", "buybackDate", "startDate", "fundingDate"]),
    ("days", &["daysUntil"]),
    ("daysahead", &["daysUntil"]),
    ("daysleft", &["daysUntil"]),
    ("age", &["daysSince"]),
    ("symbol", &["token.symbol"]),
    ("ticker", &["token.symbol"]),
    ("slug", &["token.id"]),
    ("groups", &["token.groups"]),
    ("shift", &["change.shiftDays"]),
    ("shiftdays", &["change.shiftDays"]),
    ("kind", &["change.kind"]),
    ("recipients", &["allocations"]),
    ("insiders", &["insiderShare"]),
    ("insidershare.value", &["insiderShare"]),
    ("insiderpercent", &["insiderShare"]),
    ("team", &["teamShare"]),
    ("foundershare", &["teamShare"]),
    ("investors", &["investorShare"]),
    ("privateshare", &["investorShare"]),
    ("rate", &["linearPerDay", "rateAfter"]),
    ("dailyrate", &["linearPerDay", "rateAfter"]),
    ("perday", &["linearPerDay", "dailyAmount"]),
    ("perdayvalue", &["linearPerDayValue", "dailyValue"]),
    ("linearrate", &["linearPerDay", "rateAfter"]),
    ("dailyamount", &["linearPerDay"]),
    ("dailyvalue", &["linearPerDayValue"]),
    ("dailyemission", &["linearPerDay"]),
    ("ratechange", &["nextRate.change"]),
    ("nextrate.days", &["nextRate.daysUntil"]),
    ("priceage.days", &["priceAge"]),
];

/// Returns the word in lower case and without `_`: `market_cap` becomes `marketcap`.
fn normalize(word: &str) -> String {
    word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Other words for the categories of recipients.
const RECIPIENTS: [(&str, Recipient); 21] = [
    ("founder", Recipient::Team),
    ("founders", Recipient::Team),
    ("team", Recipient::Team),
    ("advisor", Recipient::Team),
    ("advisors", Recipient::Team),
    ("contributors", Recipient::Team),
    ("employees", Recipient::Team),
    ("investor", Recipient::Private),
    ("investors", Recipient::Private),
    ("vc", Recipient::Private),
    ("seed", Recipient::Private),
    ("private", Recipient::Private),
    ("public", Recipient::Public),
    ("sale", Recipient::Public),
    ("ico", Recipient::Public),
    ("airdrop", Recipient::Community),
    ("staking", Recipient::Community),
    ("treasury", Recipient::Reserve),
    ("foundation", Recipient::Reserve),
    ("ecosystem", Recipient::Reserve),
    ("mixed", Recipient::Other),
];

/// Returns the category of recipients that a word means.
pub fn recipient(word: &str) -> Option<&'static str> {
    let of_word = |word: &str| find(&RECIPIENTS, word);
    of_word(word).or_else(|| word.split([' ', '/', '_', '-']).find_map(of_word))?.categories().first().copied()
}

fn find<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    let word = normalize(word);
    table.iter().find(|(known, _)| *known == word).map(|(_, meant)| *meant)
}

/// Returns the first word of `on` that `word` means.
pub fn subject(word: &str) -> Option<&'static str> {
    find(&SUBJECTS, word)
}

/// Returns the change kind that `word` means, or `*` for any kind.
pub fn kind(word: &str) -> Option<&'static str> {
    let word = normalize(word);
    if ANY_KIND.contains(&word.as_str()) { Some("*") } else { model::kind_synonym(&word) }
}

/// Returns the name that `word` means, if it is among the known names.
pub fn name(word: &str, known: &[&'static str]) -> Option<&'static str> {
    find(&NAMES, word)?.iter().copied().find(|meant| known.contains(meant))
}
