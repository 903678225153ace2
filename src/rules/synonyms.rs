//! What people call things, and what they are called here: suggestions by meaning, where letters do not help.

/// Words that begin an `on`.
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

/// Kinds of change, without the record that they are of.
const KINDS: [(&str, &str); 26] = [
    ("moved", "rescheduled"),
    ("delayed", "rescheduled"),
    ("postponed", "rescheduled"),
    ("advanced", "rescheduled"),
    ("date", "rescheduled"),
    ("shifted", "series_shifted"),
    ("amount", "resized"),
    ("increased", "resized"),
    ("decreased", "resized"),
    ("grown", "resized"),
    ("reduced", "resized"),
    ("rescaled", "series_rescaled"),
    ("new", "added"),
    ("appeared", "added"),
    ("created", "added"),
    ("deleted", "removed"),
    ("gone", "removed"),
    ("cancelled", "removed"),
    ("canceled", "removed"),
    ("vanished", "removed"),
    ("claimed", "committed"),
    ("announced", "committed"),
    ("corrected", "revised"),
    ("changed", "*"),
    ("change", "*"),
    ("any", "*"),
];

/// Names in conditions and texts; of several, the first that is known where it is asked.
const NAMES: [(&str, &[&str]); 33] = [
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
];

/// The word without case and without `_`: `market_cap` is `marketcap`.
fn plain(word: &str) -> String {
    word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

fn find<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    let word = plain(word);
    table.iter().find(|(known, _)| *known == word).map(|(_, meant)| *meant)
}

/// What a rule listens to, of the word that begins its `on`.
pub fn subject(word: &str) -> Option<&'static str> {
    find(&SUBJECTS, word)
}

/// The kind of change that is meant.
pub fn kind(word: &str) -> Option<&'static str> {
    find(&KINDS, word)
}

/// The name that is meant, among those that are known.
pub fn name(word: &str, known: &[&'static str]) -> Option<&'static str> {
    find(&NAMES, word)?.iter().copied().find(|meant| known.contains(meant))
}
