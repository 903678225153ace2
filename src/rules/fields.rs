//! The fields that conditions and templates may use: for each resource the names on the wire, with a typed way to read each.
//!
//! To add a field, add a line to its table here: name, type or unit, what it means, how to read it. Conditions call that function at
//! every evaluation, templates at every rendering; the checker, its suggestions, the warnings about units, the trial of templates and
//! the reference of all fields read the same tables, so none can know a name that another does not. [`reader`] holds the shape of a
//! line, [`recipients`] the readers that look in several places of a record.

mod reader;
mod recipients;

use crate::aggregate::Totals;
use model::{Change, Record, Resource, Token};

use super::scope::SourceFacts;

pub use reader::{FieldDef, FieldReader, ItemField, ItemKind, ItemReader, ItemVisitor, ListItem, NumberUnit};
use recipients::{
    both_halves, claims, cliff_items, committed, emission_items, least_exact_precision, linear_items, part_precision,
    part_reference_price, reference_price, reference_price_time, unix_time,
};
pub use recipients::{each_recipient, item_category, item_name};

/// A reader of either kind from the word of a table.
macro_rules! reader {
    ($reader:ident Number $read:expr) => {
        $reader::Number(NumberUnit::Plain, $read)
    };
    ($reader:ident Percent $read:expr) => {
        $reader::Number(NumberUnit::Percent, $read)
    };
    ($reader:ident Usd $read:expr) => {
        $reader::Number(NumberUnit::Usd, $read)
    };
    ($reader:ident Days $read:expr) => {
        $reader::Number(NumberUnit::Days, $read)
    };
    ($reader:ident Tokens $read:expr) => {
        $reader::Number(NumberUnit::Tokens, $read)
    };
    ($reader:ident TokensADay $read:expr) => {
        $reader::Number(NumberUnit::TokensADay, $read)
    };
    ($reader:ident UsdADay $read:expr) => {
        $reader::Number(NumberUnit::UsdADay, $read)
    };
    ($reader:ident Price $read:expr) => {
        $reader::Number(NumberUnit::Price, $read)
    };
    ($reader:ident Ratio $read:expr) => {
        $reader::Number(NumberUnit::Ratio, $read)
    };
    ($reader:ident Count $read:expr) => {
        $reader::Number(NumberUnit::Count, $read)
    };
    ($reader:ident $kind:ident $read:expr) => {
        $reader::$kind($read)
    };
}

/// Fields of records of one resource. `Items` are read by a function that visits them.
macro_rules! record_fields {
    ($resource:ident: $($name:literal $kind:ident $(($items:ident))? $about:literal $item:ident => $read:expr;)*) => {
        &[$(FieldDef {
            name: $name,
            about: $about,
            old: concat!("old.", $name),
            new: concat!("new.", $name),
            read: record_fields!(@ $kind $(($items))? $resource $item $read),
        }),*]
    };
    (@ Items($items:ident) $resource:ident $item:ident $read:expr) => {
        FieldReader::Items(ItemKind::$items, |record, visit| {
            let Record::$resource($item) = record else { return None };
            $read($item, visit)
        })
    };
    (@ $kind:ident $resource:ident $item:ident $read:expr) => {
        reader!(FieldReader $kind |record| {
            let Record::$resource($item) = record else { return None };
            $read
        })
    };
}

/// Fields of anything else.
macro_rules! fields {
    ($($name:literal $kind:ident $(($items:ident))? $about:literal $item:ident => $read:expr;)*) => {
        &[$(FieldDef { name: $name, about: $about, old: $name, new: $name, read: fields!(@ $kind $(($items))? $item $read) }),*]
    };
    (@ Items($items:ident) $item:ident $read:expr) => { FieldReader::Items(ItemKind::$items, |$item, visit| $read($item, visit)) };
    (@ $kind:ident $item:ident $read:expr) => { reader!(FieldReader $kind |$item| $read) };
}

