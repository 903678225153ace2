//! The fields that conditions and templates can use: the API's field names of each resource, with typed readers.
//!
//! To add a field, add a line to its table: name, type or unit, description, reader. The checker, its suggestions and unit
//! warnings, the template trial, and the reference all use these tables. [`reader`] defines the parts of a line, and
//! [`recipients`] contains the readers that combine several parts of a record.

mod reader;
mod recipients;

use crate::aggregate::Totals;
use model::{Change, Recipient, Record, Resource, Token};

use super::scope::SourceFacts;

pub use reader::{FieldDef, FieldReader, ItemField, ItemKind, ItemReader, ItemVisitor, ListItem, NumberUnit};
use recipients::{
    cliff_items, committed, committed_claims, each_share, emission_items, least_exact_precision, linear_items, part_precision,
    part_reference_price, reference_price, unix_time,
};
pub use recipients::{each_recipient, item_category, item_name, reference_price_time};

/// Maps the type or unit in a table to a reader.
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
    ($reader:ident Fraction $read:expr) => {
        $reader::Number(NumberUnit::Fraction, $read)
    };
    ($reader:ident Count $read:expr) => {
        $reader::Number(NumberUnit::Count, $read)
    };
    ($reader:ident $kind:ident $read:expr) => {
        $reader::$kind($read)
    };
}

/// Declares the fields of the records of one resource. `Items` are read by a function that visits them.
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

/// Declares the fields of anything but records and list items.
macro_rules! fields {
    ($($name:literal $kind:ident $(($items:ident))? $about:literal $item:ident => $read:expr;)*) => {
        &[$(FieldDef { name: $name, about: $about, old: $name, new: $name, read: fields!(@ $kind $(($items))? $item $read) }),*]
    };
    (@ Items($items:ident) $item:ident $read:expr) => { FieldReader::Items(ItemKind::$items, |$item, visit| $read($item, visit)) };
    (@ $kind:ident $item:ident $read:expr) => { reader!(FieldReader $kind |$item| $read) };
}

/// Declares the fields of list items, read from one variant of [`ListItem`] or by a function that handles several.
macro_rules! item_fields {
    ($($name:literal $kind:ident $about:literal $(= $function:ident)? $($variant:ident $item:ident => $read:expr)?;)*) => {
        &[$(ItemField { name: $name, about: $about, read: item_fields!(@ $kind $($function)? $($variant $item => $read)?) }),*]
    };
    (@ $kind:ident $variant:ident $item:ident => $read:expr) => {
        reader!(ItemReader $kind |item| if let ListItem::$variant($item) = item { $read } else { None })
    };
    (@ $kind:ident $function:ident) => { reader!(ItemReader $kind $function) };
}

