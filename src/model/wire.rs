//! The API's JSON types. The client parses them, the data service writes them, and all other code uses them as records.
//!
//! Each field except a record's key may be absent or null ([`Maybe`]). Unknown fields stay in `extra`, so that everything that was
//! read can be written again without loss. Parsing is lenient ([`Lenient`]): a field of the wrong type is dropped with a
//! [`ParseWarning`]. Only text that is not JSON fails as a whole.
//!
//! `object` has the macro that declares objects, `pack` their compact storage format, and `shape` their description as data. The
//! other files declare the objects.

mod burn;
mod emission;
mod envelope;
mod funding;
mod lenient;
mod maybe;
mod object;
mod pack;
mod read;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod token;
mod unlock;
mod warnings;

pub use self::{
    burn::{Burn, BurnData, BurnMetadata, Buyback, BuybackData},
    emission::{Emission, EmissionAllocation},
    envelope::{Credit, ErrorBody, Metadata},
    funding::{FundingRound, InvestorDetail, InvestorItem, InvestorsFile, RoundInvestor, TokenFunding, TokenFundingRound},
    lenient::{Lenient, NamedOr},
    maybe::Maybe,
    object::Extra,
    pack::{Pack, Packer, Unpacker},
    read::{ReadJson, ReadRows},
    shape::{Described, FieldFilter, FieldShape, JsonShape, ObjectShape},
    text::Text,
    token::{Allocation, AllocationsData, PriceRow, TokenItem},
    unlock::{CliffAllocation, CliffUnlocks, CommittedClaim, LinearAllocation, LinearUnlocks, UnlockEvent, UpcomingItem},
    warnings::{
        MAX_PARSE_WARNINGS, ParseWarning, PathStep, ReadReport, at, collect_parse_warnings, count_item, gather, lost_dates, note,
        note_dropped,
    },
};
pub use crate::time::parse_timestamp;

/// The imports of files that declare objects.
mod prelude {
    pub(super) use std::marker::PhantomData;

    pub(super) use serde::{Deserialize, Deserializer, Serialize, Serializer, de::MapAccess, ser::SerializeMap};

    pub(super) use super::{
        lenient::{Lenient, NamedOr},
        maybe::Maybe,
        object::{Extra, FieldSeed, ObjectKey, UnknownValue, quoted, wire},
        pack::{self, Pack, Packer, Unpacker},
        shape::{Described, FieldFilter, FieldShape, JsonShape, ObjectShape},
        text::Text,
        warnings::note,
    };
    pub(super) use crate::supply::Timestamp;
}