/// Fields of the items of a list: read from one variant of [`ListItem`], or by a function that knows several.
macro_rules! item_fields {
    ($($name:literal $kind:ident $about:literal $(= $function:ident)? $($variant:ident $item:ident => $read:expr)?;)*) => {
        &[$(ItemField { name: $name, about: $about, read: item_fields!(@ $kind $($function)? $($variant $item => $read)?) }),*]
    };
    (@ $kind:ident $variant:ident $item:ident => $read:expr) => {
        reader!(ItemReader $kind |item| if let ListItem::$variant($item) = item { $read } else { None })
    };
    (@ $kind:ident $function:ident) => { reader!(ItemReader $kind $function) };
}

/// Fields of totals: the same line reads them of a token or group as a whole, and of each token of a group.
macro_rules! totals_fields {
    ($totals:ident, $members:ident: $($name:literal $kind:ident $about:literal $item:ident => $read:expr;)*) => {
        pub static $totals: &[FieldDef<Totals>] = fields! { $($name $kind $about $item => $read;)* };
        static $members: &[ItemField] = item_fields! { $($name $kind $about Member member => {
            let $item = &member.totals;
            $read
        };)* };
    };
}

static UNLOCK: &[FieldDef<Record>] = record_fields! { Unlock:
    "unlockDate" Time "when it unlocks" e => e.unlock_date.copied();
    "cliffAmount" Tokens "what unlocks at once, of all recipients" e => e.cliff_amount();
    "cliffValue" Usd "what the cliff is worth" e => e.cliff_value();
    "valueToMarketCap" Percent "the cliff's value in percent of the market cap: 2 is 2 %" e => e.value_to_market_cap();
    "linearAmount" Tokens "what is released little by little from then on" e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearValue" Usd "what the linear part is worth" e => e.linear_unlocks.get()?.linear_value.copied();
    "dailyAmount" TokensADay "what the linear part releases" e => e.linear_unlocks.get()?.daily_amount.copied();
    "dailyValue" UsdADay "what the linear part releases" e => e.linear_unlocks.get()?.daily_value.copied();
    "referencePrice" Price "the price that values are reckoned with" e => reference_price(e);
    "referencePriceUpdatedTime" Time "of when that price is" e => reference_price_time(e);
    "unlockPrecision" Text "how exact the date is, of the least exact recipient" e => least_exact_precision(e);
    "committedAmount" Tokens "what the project announced that it will claim" e => committed(e, |claim| claim.amount.copied());
    "committedValue" Usd "what the announced claim is worth" e => committed(e, |claim| claim.value.copied());
    "allocations" Items(Unlock) "the recipients: parts of the cliff, then linear segments" e => both_halves;
    "tokenName" Text "the token's name, as this record has it" e => e.token_name.as_str();
    "tokenSymbol" Text "the token's ticker, as this record has it" e => e.token_symbol.as_str();
    "listedMethod" Text "who keeps the schedule" e => e.listed_method.as_str();
    "dataSource" Text "where the source has it from" e => e.data_source.as_str();
    "latestUpdateDate" Time "when the source last worked on it" e => e.latest_update_date.copied();
    "committedClaim.amount" Tokens "as `committedAmount`" e => committed(e, |claim| claim.amount.copied());
    "committedClaim.value" Usd "as `committedValue`" e => committed(e, |claim| claim.value.copied());
    "committedClaim.timestamp" Time "when the claim was announced" e => claims(e).find_map(|claim| unix_time(claim.timestamp.copied()));
    "cliffUnlocks.cliffAmount" Tokens "as `cliffAmount`" e => e.cliff_amount();
    "cliffUnlocks.cliffValue" Usd "as `cliffValue`" e => e.cliff_value();
    "cliffUnlocks.valueToMarketCap" Percent "as `valueToMarketCap`" e => e.value_to_market_cap();
    "cliffUnlocks.referencePrice" Price "the price that the cliff is valued with" e => e.cliff_unlocks.get()?.reference_price.copied();
    "cliffUnlocks.referencePriceUpdatedTime" Time "of when that price is" e => e.cliff_unlocks.get()?.reference_price_updated_time.copied();
    "cliffUnlocks.allocationBreakdown" Items(Unlock) "the recipients of the cliff alone" e => cliff_items;
    "linearUnlocks.linearAmount" Tokens "as `linearAmount`" e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearUnlocks.linearValue" Usd "as `linearValue`" e => e.linear_unlocks.get()?.linear_value.copied();
    "linearUnlocks.dailyAmount" TokensADay "as `dailyAmount`" e => e.linear_unlocks.get()?.daily_amount.copied();
    "linearUnlocks.dailyValue" UsdADay "as `dailyValue`" e => e.linear_unlocks.get()?.daily_value.copied();
    "linearUnlocks.referencePrice" Price "the price that the linear part is valued with" e => e.linear_unlocks.get()?.reference_price.copied();
    "linearUnlocks.referencePriceUpdatedTime" Time "of when that price is" e => e.linear_unlocks.get()?.reference_price_updated_time.copied();
    "linearUnlocks.allocationBreakdown" Items(Unlock) "the recipients of the linear part alone" e => linear_items;
};

