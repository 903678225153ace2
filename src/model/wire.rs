//! The API's JSON types: read by the client, answered by the data service, kept as records by everything between.
//!
//! Each field but a record's key may be absent or null ([`Maybe`]); fields that nobody knows stay in `extra`, so that what is
//! read can be written again without loss. Reading is lenient field by field ([`Lenient`]): a field of the wrong type is dropped and
//! noted as an [`ParseWarning`], and the record goes on without it. Only text that is not JSON at all fails as a whole.
//!
//! `object` holds the macro that declares the objects, `pack` how they are kept in few bytes, `shape` what they look like as data, and the other files the objects by subject.

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
    warnings::{ParseWarning, PathStep, ReadReport, at, count_item, gather, gather_oddities, lost_dates, note, note_dropped},
};
pub use crate::time::parse_timestamp;

/// What the files that declare objects need.
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