/// Declares fields of totals. The same line serves a token or group as a whole, and each token of a group.
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
    "unlockDate" Time "date of the unlock" e => e.unlock_date.copied();
    "cliffAmount" Tokens "tokens of the cliff, for all recipients" e => e.cliff_amount();
    "cliffValue" Usd "value of the cliff" e => e.cliff_value();
    "valueToMarketCap" Percent "value of the cliff as a percentage of market cap: 2 is 2 %" e => e.value_to_market_cap();
    "linearAmount" Tokens "tokens of the linear unlocks that start on this date" e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearValue" Usd "value of the linear unlocks" e => e.linear_unlocks.get()?.linear_value.copied();
    "dailyAmount" TokensADay "daily release of the linear unlocks" e => e.linear_unlocks.get()?.daily_amount.copied();
    "dailyValue" UsdADay "daily release of the linear unlocks" e => e.linear_unlocks.get()?.daily_value.copied();
    "referencePrice" Price "price used for the values" e => reference_price(e);
    "referencePriceUpdatedTime" Time "time of that price" e => reference_price_time(e);
    "unlockPrecision" Text "precision of the least precise recipient's date" e => least_exact_precision(e);
    "committedAmount" Tokens "tokens that the project announced to claim" e => committed(e, |claim| claim.amount.copied());
    "committedValue" Usd "value of the announced claim" e => committed(e, |claim| claim.value.copied());
    "allocations" Items(Unlock) "recipients of the cliff, then of the linear segments" e => each_share;
    "insiderShare" Fraction "fraction of the cliff (of the linear unlocks if there is no cliff) for founders, team, and private investors: 0.5 is half" e => Recipient::share_of(e, Recipient::is_insider);
    "teamShare" Fraction "the same fraction for founders and team only" e => Recipient::share_of(e, |of| of == Recipient::Team);
    "investorShare" Fraction "the same fraction for private investors only" e => Recipient::share_of(e, |of| of == Recipient::Private);
    "tokenName" Text "token name in this record" e => e.token_name.as_str();
    "tokenSymbol" Text "token symbol in this record" e => e.token_symbol.as_str();
    "listedMethod" Text "origin of the schedule, such as AI or INTERNAL" e => e.listed_method.as_str();
    "dataSource" Text "origin of the data, as reported by the source" e => e.data_source.as_str();
    "latestUpdateDate" Time "last update by the source" e => e.latest_update_date.copied();
    "committedClaim.amount" Tokens "same as `committedAmount`" e => committed(e, |claim| claim.amount.copied());
    "committedClaim.value" Usd "same as `committedValue`" e => committed(e, |claim| claim.value.copied());
    "committedClaim.timestamp" Time "time of the announcement" e => committed_claims(e).find_map(|claim| unix_time(claim.timestamp.copied()));
    "cliffUnlocks.cliffAmount" Tokens "same as `cliffAmount`" e => e.cliff_amount();
    "cliffUnlocks.cliffValue" Usd "same as `cliffValue`" e => e.cliff_value();
    "cliffUnlocks.valueToMarketCap" Percent "same as `valueToMarketCap`" e => e.value_to_market_cap();
    "cliffUnlocks.referencePrice" Price "price used for the value of the cliff" e => e.cliff_unlocks.get()?.reference_price.copied();
    "cliffUnlocks.referencePriceUpdatedTime" Time "time of that price" e => e.cliff_unlocks.get()?.reference_price_updated_time.copied();
    "cliffUnlocks.allocationBreakdown" Items(Unlock) "recipients of the cliff only" e => cliff_items;
    "linearUnlocks.linearAmount" Tokens "same as `linearAmount`" e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearUnlocks.linearValue" Usd "same as `linearValue`" e => e.linear_unlocks.get()?.linear_value.copied();
    "linearUnlocks.dailyAmount" TokensADay "same as `dailyAmount`" e => e.linear_unlocks.get()?.daily_amount.copied();
    "linearUnlocks.dailyValue" UsdADay "same as `dailyValue`" e => e.linear_unlocks.get()?.daily_value.copied();
    "linearUnlocks.referencePrice" Price "price used for the value of the linear unlocks" e => e.linear_unlocks.get()?.reference_price.copied();
    "linearUnlocks.referencePriceUpdatedTime" Time "time of that price" e => e.linear_unlocks.get()?.reference_price_updated_time.copied();
    "linearUnlocks.allocationBreakdown" Items(Unlock) "recipients of the linear unlocks only" e => linear_items;
};

static BURN: &[FieldDef<Record>] = record_fields! { Burn:
    "amount" Tokens "tokens burned" b => b.amount.copied();
    "value" Usd "value of the burn" b => b.value.copied();
    "pricePerToken" Price "price on that day" b => b.price_per_token.copied();
    "burnDate" Time "date of the burn" b => b.burn_date.copied();
    "burnType" Text "type of burn" b => b.burn_type.as_str();
    "burnEventLabel" Text "name given by the source" b => b.burn_event_label.as_str();
    "burners" Texts "parties that burned" b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "burnReasons" Texts "reasons for the burn" b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
    "metadata.burners" Texts "same as `burners`" b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "metadata.burnReasons" Texts "same as `burnReasons`" b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
};

static BUYBACK: &[FieldDef<Record>] = record_fields! { Buyback:
    "tokenAmount" Tokens "tokens bought back" b => b.token_amount.copied();
    "value" Usd "value of the buyback" b => b.value.copied();
    "spentAmount" Number "amount paid, in `spentUnit`" b => b.spent_amount.copied();
    "spentUnit" Text "unit of `spentAmount`" b => b.spent_unit.as_str();
    "buybackDate" Time "date of the buyback" b => b.buyback_date.copied();
    "buybackType" Text "type of buyback" b => b.buyback_type.as_str();
    "buybackEventLabel" Text "name given by the source" b => b.buyback_event_label.as_str();
    "targetAddress" Text "address that received the tokens" b => b.target_address.as_str();
    "buyerAddress" Text "address of the buyer" b => b.buyer_address.as_str();
    "resolution" Text "length of time that one record covers" b => b.resolution.as_str();
    "basis" Text "basis of the data, as reported by the source" b => b.basis.as_str();
};