static BURN: &[FieldDef<Record>] = record_fields! { Burn:
    "amount" Tokens "what was burned" b => b.amount.copied();
    "value" Usd "what it was worth" b => b.value.copied();
    "pricePerToken" Price "the price on that day" b => b.price_per_token.copied();
    "burnDate" Time "when" b => b.burn_date.copied();
    "burnType" Text "how it came about" b => b.burn_type.as_str();
    "burnEventLabel" Text "what the source calls it" b => b.burn_event_label.as_str();
    "burners" Texts "who burned" b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "burnReasons" Texts "why" b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
    "metadata.burners" Texts "as `burners`" b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "metadata.burnReasons" Texts "as `burnReasons`" b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
};

static BUYBACK: &[FieldDef<Record>] = record_fields! { Buyback:
    "tokenAmount" Tokens "what was bought back" b => b.token_amount.copied();
    "value" Usd "what it was worth" b => b.value.copied();
    "spentAmount" Number "what was paid, in `spentUnit`" b => b.spent_amount.copied();
    "spentUnit" Text "in what it was paid" b => b.spent_unit.as_str();
    "buybackDate" Time "when" b => b.buyback_date.copied();
    "buybackType" Text "how it came about" b => b.buyback_type.as_str();
    "buybackEventLabel" Text "what the source calls it" b => b.buyback_event_label.as_str();
    "targetAddress" Text "where the tokens went" b => b.target_address.as_str();
    "buyerAddress" Text "who bought" b => b.buyer_address.as_str();
    "resolution" Text "the span of time that one record sums up" b => b.resolution.as_str();
    "basis" Text "how the source knows" b => b.basis.as_str();
};

static EMISSION: &[FieldDef<Record>] = record_fields! { Emission:
    "startDate" Time "the first instant of the day or week" e => e.start_date.copied();
    "endDate" Time "its last instant" e => e.end_date.copied();
    "unlockAmount" Tokens "what was released in it" e => e.unlock_amount.copied();
    "unlockValue" Usd "what that is worth" e => e.unlock_value.copied();
    "referencePrice" Price "the price that values are reckoned with" e => e.reference_price.copied();
    "totalCumulativeUnlockedAmount" Tokens "all that was released up to then" e => e.total_cumulative_unlocked_amount.copied();
    "allocations" Items(Emission) "the recipients" e => emission_items;
    "standardAllocations" Texts "the recipients' categories" e => e.standard_allocations.get().map(Vec::as_slice);
    "committedAmount" Tokens "what the project announced that it will claim" e => e.committed_claim.get()?.amount.copied();
    "committedValue" Usd "what the announced claim is worth" e => e.committed_claim.get()?.value.copied();
    "tokenName" Text "the token's name, as this record has it" e => e.token_name.as_str();
    "tokenSymbol" Text "the token's ticker, as this record has it" e => e.token_symbol.as_str();
    "listedMethod" Text "who keeps the schedule" e => e.listed_method.as_str();
    "committedClaim.amount" Tokens "as `committedAmount`" e => e.committed_claim.get()?.amount.copied();
    "committedClaim.value" Usd "as `committedValue`" e => e.committed_claim.get()?.value.copied();
    "committedClaim.timestamp" Time "when the claim was announced" e => unix_time(e.committed_claim.get()?.timestamp.copied());
};

