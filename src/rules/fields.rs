//! The words that conditions and templates may use: for each resource the names on the wire, with a typed way to read each.
//!
//! A field is a name, a type and a plain function; conditions call the function at every evaluation, templates at every rendering,
//! and the checker reads the same tables for its suggestions, so none can know a name that another does not.

use crate::{
    aggregate::{Member, Totals},
    change::{AllocationChange, Change, Fact},
    supply::{Precision, Record, Resource, Timestamp, Token},
    wire,
};

use super::SourceFacts;

/// Reads one field of an `O`. None where it is missing or null.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read<O: 'static> {
    /// A number.
    Number(fn(&O) -> Option<f64>),
    /// True or false.
    Bool(fn(&O) -> Option<bool>),
    /// An instant.
    Time(fn(&O) -> Option<Timestamp>),
    /// A text.
    Text(for<'a> fn(&'a O) -> Option<&'a str>),
    /// A list of texts.
    Texts(for<'a> fn(&'a O) -> Option<&'a [String]>),
    /// A number, an instant or a text, as the kind of change has it.
    Fact(for<'a> fn(&'a O) -> Option<&'a Fact>),
    /// A list of parts: allocations.
    Parts(PartKind, for<'a> fn(&'a O, PartVisitor<'a, '_>) -> Option<()>),
}

impl<O> Read<O> {
    /// Whether both have the same value; lists of parts are not compared and count as different.
    pub fn is_same(&self, a: &O, b: &O) -> bool {
        match self {
            Read::Number(read) => read(a) == read(b),
            Read::Bool(read) => read(a) == read(b),
            Read::Time(read) => read(a) == read(b),
            Read::Text(read) => read(a) == read(b),
            Read::Texts(read) => read(a) == read(b),
            Read::Fact(read) => read(a) == read(b),
            Read::Parts(..) => false,
        }
    }
}

/// Called with each part until it says `false`.
pub(crate) type PartVisitor<'a, 'f> = &'f mut dyn FnMut(Part<'a>) -> bool;

/// A field of an `O` by name.
#[derive(Debug)]
pub(crate) struct Field<O: 'static> {
    /// Its name in conditions and templates, with the prefix that it needs there (`token.symbol`).
    pub name: &'static str,
    /// Its name under `old.`; only records have one.
    pub old: &'static str,
    /// Its name under `new.`; only records have one.
    pub new: &'static str,
    /// How to read it.
    pub read: Read<O>,
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// Recipients of an unlock: parts of the cliff, then linear segments.
    Unlock,
    /// Recipients of an emission.
    Emission,
    /// Recipients concerned by a change.
    Change,
    /// Tokens of a group.
    Member,
}