static EMISSION: &[FieldDef<Record>] = record_fields! { Emission:
    "startDate" Time "first instant of the day or week" e => e.start_date.copied();
    "endDate" Time "last instant of the day or week" e => e.end_date.copied();
    "unlockAmount" Tokens "tokens released in that time" e => e.unlock_amount.copied();
    "unlockValue" Usd "value of these tokens" e => e.unlock_value.copied();
    "referencePrice" Price "price used for the values" e => e.reference_price.copied();
    "totalCumulativeUnlockedAmount" Tokens "all tokens released up to then" e => e.total_cumulative_unlocked_amount.copied();
    "allocations" Items(Emission) "recipients" e => emission_items;
    "standardAllocations" Texts "categories of the recipients" e => e.standard_allocations.get().map(Vec::as_slice);
    "committedAmount" Tokens "tokens that the project announced to claim" e => e.committed_claim.get()?.amount.copied();
    "committedValue" Usd "value of the announced claim" e => e.committed_claim.get()?.value.copied();
    "tokenName" Text "token name in this record" e => e.token_name.as_str();
    "tokenSymbol" Text "token symbol in this record" e => e.token_symbol.as_str();
    "listedMethod" Text "origin of the schedule, such as AI or INTERNAL" e => e.listed_method.as_str();
    "committedClaim.amount" Tokens "same as `committedAmount`" e => e.committed_claim.get()?.amount.copied();
    "committedClaim.value" Usd "same as `committedValue`" e => e.committed_claim.get()?.value.copied();
    "committedClaim.timestamp" Time "time of the announcement" e => unix_time(e.committed_claim.get()?.timestamp.copied());
};

static ALLOCATION: &[FieldDef<Record>] = record_fields! { Allocation:
    "allocationName" Text "allocation name used by the project" a => a.allocation_name.as_str();
    "standardAllocationName" Text "category of the allocation" a => a.standard_allocation_name.as_str();
    "allocationType" Text "vesting type" a => a.allocation_type.as_str();
    "allocationAmount" Tokens "total tokens of the allocation" a => a.allocation_amount.copied();
    "allocationUnlockedAmount" Tokens "tokens unlocked so far" a => a.allocation_unlocked_amount.copied();
    "allocationLockedAmount" Tokens "tokens still locked" a => a.allocation_locked_amount.copied();
    "trackedAllocationPercentage" Percent "percentage of all tracked tokens" a => a.tracked_allocation_percentage.copied();
};

static FUNDING: &[FieldDef<Record>] = record_fields! { Funding:
    "roundName" Text "name of the round" f => f.round_name.as_str();
    "fundingDate" Time "date of the round" f => f.funding_date.copied();
    "totalAmountRaisedinThatRound" Usd "total raised in the round" f => f.total_amount_raised.copied();
    "valuation" Usd "valuation in the round" f => f.valuation.copied();
    "pricePerToken" Price "token price in the round" f => f.price_per_token.copied();
    "investorName" Text "name of the investor" f => f.investor_name.as_str();
    "investorId" Text "id of the investor" f => f.investor_id.as_str();
    "isLeadInvestor" Bool "true if this investor led the round" f => f.is_lead_investor.copied();
    "tokenId" Text "slug of the token" f => f.token_id.as_str();
};