static ALLOCATION: &[FieldDef<Record>] = record_fields! { Allocation:
    "allocationName" Text "the recipient, as the project calls it" a => a.allocation_name.as_str();
    "standardAllocationName" Text "its category" a => a.standard_allocation_name.as_str();
    "allocationType" Text "how it vests" a => a.allocation_type.as_str();
    "allocationAmount" Tokens "what it gets in all" a => a.allocation_amount.copied();
    "allocationUnlockedAmount" Tokens "what of it is unlocked" a => a.allocation_unlocked_amount.copied();
    "allocationLockedAmount" Tokens "what of it is locked" a => a.allocation_locked_amount.copied();
    "trackedAllocationPercentage" Percent "its part of all that is tracked" a => a.tracked_allocation_percentage.copied();
};

static FUNDING: &[FieldDef<Record>] = record_fields! { Funding:
    "roundName" Text "which round" f => f.round_name.as_str();
    "fundingDate" Time "when" f => f.funding_date.copied();
    "totalAmountRaisedinThatRound" Usd "what was raised in it, by all" f => f.total_amount_raised.copied();
    "valuation" Usd "at which valuation" f => f.valuation.copied();
    "pricePerToken" Price "what a token cost in it" f => f.price_per_token.copied();
    "investorName" Text "who invested" f => f.investor_name.as_str();
    "investorId" Text "the investor's id" f => f.investor_id.as_str();
    "isLeadInvestor" Bool "whether this investor led the round" f => f.is_lead_investor.copied();
    "tokenId" Text "in which token" f => f.token_id.as_str();
};

pub static TOKEN: &[FieldDef<Token>] = fields! {
    "token.id" Text "its slug: what `tokens` and [watch] name" t => Some(t.id.as_str());
    "token.name" Text "its name" t => Some(t.name());
    "token.symbol" Text "its ticker, which several tokens may share" t => Some(t.symbol());
    "token.groups" Texts "its groups of [watch.groups]" t => Some(&t.groups);
    "token.listedMethod" Text "who keeps its schedule" t => t.item.listed_method.as_str();
    "token.marketCap" Usd "price times circulating supply" t => t.item.market_cap.copied();
    "token.maxSupply" Tokens "all that there may ever be" t => t.item.max_supply.copied();
    "token.circulatingSupply" Tokens "all that is in circulation" t => t.item.circulating_supply.copied();
    "token.totalLockedAmount" Tokens "all that is locked" t => t.item.total_locked_amount.copied();
    "token.tbdLockedAmount" Tokens "what is locked without a date" t => t.item.tbd_locked_amount.copied();
    "token.unlockedAmount" Tokens "all that is unlocked" t => t.item.unlocked_amount.copied();
    "token.untrackedAmount" Tokens "what no schedule covers" t => t.item.untracked_amount.copied();
    "token.hasStandardAllocation" Bool "whether categories of recipients are known" t => t.item.has_standard_allocation.copied();
    "token.hasFundraising" Bool "whether rounds are known" t => t.item.has_fundraising.copied();
    "token.hasBurn" Bool "whether burns are known" t => t.item.has_burn.copied();
    "token.hasBuyback" Bool "whether buybacks are known" t => t.item.has_buyback.copied();
    "token.hasCommittedClaim" Bool "whether a claim was announced" t => t.item.has_committed_claim.copied();
    "token.latestFundraisingRound" Text "its latest round" t => t.item.latest_fundraising_round.as_str();
    "token.websiteUrl" Text "its website" t => t.item.website_url.as_str();
    "token.lastUpdatedDate" Time "when the source last changed anything of it" t => t.item.last_updated_date.copied();
};