/// One item of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// A recipient's part of a cliff.
    Cliff(&'a wire::CliffAllocation),
    /// A recipient's linear segment.
    Linear(&'a wire::LinearAllocation),
    /// A recipient's part of an emission.
    Emission(&'a wire::EmissionAllocation),
    /// A recipient's part of a change.
    Change(&'a AllocationChange),
    /// A token of a group.
    Member(&'a Member),
    /// A bare name: a recipient in the oldest answers, or an item of a list of texts.
    Name(&'a str),
}

/// Reads one field of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadPart {
    /// A number.
    Number(for<'a> fn(Part<'a>) -> Option<f64>),
    /// An instant.
    Time(for<'a> fn(Part<'a>) -> Option<Timestamp>),
    /// A text.
    Text(for<'a> fn(Part<'a>) -> Option<&'a str>),
    /// As the kind of change has it.
    Fact(for<'a> fn(Part<'a>) -> Option<&'a Fact>),
}

/// A field of a part by name.
#[derive(Debug)]
pub(crate) struct PartField {
    /// Its name, without the variable before it.
    pub name: &'static str,
    /// How to read it.
    pub read: ReadPart,
}

/// Fields of records of one resource, all by the same shape of line: name, type, how to read.
macro_rules! record_fields {
    ($resource:ident: $($name:literal $kind:ident $item:ident => $read:expr;)*) => {
        &[$(Field {
            name: $name,
            old: concat!("old.", $name),
            new: concat!("new.", $name),
            read: record_fields!(@ $kind $resource $item $read),
        }),*]
    };
    (@ UnlockParts $resource:ident $item:ident $read:expr) => { record_fields!(@parts Unlock $resource $item $read) };
    (@ EmissionParts $resource:ident $item:ident $read:expr) => { record_fields!(@parts Emission $resource $item $read) };
    (@parts $parts:ident $resource:ident $item:ident $read:expr) => {
        Read::Parts(PartKind::$parts, |record, visit| {
            let Record::$resource($item) = record else { return None };
            $read($item, visit)
        })
    };
    (@ $kind:ident $resource:ident $item:ident $read:expr) => {
        Read::$kind(|record| {
            let Record::$resource($item) = record else { return None };
            $read
        })
    };
}

/// Fields of anything else.
macro_rules! fields {
    ($($name:literal $kind:ident $item:ident => $read:expr;)*) => {
        &[$(Field { name: $name, old: $name, new: $name, read: Read::$kind(|$item| $read) }),*]
    };
}

static UNLOCK: &[Field<Record>] = record_fields! { Unlock:
    "unlockDate" Time e => e.unlock_date.copied();
    "cliffAmount" Number e => e.cliff_amount();
    "cliffValue" Number e => e.cliff_value();
    "valueToMarketCap" Number e => e.value_to_market_cap();
    "linearAmount" Number e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearValue" Number e => e.linear_unlocks.get()?.linear_value.copied();
    "dailyAmount" Number e => e.linear_unlocks.get()?.daily_amount.copied();
    "dailyValue" Number e => e.linear_unlocks.get()?.daily_value.copied();
    "referencePrice" Number e => reference_price(e);
    "referencePriceUpdatedTime" Time e => reference_price_time(e);
    "unlockPrecision" Text e => precision_word(e);
    "committedAmount" Number e => committed(e, |claim| claim.amount.copied());
    "committedValue" Number e => committed(e, |claim| claim.value.copied());
    "allocations" UnlockParts e => both_parts;
    "tokenName" Text e => e.token_name.as_str();
    "tokenSymbol" Text e => e.token_symbol.as_str();
    "listedMethod" Text e => e.listed_method.as_str();
    "dataSource" Text e => e.data_source.as_str();
    "latestUpdateDate" Time e => e.latest_update_date.copied();
    "committedClaim.amount" Number e => committed(e, |claim| claim.amount.copied());
    "committedClaim.value" Number e => committed(e, |claim| claim.value.copied());
    "committedClaim.timestamp" Time e => claims(e).find_map(|claim| unix_time(claim.timestamp.copied()));
    "cliffUnlocks.cliffAmount" Number e => e.cliff_amount();
    "cliffUnlocks.cliffValue" Number e => e.cliff_value();
    "cliffUnlocks.valueToMarketCap" Number e => e.value_to_market_cap();
    "cliffUnlocks.referencePrice" Number e => e.cliff_unlocks.get()?.reference_price.copied();
    "cliffUnlocks.referencePriceUpdatedTime" Time e => e.cliff_unlocks.get()?.reference_price_updated_time.copied();
    "cliffUnlocks.allocationBreakdown" UnlockParts e => cliff_parts;
    "linearUnlocks.linearAmount" Number e => e.linear_unlocks.get()?.linear_amount.copied();
    "linearUnlocks.linearValue" Number e => e.linear_unlocks.get()?.linear_value.copied();
    "linearUnlocks.dailyAmount" Number e => e.linear_unlocks.get()?.daily_amount.copied();
    "linearUnlocks.dailyValue" Number e => e.linear_unlocks.get()?.daily_value.copied();
    "linearUnlocks.referencePrice" Number e => e.linear_unlocks.get()?.reference_price.copied();
    "linearUnlocks.referencePriceUpdatedTime" Time e => e.linear_unlocks.get()?.reference_price_updated_time.copied();
    "linearUnlocks.allocationBreakdown" UnlockParts e => linear_parts;
};

static BURN: &[Field<Record>] = record_fields! { Burn:
    "amount" Number b => b.amount.copied();
    "value" Number b => b.value.copied();
    "pricePerToken" Number b => b.price_per_token.copied();
    "burnDate" Time b => b.burn_date.copied();
    "burnType" Text b => b.burn_type.as_str();
    "burnEventLabel" Text b => b.burn_event_label.as_str();
    "burners" Texts b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "burnReasons" Texts b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
    "metadata.burners" Texts b => b.metadata.get()?.burners.get().map(Vec::as_slice);
    "metadata.burnReasons" Texts b => b.metadata.get()?.burn_reasons.get().map(Vec::as_slice);
};

static BUYBACK: &[Field<Record>] = record_fields! { Buyback:
    "tokenAmount" Number b => b.token_amount.copied();
    "value" Number b => b.value.copied();
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

static EMISSION: &[Field<Record>] = record_fields! { Emission:
    "startDate" Time e => e.start_date.copied();
    "endDate" Time e => e.end_date.copied();
    "unlockAmount" Number e => e.unlock_amount.copied();
    "unlockValue" Number e => e.unlock_value.copied();
    "referencePrice" Number e => e.reference_price.copied();
    "totalCumulativeUnlockedAmount" Number e => e.total_cumulative_unlocked_amount.copied();
    "allocations" EmissionParts e => emission_parts;
    "standardAllocations" Texts e => e.standard_allocations.get().map(Vec::as_slice);
    "committedAmount" Number e => e.committed_claim.get()?.amount.copied();
    "committedValue" Number e => e.committed_claim.get()?.value.copied();
    "tokenName" Text e => e.token_name.as_str();
    "tokenSymbol" Text e => e.token_symbol.as_str();
    "listedMethod" Text e => e.listed_method.as_str();
    "committedClaim.amount" Number e => e.committed_claim.get()?.amount.copied();
    "committedClaim.value" Number e => e.committed_claim.get()?.value.copied();
    "committedClaim.timestamp" Time e => unix_time(e.committed_claim.get()?.timestamp.copied());
};

static ALLOCATION: &[Field<Record>] = record_fields! { Allocation:
    "allocationName" Text a => a.allocation_name.as_str();
    "standardAllocationName" Text a => a.standard_allocation_name.as_str();
    "allocationType" Text a => a.allocation_type.as_str();
    "allocationAmount" Number a => a.allocation_amount.copied();
    "allocationUnlockedAmount" Number a => a.allocation_unlocked_amount.copied();
    "allocationLockedAmount" Number a => a.allocation_locked_amount.copied();
    "trackedAllocationPercentage" Number a => a.tracked_allocation_percentage.copied();
};

static FUNDING: &[Field<Record>] = record_fields! { Funding:
    "roundName" Text f => f.round_name.as_str();
    "fundingDate" Time f => f.funding_date.copied();
    "totalAmountRaisedinThatRound" Number f => f.total_amount_raised.copied();
    "valuation" Number f => f.valuation.copied();
    "pricePerToken" Number f => f.price_per_token.copied();
    "investorName" Text f => f.investor_name.as_str();
    "investorId" Text f => f.investor_id.as_str();
    "isLeadInvestor" Bool f => f.is_lead_investor.copied();
    "tokenId" Text f => f.token_id.as_str();
};

/// Fields of the token.
pub(crate) static TOKEN: &[Field<Token>] = fields! {
    "token.id" Text t => Some(t.id.as_str());
    "token.name" Text t => Some(t.name());
    "token.symbol" Text t => Some(t.symbol());
    "token.groups" Texts t => Some(&t.groups);
    "token.listedMethod" Text t => t.item.listed_method.as_str();
    "token.marketCap" Number t => t.item.market_cap.copied();
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

/// Fields of a change.
pub(crate) static CHANGE: &[Field<Change>] = &[
    Field { name: "change.kind", old: "", new: "", read: Read::Text(|c| Some(c.kind.as_str())) },
    Field { name: "change.from", old: "", new: "", read: Read::Fact(|c| c.from.as_ref()) },
    Field { name: "change.to", old: "", new: "", read: Read::Fact(|c| c.to.as_ref()) },
    Field { name: "change.shiftDays", old: "", new: "", read: Read::Number(|c| c.shift_days) },
    Field { name: "change.shiftDaysMin", old: "", new: "", read: Read::Number(|c| c.shift_days_min.or(c.shift_days)) },
    Field { name: "change.shiftDaysMax", old: "", new: "", read: Read::Number(|c| c.shift_days_max.or(c.shift_days)) },
    Field { name: "change.ratio", old: "", new: "", read: Read::Number(|c| c.ratio) },
    Field { name: "change.count", old: "", new: "", read: Read::Number(|c| Some(f64::from(c.count))) },
    Field { name: "change.summary", old: "", new: "", read: Read::Text(|c| Some(&c.summary)) },
    Field {
        name: "change.allocations",
        old: "",
        new: "",
        read: Read::Parts(PartKind::Change, |change, visit| {
            change.allocations.iter().all(|item| visit(Part::Change(item)));
            Some(())
        }),
    },
];

/// Fields of a trouble.
pub(crate) static SOURCE: &[Field<SourceFacts>] = fields! {
    "source.kind" Text s => Some(&s.kind);
    "source.endpoint" Text s => s.endpoint.as_deref();
    "source.receiver" Text s => s.receiver.as_deref();
    "source.message" Text s => Some(&s.message);
    "source.count" Number s => Some(f64::from(s.count));
    "source.since" Time s => Some(s.since);
};

/// Fields of what is known of a token or of a group as a whole.
pub(crate) static TOTALS: &[Field<Totals>] = fields! {
    "marketCap" Number t => t.market_cap;
    "lastBurn.date" Time t => t.last_burn.map(|last| last.at);
    "lastBurn.amount" Number t => t.last_burn?.amount;
    "lastBurn.value" Number t => t.last_burn?.value;
    "lastBuyback.date" Time t => t.last_buyback.map(|last| last.at);
    "lastBuyback.amount" Number t => t.last_buyback?.amount;
    "lastBuyback.value" Number t => t.last_buyback?.value;
};

/// Fields that only a token has.
pub(crate) static TOTALS_OF_TOKEN: &[Field<Totals>] = fields! {
    "maxSupply" Number t => t.max_supply;
    "circulatingSupply" Number t => t.circulating_supply;
};

/// Fields that only a group has.
pub(crate) static TOTALS_OF_GROUP: &[Field<Totals>] = &[
    Field { name: "group", old: "", new: "", read: Read::Text(|totals| totals.group.as_deref()) },
    Field {
        name: "tokenCount",
        old: "",
        new: "",
        read: Read::Number(|totals| u32::try_from(totals.members.len()).ok().map(f64::from)),
    },
    Field {
        name: "tokens",
        old: "",
        new: "",
        read: Read::Parts(PartKind::Member, |totals, visit| {
            totals.members.iter().all(|member| visit(Part::Member(member)));
            Some(())
        }),
    },
];

fn member(part: Part<'_>) -> Option<&Member> {
    if let Part::Member(member) = part { Some(member) } else { None }
}

static MEMBER_PART: &[PartField] = &[
    PartField { name: "id", read: ReadPart::Text(|p| Some(member(p)?.id.as_str())) },
    PartField { name: "symbol", read: ReadPart::Text(|p| Some(&member(p)?.symbol)) },
    PartField { name: "name", read: ReadPart::Text(|p| Some(&member(p)?.name)) },
    PartField { name: "share", read: ReadPart::Number(|p| member(p)?.share) },
    PartField { name: "marketCap", read: ReadPart::Number(|p| member(p)?.totals.market_cap) },
    PartField { name: "maxSupply", read: ReadPart::Number(|p| member(p)?.totals.max_supply) },
    PartField { name: "circulatingSupply", read: ReadPart::Number(|p| member(p)?.totals.circulating_supply) },
    PartField { name: "lastBurn.date", read: ReadPart::Time(|p| member(p)?.totals.last_burn.map(|last| last.at)) },
    PartField { name: "lastBurn.amount", read: ReadPart::Number(|p| member(p)?.totals.last_burn?.amount) },
    PartField { name: "lastBurn.value", read: ReadPart::Number(|p| member(p)?.totals.last_burn?.value) },
    PartField { name: "lastBuyback.date", read: ReadPart::Time(|p| member(p)?.totals.last_buyback.map(|last| last.at)) },
    PartField { name: "lastBuyback.amount", read: ReadPart::Number(|p| member(p)?.totals.last_buyback?.amount) },
    PartField { name: "lastBuyback.value", read: ReadPart::Number(|p| member(p)?.totals.last_buyback?.value) },
];

static UNLOCK_PART: &[PartField] = &[
    PartField { name: "allocationName", read: ReadPart::Text(part_name) },
    PartField { name: "standardAllocationName", read: ReadPart::Text(part_standard_name) },
    PartField {
        name: "cliffAmount",
        read: ReadPart::Number(|p| if let Part::Cliff(c) = p { c.cliff_amount.copied() } else { None }),
    },
    PartField {
        name: "cliffValue",
        read: ReadPart::Number(|p| if let Part::Cliff(c) = p { c.cliff_value.copied() } else { None }),
    },
    PartField {
        name: "unlockDate",
        read: ReadPart::Time(|p| if let Part::Cliff(c) = p { c.unlock_date.copied() } else { None }),
    },
    PartField {
        name: "unlockPrecision",
        read: ReadPart::Text(|p| match p {
            Part::Cliff(c) => c.unlock_precision.as_str(),
            Part::Linear(l) => l.unlock_precision.as_str(),
            _ => None,
        }),
    },
    PartField {
        name: "referencePrice",
        read: ReadPart::Number(|p| match p {
            Part::Cliff(c) => c.reference_price.copied(),
            Part::Linear(l) => l.reference_price.copied(),
            _ => None,
        }),
    },
    PartField {
        name: "committedAmount",
        read: ReadPart::Number(|p| if let Part::Cliff(c) = p { c.committed_claim.get()?.amount.copied() } else { None }),
    },
    PartField {
        name: "committedValue",
        read: ReadPart::Number(|p| if let Part::Cliff(c) = p { c.committed_claim.get()?.value.copied() } else { None }),
    },
    PartField {
        name: "linearAmount",
        read: ReadPart::Number(|p| if let Part::Linear(l) = p { l.linear_amount.copied() } else { None }),
    },
    PartField {
        name: "linearValue",
        read: ReadPart::Number(|p| if let Part::Linear(l) = p { l.linear_value.copied() } else { None }),
    },
    PartField {
        name: "dailyAmount",
        read: ReadPart::Number(|p| if let Part::Linear(l) = p { l.daily_amount.copied() } else { None }),
    },
    PartField {
        name: "dailyValue",
        read: ReadPart::Number(|p| if let Part::Linear(l) = p { l.daily_value.copied() } else { None }),
    },
    PartField {
        name: "durationOfRate",
        read: ReadPart::Number(|p| if let Part::Linear(l) = p { l.duration_of_rate.copied() } else { None }),
    },
    PartField { name: "beginDate", read: ReadPart::Time(|p| if let Part::Linear(l) = p { l.begin_date.copied() } else { None }) },
    PartField { name: "endDate", read: ReadPart::Time(|p| if let Part::Linear(l) = p { l.end_date.copied() } else { None }) },
];

static EMISSION_PART: &[PartField] = &[
    PartField { name: "allocationName", read: ReadPart::Text(part_name) },
    PartField { name: "standardAllocationName", read: ReadPart::Text(part_standard_name) },
    PartField {
        name: "unlockAmount",
        read: ReadPart::Number(|p| if let Part::Emission(e) = p { e.unlock_amount.copied() } else { None }),
    },
    PartField {
        name: "unlockValue",
        read: ReadPart::Number(|p| if let Part::Emission(e) = p { e.unlock_value.copied() } else { None }),
    },
];

static CHANGE_PART: &[PartField] = &[
    PartField { name: "name", read: ReadPart::Text(part_name) },
    PartField { name: "from", read: ReadPart::Fact(|p| if let Part::Change(c) = p { c.from.as_ref() } else { None }) },
    PartField { name: "to", read: ReadPart::Fact(|p| if let Part::Change(c) = p { c.to.as_ref() } else { None }) },
    PartField { name: "shiftDays", read: ReadPart::Number(|p| if let Part::Change(c) = p { c.shift_days } else { None }) },
    PartField { name: "ratio", read: ReadPart::Number(|p| if let Part::Change(c) = p { c.ratio } else { None }) },
    PartField {
        name: "count",
        read: ReadPart::Number(|p| if let Part::Change(c) = p { Some(f64::from(c.count)) } else { None }),
    },
];

/// Fields of the records of `resource`; names with a dot are the nested spelling of the wire.
pub(crate) fn of_record(resource: Resource) -> &'static [Field<Record>] {
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
pub(crate) fn of_part(kind: PartKind) -> &'static [PartField] {
    match kind {
        PartKind::Unlock => UNLOCK_PART,
        PartKind::Emission => EMISSION_PART,
        PartKind::Change => CHANGE_PART,
        PartKind::Member => MEMBER_PART,
    }
}

/// The recipients of a record, whatever its kind, until `visit` says `false`.
pub(crate) fn recipients<'a>(record: &'a Record, visit: PartVisitor<'a, '_>) {
    let _ = match record {
        Record::Unlock(event) => both_parts(event, visit),
        Record::Emission(emission) => emission_parts(emission, visit),
        Record::Allocation(row) => {
            let names = [row.allocation_name.as_str(), row.standard_allocation_name.as_str()];
            names.into_iter().flatten().all(|name| visit(Part::Name(name)));
            Some(())
        }
        Record::Burn(_) | Record::Buyback(_) | Record::Funding(_) => None,
    };
}

/// Name of the recipient.
pub(crate) fn part_name(part: Part<'_>) -> Option<&str> {
    match part {
        Part::Cliff(item) => item.allocation_name.as_str(),
        Part::Linear(item) => item.allocation_name.as_str(),
        Part::Emission(item) => item.allocation_name.as_str(),
        Part::Change(item) => Some(&item.name),
        Part::Member(item) => Some(&item.name),
        Part::Name(name) => Some(name),
    }
}

/// Comparable category of the recipient.
pub(crate) fn part_standard_name(part: Part<'_>) -> Option<&str> {
    match part {
        Part::Cliff(item) => item.standard_allocation_name.as_str(),
        Part::Linear(item) => item.standard_allocation_name.as_str(),
        Part::Emission(item) => item.standard_allocation_name.as_str(),
        Part::Change(_) | Part::Member(_) | Part::Name(_) => None,
    }
}

fn cliff_items(event: &wire::UnlockEvent) -> &[wire::CliffAllocation] {
    event.cliff_unlocks.get().map_or(&[], |cliffs| cliffs.allocation_breakdown.items())
}

fn linear_items(event: &wire::UnlockEvent) -> &[wire::LinearAllocation] {
    event.linear_unlocks.get().map_or(&[], |linears| linears.allocation_breakdown.items())
}

fn cliff_parts<'a>(event: &'a wire::UnlockEvent, visit: PartVisitor<'a, '_>) -> Option<()> {
    event.cliff_unlocks.get()?.allocation_breakdown.get()?.iter().all(|item| visit(Part::Cliff(item)));
    Some(())
}

fn linear_parts<'a>(event: &'a wire::UnlockEvent, visit: PartVisitor<'a, '_>) -> Option<()> {
    event.linear_unlocks.get()?.allocation_breakdown.get()?.iter().all(|item| visit(Part::Linear(item)));
    Some(())
}