pub static TOKEN: &[FieldDef<Token>] = fields! {
    "token.id" Text "slug of the token, used by `tokens` and [watch]" t => Some(t.id.as_str());
    "token.name" Text "name of the token" t => Some(t.name());
    "token.symbol" Text "symbol of the token; several tokens can share one" t => Some(t.symbol());
    "token.groups" Texts "groups of the token in [watch.groups]" t => Some(&t.groups);
    "token.listedMethod" Text "origin of the schedule, such as AI or INTERNAL" t => t.item.listed_method.as_str();
    "token.marketCap" Usd "price times circulating supply" t => t.item.market_cap.copied();
    "token.maxSupply" Tokens "max supply" t => t.item.max_supply.copied();
    "token.circulatingSupply" Tokens "circulating supply" t => t.item.circulating_supply.copied();
    "token.totalLockedAmount" Tokens "tokens still locked" t => t.item.total_locked_amount.copied();
    "token.tbdLockedAmount" Tokens "locked tokens without a date" t => t.item.tbd_locked_amount.copied();
    "token.unlockedAmount" Tokens "tokens unlocked so far" t => t.item.unlocked_amount.copied();
    "token.untrackedAmount" Tokens "tokens that no schedule covers" t => t.item.untracked_amount.copied();
    "token.hasStandardAllocation" Bool "true if recipient categories are known" t => t.item.has_standard_allocation.copied();
    "token.hasFundraising" Bool "true if funding rounds are known" t => t.item.has_fundraising.copied();
    "token.hasBurn" Bool "true if burns are known" t => t.item.has_burn.copied();
    "token.hasBuyback" Bool "true if buybacks are known" t => t.item.has_buyback.copied();
    "token.hasCommittedClaim" Bool "true if a claim was announced" t => t.item.has_committed_claim.copied();
    "token.latestFundraisingRound" Text "latest funding round" t => t.item.latest_fundraising_round.as_str();
    "token.websiteUrl" Text "website of the token" t => t.item.website_url.as_str();
    "token.lastUpdatedDate" Time "last update by the source" t => t.item.last_updated_date.copied();
};

pub static SOURCE: &[FieldDef<SourceFacts>] = fields! {
    "source.kind" Text "kind of incident" s => Some(&s.kind);
    "source.endpoint" Text "affected endpoint" s => s.endpoint.as_deref();
    "source.receiver" Text "affected receiver" s => s.receiver.as_deref();
    "source.message" Text "description of the failure" s => Some(&s.message);
    "source.count" Count "number of affected feeds or deliveries" s => Some(f64::from(s.count));
    "source.since" Time "start of the incident" s => Some(s.since);
};

pub static CHANGE: &[FieldDef<Change>] = fields! {
    "change.kind" Text "change kind, such as rescheduled" c => Some(c.kind.as_str());
    "change.from" Fact "date, amount, or name before the change" c => c.from.as_ref();
    "change.to" Fact "date, amount, or name after the change" c => c.to.as_ref();
    "change.shiftDays" Days "days by which it moved; negative is earlier" c => c.shift_days;
    "change.shiftDaysMin" Days "smallest move of the parts" c => c.shift_days_min.or(c.shift_days);
    "change.shiftDaysMax" Days "largest move of the parts" c => c.shift_days_max.or(c.shift_days);
    // The ratio is 0 if the new value is zero, and missing if the old value is zero.
    "change.ratio" Ratio "new value divided by old value: 0.5 is half" c => c.ratio;
    "change.amount" Tokens "affected tokens" c => c.amount;
    "change.count" Count "number of affected tranches" c => Some(f64::from(c.count));
    "change.summary" Text "summary of the correction in one sentence" c => Some(&c.summary);
    "change.allocations" Items(Change) "affected recipients" c => changed_allocations;
};

totals_fields! { TOTALS, MEMBER_TOTALS:
    "marketCap" Usd "market cap of the token, or of all tokens of the group" t => t.market_cap;
    "linearPerDayValue" UsdADay "value of the tokens that unlock linearly per day now; missing if linear unlocks or a price are not known" t => t.supply.as_ref()?.per_day_value;
    "lastBurn.date" Time "date of the latest burn" t => t.last_burn.map(|last| last.at);
    "lastBurn.amount" Tokens "tokens of the latest burn" t => t.last_burn?.amount;
    "lastBurn.value" Usd "value of the latest burn" t => t.last_burn?.value;
    "lastBuyback.date" Time "date of the latest buyback" t => t.last_buyback.map(|last| last.at);
    "lastBuyback.amount" Tokens "tokens of the latest buyback" t => t.last_buyback?.amount;
    "lastBuyback.value" Usd "value of the latest buyback" t => t.last_buyback?.value;
}