pub static SOURCE: &[FieldDef<SourceFacts>] = fields! {
    "source.kind" Text "what is wrong" s => Some(&s.kind);
    "source.endpoint" Text "with which endpoint" s => s.endpoint.as_deref();
    "source.receiver" Text "with which receiver" s => s.receiver.as_deref();
    "source.message" Text "what failed, for people" s => Some(&s.message);
    "source.count" Count "feeds or deliveries concerned" s => Some(f64::from(s.count));
    "source.since" Time "since when" s => Some(s.since);
};

pub static CHANGE: &[FieldDef<Change>] = fields! {
    "change.kind" Text "what happened: one of the kinds of change" c => Some(c.kind.as_str());
    "change.from" Fact "before: a date, an amount or a name, by the kind" c => c.from.as_ref();
    "change.to" Fact "after: a date, an amount or a name, by the kind" c => c.to.as_ref();
    "change.shiftDays" Days "by how much it moved; negative is earlier" c => c.shift_days;
    "change.shiftDaysMin" Days "the smallest move, where parts moved differently" c => c.shift_days_min.or(c.shift_days);
    "change.shiftDaysMax" Days "the largest move" c => c.shift_days_max.or(c.shift_days);
    // To zero it is 0; from zero there is none, and a comparison with it is neither true nor false.
    "change.ratio" Ratio "after divided by before: 0.5 is half" c => c.ratio;
    "change.amount" Tokens "the tokens concerned" c => c.amount;
    "change.count" Count "how many tranches it touches" c => Some(f64::from(c.count));
    "change.summary" Text "the correction in a sentence" c => Some(&c.summary);
    "change.allocations" Items(Change) "the recipients concerned" c => changed_allocations;
};

totals_fields! { TOTALS, MEMBER_TOTALS:
    "marketCap" Usd "of the token; of a group, all together" t => t.market_cap;
    "lastBurn.date" Time "when the latest burn was" t => t.last_burn.map(|last| last.at);
    "lastBurn.amount" Tokens "what it burned" t => t.last_burn?.amount;
    "lastBurn.value" Usd "what that was worth" t => t.last_burn?.value;
    "lastBuyback.date" Time "when the latest buyback was" t => t.last_buyback.map(|last| last.at);
    "lastBuyback.amount" Tokens "what it bought back" t => t.last_buyback?.amount;
    "lastBuyback.value" Usd "what that was worth" t => t.last_buyback?.value;
}

// Fields that only a token has: a group's tokens cannot be added up.
totals_fields! { TOTALS_OF_TOKEN, MEMBER_SUPPLY:
    "maxSupply" Tokens "all that there may ever be" t => t.max_supply;
    "circulatingSupply" Tokens "all that is in circulation" t => t.circulating_supply;
}

/// Fields that only a group has.
pub static TOTALS_OF_GROUP: &[FieldDef<Totals>] = fields! {
    "group" Text "the group's name; none where all watched tokens are meant" t => t.group.as_deref();
    "tokenCount" Count "how many tokens it has" t => u32::try_from(t.members.len()).ok().map(f64::from);
    "tokens" Items(Member) "its tokens, each with fields and windows of its own" t => members;
};

