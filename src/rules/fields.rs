//! The fields that conditions and templates may use: for each resource the names on the wire, with a typed way to read each.
//!
//! To add a field, add a line to its table here: name, type, how to read it. Conditions call that function at every evaluation,
//! templates at every rendering; the checker, its suggestions, the warnings about units and the trial of templates read the same
//! tables, so none can know a name that another does not. [`reader`] holds the shape of a line, [`recipients`] the readers that look in
//! several places of a record.

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
    ($reader:ident $kind:ident $read:expr) => {
        $reader::$kind($read)
    };
}

/// Fields of records of one resource. `Items` are read by a function that visits them.
macro_rules! record_fields {
    ($resource:ident: $($name:literal $kind:ident $(($items:ident))? $item:ident => $read:expr;)*) => {
        &[$(FieldDef {
            name: $name,
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
    ($($name:literal $kind:ident $(($items:ident))? $item:ident => $read:expr;)*) => {
        &[$(FieldDef { name: $name, old: $name, new: $name, read: fields!(@ $kind $(($items))? $item $read) }),*]
    };
    (@ Items($items:ident) $item:ident $read:expr) => { FieldReader::Items(ItemKind::$items, |$item, visit| $read($item, visit)) };
    (@ $kind:ident $item:ident $read:expr) => { reader!(FieldReader $kind |$item| $read) };
}

/// Fields of the items of a list: read from one variant of [`ListItem`], or by a function that knows several.
macro_rules! item_fields {
    ($($name:literal $kind:ident $(= $function:ident)? $($variant:ident $item:ident => $read:expr)?;)*) => {
        &[$(ItemField { name: $name, read: item_fields!(@ $kind $($function)? $($variant $item => $read)?) }),*]
    };
    (@ $kind:ident $variant:ident $item:ident => $read:expr) => {
        reader!(ItemReader $kind |item| if let ListItem::$variant($item) = item { $read } else { None })
    };
    (@ $kind:ident $function:ident) => { reader!(ItemReader $kind $function) };
}

/// Fields of totals: the same line reads them of a token or group as a whole, and of each token of a group.
macro_rules! totals_fields {
    ($totals:ident, $members:ident: $($name:literal $kind:ident $item:ident => $read:expr;)*) => {
        pub static $totals: &[FieldDef<Totals>] = fields! { $($name $kind $item => $read;)* };
        static $members: &[ItemField] = item_fields! { $($name $kind Member member => {
            let $item = &member.totals;
            $read
        };)* };
    };
}

static UNLOCK: &[FieldDef<Record>] = record_fields! { Unlock:
    "unlockDate" Time e => e.unlock_date.copied();
    "cliffAmount" Number e => e.cliff_amount();
    "cliffValue" Usd e => e.cliff_value();
    "valueToMarketCap" Percent e => e.value_to_market_cap();
    "linearAmount" Number e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearValue" Usd e => e.linear_unlocks.get()?.linear_value.copied();
    "dailyAmount" Number e => e.linear_unlocks.get()?.daily_amount.copied();
    "dailyValue" Number e => e.linear_unlocks.get()?.daily_value.copied();
    "referencePrice" Number e => reference_price(e);
    "referencePriceUpdatedTime" Time e => reference_price_time(e);
    "unlockPrecision" Text e => least_exact_precision(e);
    "committedAmount" Number e => committed(e, |claim| claim.amount.copied());
    "committedValue" Usd e => committed(e, |claim| claim.value.copied());
    "allocations" Items(Unlock) e => both_halves;
    "tokenName" Text e => e.token_name.as_str();
    "tokenSymbol" Text e => e.token_symbol.as_str();
    "listedMethod" Text e => e.listed_method.as_str();
    "dataSource" Text e => e.data_source.as_str();
    "latestUpdateDate" Time e => e.latest_update_date.copied();
    "committedClaim.amount" Number e => committed(e, |claim| claim.amount.copied());
    "committedClaim.value" Usd e => committed(e, |claim| claim.value.copied());
    "committedClaim.timestamp" Time e => claims(e).find_map(|claim| unix_time(claim.timestamp.copied()));
    "cliffUnlocks.cliffAmount" Number e => e.cliff_amount();
    "cliffUnlocks.cliffValue" Usd e => e.cliff_value();
    "cliffUnlocks.valueToMarketCap" Percent e => e.value_to_market_cap();
    "cliffUnlocks.referencePrice" Number e => e.cliff_unlocks.get()?.reference_price.copied();
    "cliffUnlocks.referencePriceUpdatedTime" Time e => e.cliff_unlocks.get()?.reference_price_updated_time.copied();
    "cliffUnlocks.allocationBreakdown" Items(Unlock) e => cliff_items;
    "linearUnlocks.linearAmount" Number e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearUnlocks.linearValue" Usd e => e.linear_unlocks.get()?.linear_value.copied();
    "linearUnlocks.dailyAmount" Number e => e.linear_unlocks.get()?.daily_amount.copied();
    "linearUnlocks.dailyValue" Number e => e.linear_unlocks.get()?.daily_value.copied();
    "linearUnlocks.referencePrice" Number e => e.linear_unlocks.get()?.reference_price.copied();
    "linearUnlocks.referencePriceUpdatedTime" Time e => e.linear_unlocks.get()?.reference_price_updated_time.copied();
    "linearUnlocks.allocationBreakdown" Items(Unlock) e => linear_items;
};

static BURN: &[FieldDef<Record>] = record_fields! { Burn:
    "amount" Number b => b.amount.copied();
    "value" Usd b => b.value.copied();
    "pricePerToken" Number b => b.price_per_token.copied();
    "burnDate" Time b => b.burn_date.copied();
    "burnType" Text b => b.burn_type.as_str();
    "burnEventLabel" Text b => b.burn_event_label.as_str();
    "burners" Texts b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "burnReasons" Texts b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
    "metadata.burners" Texts b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "metadata.burnReasons" Texts b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
};

static BUYBACK: &[FieldDef<Record>] = record_fields! { Buyback:
    "tokenAmount" Number b => b.token_amount.copied();
    "value" Usd b => b.value.copied();
    "spentAmount" Number b => b.spent_amount.copied();
    "spentUnit" Text b => b.spent_unit.as_str();
    "buybackDate" Time b => b.buyback_date.copied();
    "buybackType" Text b => b.buyback_type.as_str();
    "buybackEventLabel" Text b => b.buyback_event_label.as_str();
    "targetAddress" Text b => b.target_address.as_str();
    "buyerAddress" Text b => b.buyer_address.as_str();
    "resolution" Text b => b.resolution.as_str();
    "basis" Text b => b.basis.as_str();
};

static EMISSION: &[FieldDef<Record>] = record_fields! { Emission:
    "startDate" Time e => e.start_date.copied();
    "endDate" Time e => e.end_date.copied();
    "unlockAmount" Number e => e.unlock_amount.copied();
    "unlockValue" Usd e => e.unlock_value.copied();
    "referencePrice" Number e => e.reference_price.copied();
    "totalCumulativeUnlockedAmount" Number e => e.total_cumulative_unlocked_amount.copied();
    "allocations" Items(Emission) e => emission_items;
    "standardAllocations" Texts e => e.standard_allocations.get().map(Vec::as_slice);
    "committedAmount" Number e => e.committed_claim.get()?.amount.copied();
    "committedValue" Usd e => e.committed_claim.get()?.value.copied();
    "tokenName" Text e => e.token_name.as_str();
    "tokenSymbol" Text e => e.token_symbol.as_str();
    "listedMethod" Text e => e.listed_method.as_str();
    "committedClaim.amount" Number e => e.committed_claim.get()?.amount.copied();
    "committedClaim.value" Usd e => e.committed_claim.get()?.value.copied();
    "committedClaim.timestamp" Time e => unix_time(e.committed_claim.get()?.timestamp.copied());
};

static ALLOCATION: &[FieldDef<Record>] = record_fields! { Allocation:
    "allocationName" Text a => a.allocation_name.as_str();
    "standardAllocationName" Text a => a.standard_allocation_name.as_str();
    "allocationType" Text a => a.allocation_type.as_str();
    "allocationAmount" Number a => a.allocation_amount.copied();
    "allocationUnlockedAmount" Number a => a.allocation_unlocked_amount.copied();
    "allocationLockedAmount" Number a => a.allocation_locked_amount.copied();
    "trackedAllocationPercentage" Percent a => a.tracked_allocation_percentage.copied();
};

static FUNDING: &[FieldDef<Record>] = record_fields! { Funding:
    "roundName" Text f => f.round_name.as_str();
    "fundingDate" Time f => f.funding_date.copied();
    "totalAmountRaisedinThatRound" Usd f => f.total_amount_raised.copied();
    "valuation" Usd f => f.valuation.copied();
    "pricePerToken" Number f => f.price_per_token.copied();
    "investorName" Text f => f.investor_name.as_str();
    "investorId" Text f => f.investor_id.as_str();
    "isLeadInvestor" Bool f => f.is_lead_investor.copied();
    "tokenId" Text f => f.token_id.as_str();
};

pub static TOKEN: &[FieldDef<Token>] = fields! {
    "token.id" Text t => Some(t.id.as_str());
    "token.name" Text t => Some(t.name());
    "token.symbol" Text t => Some(t.symbol());
    "token.groups" Texts t => Some(&t.groups);
    "token.listedMethod" Text t => t.item.listed_method.as_str();
    "token.marketCap" Usd t => t.item.market_cap.copied();
    "token.maxSupply" Number t => t.item.max_supply.copied();
    "token.circulatingSupply" Number t => t.item.circulating_supply.copied();
    "token.totalLockedAmount" Number t => t.item.total_locked_amount.copied();
    "token.tbdLockedAmount" Number t => t.item.tbd_locked_amount.copied();
    "token.unlockedAmount" Number t => t.item.unlocked_amount.copied();
    "token.untrackedAmount" Number t => t.item.untracked_amount.copied();
    "token.hasStandardAllocation" Bool t => t.item.has_standard_allocation.copied();
    "token.hasFundraising" Bool t => t.item.has_fundraising.copied();
    "token.hasBurn" Bool t => t.item.has_burn.copied();
    "token.hasBuyback" Bool t => t.item.has_buyback.copied();
    "token.hasCommittedClaim" Bool t => t.item.has_committed_claim.copied();
    "token.latestFundraisingRound" Text t => t.item.latest_fundraising_round.as_str();
    "token.websiteUrl" Text t => t.item.website_url.as_str();
    "token.lastUpdatedDate" Time t => t.item.last_updated_date.copied();
};

pub static SOURCE: &[FieldDef<SourceFacts>] = fields! {
    "source.kind" Text s => Some(&s.kind);
    "source.endpoint" Text s => s.endpoint.as_deref();
    "source.receiver" Text s => s.receiver.as_deref();
    "source.message" Text s => Some(&s.message);
    "source.count" Number s => Some(f64::from(s.count));
    "source.since" Time s => Some(s.since);
};

pub static CHANGE: &[FieldDef<Change>] = fields! {
    "change.kind" Text c => Some(c.kind.as_str());
    "change.from" Fact c => c.from.as_ref();
    "change.to" Fact c => c.to.as_ref();
    "change.shiftDays" Days c => c.shift_days;
    "change.shiftDaysMin" Days c => c.shift_days_min.or(c.shift_days);
    "change.shiftDaysMax" Days c => c.shift_days_max.or(c.shift_days);
    // To zero it is 0; from zero there is none, and a comparison with it is neither true nor false.
    "change.ratio" Number c => c.ratio;
    "change.amount" Number c => c.amount;
    "change.count" Number c => Some(f64::from(c.count));
    "change.summary" Text c => Some(&c.summary);
    "change.allocations" Items(Change) c => changed_allocations;
};

totals_fields! { TOTALS, MEMBER_TOTALS:
    "marketCap" Usd t => t.market_cap;
    "lastBurn.date" Time t => t.last_burn.map(|last| last.at);
    "lastBurn.amount" Number t => t.last_burn?.amount;
    "lastBurn.value" Usd t => t.last_burn?.value;
    "lastBuyback.date" Time t => t.last_buyback.map(|last| last.at);
    "lastBuyback.amount" Number t => t.last_buyback?.amount;
    "lastBuyback.value" Usd t => t.last_buyback?.value;
}

// Fields that only a token has: a group's tokens cannot be added up.
totals_fields! { TOTALS_OF_TOKEN, MEMBER_SUPPLY:
    "maxSupply" Number t => t.max_supply;
    "circulatingSupply" Number t => t.circulating_supply;
}

/// Fields that only a group has.
pub static TOTALS_OF_GROUP: &[FieldDef<Totals>] = fields! {
    "group" Text t => t.group.as_deref();
    "tokenCount" Number t => u32::try_from(t.members.len()).ok().map(f64::from);
    "tokens" Items(Member) t => members;
};

static MEMBER: &[ItemField] = item_fields! {
    "id" Text Member m => Some(m.id.as_str());
    "symbol" Text Member m => Some(&m.symbol);
    "name" Text Member m => Some(&m.name);
    "share" Percent Member m => m.share;
};

static UNLOCK_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text = item_name;
    "standardAllocationName" Text = item_category;
    "cliffAmount" Number Cliff c => c.cliff_amount.copied();
    "cliffValue" Usd Cliff c => c.cliff_value.copied();
    "unlockDate" Time Cliff c => c.unlock_date.copied();
    "unlockPrecision" Text = part_precision;
    "referencePrice" Number = part_reference_price;
    "committedAmount" Number Cliff c => c.committed_claim.get()?.amount.copied();
    "committedValue" Usd Cliff c => c.committed_claim.get()?.value.copied();
    "linearAmount" Number Linear l => l.linear_amount.copied();
    "linearValue" Usd Linear l => l.linear_value.copied();
    "dailyAmount" Number Linear l => l.daily_amount.copied();
    "dailyValue" Number Linear l => l.daily_value.copied();
    "durationOfRate" Days Linear l => l.duration_of_rate.copied();
    "beginDate" Time Linear l => l.begin_date.copied();
    "endDate" Time Linear l => l.end_date.copied();
};

static EMISSION_ITEM: &[ItemField] = item_fields! {
    "allocationName" Text = item_name;
    "standardAllocationName" Text = item_category;
    "unlockAmount" Number Emission e => e.unlock_amount.copied();
    "unlockValue" Usd Emission e => e.unlock_value.copied();
};

static CHANGE_ITEM: &[ItemField] = item_fields! {
    "name" Text = item_name;
    "from" Fact Change c => c.from.as_ref();
    "to" Fact Change c => c.to.as_ref();
    "shiftDays" Days Change c => c.shift_days;
    "ratio" Number Change c => c.ratio;
    "count" Number Change c => Some(f64::from(c.count));
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