// Only tokens have these fields, because amounts of different tokens cannot be added.
totals_fields! { TOTALS_OF_TOKEN, MEMBER_SUPPLY:
    "maxSupply" Tokens "max supply" t => t.max_supply;
    "circulatingSupply" Tokens "circulating supply" t => t.circulating_supply;
    "linearPerDay" TokensADay "tokens that unlock linearly per day now; missing if linear unlocks are not known" t => t.supply.as_ref()?.per_day;
    "nextRate.date" Time "next date on which `linearPerDay` changes; missing if none is known" t => Some(t.supply.as_ref()?.next_rate?.at);
    "nextRate.perDay" TokensADay "`linearPerDay` from then on" t => Some(t.supply.as_ref()?.next_rate?.per_day);
    "nextRate.change" Ratio "`nextRate.perDay` divided by `linearPerDay`: 0.5 is half; infinite if nothing unlocks linearly now" t => t.supply.as_ref()?.rate_change();
}

/// Returns whether a field of the totals follows from the daily release of a token.
pub fn is_of_supply(name: &str) -> bool {
    name.starts_with("linearPerDay") || name.starts_with("nextRate.")
}

pub static TOTALS_OF_GROUP: &[FieldDef<Totals>] = fields! {
    "group" Text "name of the group; missing for all watched tokens" t => t.group.as_deref();
    "tokenCount" Count "number of tokens" t => u32::try_from(t.members.len()).ok().map(f64::from);
    "tokens" Items(Member) "tokens of the group, each with its own fields and windows" t => members;
};

static MEMBER: &[ItemField] = item_fields! {
    "id" Text "slug of the token" Member m => Some(m.id.as_str());
    "symbol" Text "symbol of the token" Member m => Some(&m.symbol);
    "name" Text "name of the token" Member m => Some(&m.name);
    "share" Percent "percentage of the group's market cap" Member m => m.share;
};

static UNLOCK_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text "allocation name used by the project" = item_name;
    "standardAllocationName" Text "category of the allocation" = item_category;
    "cliffAmount" Tokens "tokens of its cliff" Cliff c => c.cliff_amount.copied();
    "cliffValue" Usd "value of its cliff" Cliff c => c.cliff_value.copied();
    "unlockDate" Time "date of the unlock" Cliff c => c.unlock_date.copied();
    "unlockPrecision" Text "precision of the date" = part_precision;
    "referencePrice" Price "price used for its value" = part_reference_price;
    "committedAmount" Tokens "announced claim of its part" Cliff c => c.committed_claim.get()?.amount.copied();
    "committedValue" Usd "value of the announced claim" Cliff c => c.committed_claim.get()?.value.copied();
    "linearAmount" Tokens "tokens of its linear unlock" Linear l => l.linear_amount.copied();
    "linearValue" Usd "value of its linear unlock" Linear l => l.linear_value.copied();
    "dailyAmount" TokensADay "daily release" Linear l => l.daily_amount.copied();
    "dailyValue" UsdADay "daily release" Linear l => l.daily_value.copied();
    "durationOfRate" Days "length of the linear unlock" Linear l => l.duration_of_rate.copied();
    "beginDate" Time "start of the linear unlock" Linear l => l.begin_date.copied();
    "endDate" Time "end of the linear unlock" Linear l => l.end_date.copied();
};

static EMISSION_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text "allocation name used by the project" = item_name;
    "standardAllocationName" Text "category of the allocation" = item_category;
    "unlockAmount" Tokens "tokens released" Emission e => e.unlock_amount.copied();
    "unlockValue" Usd "value of these tokens" Emission e => e.unlock_value.copied();
};

static CHANGE_ITEM: &[ItemField] = item_fields! {
    "name" Text "allocation name used by the project" = item_name;
    "from" Fact "date, amount, or name before the change" Change c => c.from.as_ref();
    "to" Fact "date, amount, or name after the change" Change c => c.to.as_ref();
    "shiftDays" Days "days by which its part moved" Change c => c.shift_days;
    "ratio" Ratio "new value divided by old value" Change c => c.ratio;
    "count" Count "number of its affected tranches" Change c => Some(f64::from(c.count));
};

/// Returns the fields of the records of a resource. Names with a dot are the nested names of the API.
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