static MEMBER: &[ItemField] = item_fields! {
    "id" Text "slug" Member m => Some(m.id.as_str());
    "symbol" Text "ticker" Member m => Some(&m.symbol);
    "name" Text "name" Member m => Some(&m.name);
    "share" Percent "percent of the group's market cap" Member m => m.share;
};

static UNLOCK_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text "the recipient, as the project calls it" = item_name;
    "standardAllocationName" Text "its category" = item_category;
    "cliffAmount" Tokens "what it gets at once" Cliff c => c.cliff_amount.copied();
    "cliffValue" Usd "what that is worth" Cliff c => c.cliff_value.copied();
    "unlockDate" Time "when" Cliff c => c.unlock_date.copied();
    "unlockPrecision" Text "how exact that date is" = part_precision;
    "referencePrice" Price "the price that its part is valued with" = part_reference_price;
    "committedAmount" Tokens "what was announced of its part" Cliff c => c.committed_claim.get()?.amount.copied();
    "committedValue" Usd "what that is worth" Cliff c => c.committed_claim.get()?.value.copied();
    "linearAmount" Tokens "what it gets little by little" Linear l => l.linear_amount.copied();
    "linearValue" Usd "what that is worth" Linear l => l.linear_value.copied();
    "dailyAmount" TokensADay "what it gets" Linear l => l.daily_amount.copied();
    "dailyValue" UsdADay "what that is worth" Linear l => l.daily_value.copied();
    "durationOfRate" Days "for how long" Linear l => l.duration_of_rate.copied();
    "beginDate" Time "from when on" Linear l => l.begin_date.copied();
    "endDate" Time "until when" Linear l => l.end_date.copied();
};

static EMISSION_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text "the recipient, as the project calls it" = item_name;
    "standardAllocationName" Text "its category" = item_category;
    "unlockAmount" Tokens "what it got" Emission e => e.unlock_amount.copied();
    "unlockValue" Usd "what that is worth" Emission e => e.unlock_value.copied();
};

static CHANGE_ITEM: &[ItemField] = item_fields! {
    "name" Text "the recipient, as the project calls it" = item_name;
    "from" Fact "before: a date, an amount or a name" Change c => c.from.as_ref();
    "to" Fact "after" Change c => c.to.as_ref();
    "shiftDays" Days "by how much its part moved" Change c => c.shift_days;
    "ratio" Ratio "after divided by before" Change c => c.ratio;
    "count" Count "how many of its tranches are touched" Change c => Some(f64::from(c.count));
};

/// Fields of the records of `resource`; names with a dot are the nested spelling of the wire.
pub fn of_record(resource: Resource) -> &'static [FieldDef<Record>] {
    match resource {
        Resource::Unlock => UNLOCK,
        Resource::Burn => BURN,
        Resource::Buyback => BUYBACK,
        Resource::Emission => EMISSION,
        Resource::Allocation => ALLOCATION,
        Resource::Funding => FUNDING,
    }
}

/// Fields of the items of a list.
pub fn of_item(kind: ItemKind) -> impl Iterator<Item = &'static ItemField> + Clone {
    let (own, supply, totals): (&[ItemField], &[ItemField], &[ItemField]) = match kind {
        ItemKind::Unlock => (UNLOCK_ITEM, &[], &[]),
        ItemKind::Emission => (EMISSION_ITEM, &[], &[]),
        ItemKind::Change => (CHANGE_ITEM, &[], &[]),
        ItemKind::Member => (MEMBER, MEMBER_SUPPLY, MEMBER_TOTALS),
    };
    own.iter().chain(supply).chain(totals)
}

fn changed_allocations<'a>(change: &'a Change, visit: ItemVisitor<'a, '_>) -> Option<()> {
    change.allocations.iter().all(|item| visit(ListItem::Change(item)));
    Some(())
}

fn members<'a>(totals: &'a Totals, visit: ItemVisitor<'a, '_>) -> Option<()> {
    totals.members.iter().all(|member| visit(ListItem::Member(member)));
    Some(())
}