fn both_parts<'a>(event: &'a wire::UnlockEvent, visit: PartVisitor<'a, '_>) -> Option<()> {
    let cliffs = event.cliff_unlocks.get().and_then(|cliffs| cliffs.allocation_breakdown.get());
    let linears = event.linear_unlocks.get().and_then(|linears| linears.allocation_breakdown.get());
    if cliffs.is_none() && linears.is_none() {
        return None;
    }
    let _ = cliffs.is_none_or(|items| items.iter().all(|item| visit(Part::Cliff(item))))
        && linears.is_none_or(|items| items.iter().all(|item| visit(Part::Linear(item))));
    Some(())
}

fn emission_parts<'a>(emission: &'a wire::Emission, visit: PartVisitor<'a, '_>) -> Option<()> {
    emission.allocations.get()?.iter().all(|item| match item {
        wire::NamedOr::Name(name) => visit(Part::Name(name)),
        wire::NamedOr::Item(item) => visit(Part::Emission(item)),
    });
    Some(())
}

fn claims(event: &wire::UnlockEvent) -> impl Iterator<Item = &wire::CommittedClaim> {
    cliff_items(event).iter().filter_map(|item| item.committed_claim.get())
}

/// Sum over the claims that name it; none where no claim does.
fn committed(event: &wire::UnlockEvent, of: fn(&wire::CommittedClaim) -> Option<f64>) -> Option<f64> {
    claims(event).filter_map(of).fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

fn unix_time(seconds: Option<i64>) -> Option<Timestamp> {
    Timestamp::from_timestamp(seconds?, 0)
}

/// The event's price: older versions have it at the top or in a half, newer ones only in the breakdown.
fn reference_price(event: &wire::UnlockEvent) -> Option<f64> {
    event
        .reference_price
        .copied()
        .or_else(|| event.cliff_unlocks.get()?.reference_price.copied())
        .or_else(|| event.linear_unlocks.get()?.reference_price.copied())
        .or_else(|| cliff_items(event).iter().find_map(|item| item.reference_price.copied()))
        .or_else(|| linear_items(event).iter().find_map(|item| item.reference_price.copied()))
}

fn reference_price_time(event: &wire::UnlockEvent) -> Option<Timestamp> {
    event
        .reference_price_updated_time
        .copied()
        .or_else(|| event.cliff_unlocks.get()?.reference_price_updated_time.copied())
        .or_else(|| event.linear_unlocks.get()?.reference_price_updated_time.copied())
        .or_else(|| cliff_items(event).iter().find_map(|item| item.reference_price_updated_time.copied()))
        .or_else(|| linear_items(event).iter().find_map(|item| item.reference_price_updated_time.copied()))
}

/// The source's word for the least exact of its dates.
fn precision_word(event: &wire::UnlockEvent) -> Option<&str> {
    let cliffs = cliff_items(event).iter().filter_map(|item| item.unlock_precision.as_str());
    let linears = linear_items(event).iter().filter_map(|item| item.unlock_precision.as_str());
    cliffs.chain(linears).max_by_key(|word| Precision::of(Some(word)))
}
