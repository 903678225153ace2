//! A compact binary format of records, in which the store keeps schedules. Everything is read back bit for bit.
//!
//! [`Packer`] writes, [`Unpacker`] reads, and [`Pack`] is implemented by the macro that declares objects. The first object of a
//! shape (which fields are present, which are null) lists its field names; later ones refer to the shape. Recent strings, numbers,
//! and times take one byte, because schedules repeat names, prices, and dates.
//!
//! A field can be added to an object at any position; its earlier values move from the unknown fields into it. Fields must never be
//! reordered or removed: [`Unpacker`] would reject old data. All arithmetic here is part of the format.

use std::collections::BTreeMap;

use chrono::{DateTime, Timelike};

use super::{lenient::NamedOr, maybe::Maybe, object::Extra, text::Text};
use crate::supply::Timestamp;

/// A type that can be packed.
pub trait Pack: Sized {
    fn pack<'a>(&'a self, to: &mut Packer<'a>);
    /// Reads a value; `None` if the bytes are invalid.
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self>;
}

/// Field names with a code of one byte. Append only; other names are written in full.
const FIELD_NAMES: &[&str] = &[
    "unlockDate",
    "tokenName",
    "tokenSymbol",
    "listedMethod",
    "dataSource",
    "referencePrice",
    "referencePriceUpdatedTime",
    "linearUnlocks",
    "cliffUnlocks",
    "latestUpdateDate",
    "allocationName",
    "standardAllocationName",
    "cliffAmount",
    "cliffValue",
    "unlockPrecision",
    "committedClaim",
    "totalCliffAmount",
    "totalCliffValue",
    "valueToMarketCap",
    "allocationBreakdown",
    "linearAmount",
    "linearValue",
    "dailyAmount",
    "dailyValue",
    "durationOfRate",
    "beginDate",
    "endDate",
    "amount",
    "value",
    "timestamp",
];

/// The number of slots for recent values. Their codes follow the codes of literals.
const SLOTS: usize = 240;
/// The number of slots that one value can use.
const CHOICES: usize = 4;
const FIRST_SLOT: u8 = 16;
/// The maximum number of shapes in one pack; others are written in full each time.
const MAX_SHAPES: usize = 200;
/// The maximum number of fields in an object.
const MAX_FIELDS: usize = 64;

mod number {
    /// Eight bytes of the double.
    pub(super) const RAW: u8 = 0;
    /// An integer.
    pub(super) const WHOLE: u8 = 1;
    /// An integer number of hundredths.
    pub(super) const CENTS: u8 = 2;
    /// The maximum integer; smaller than 2^53, so that all arithmetic is exact.
    pub(super) const LIMIT: f64 = 562_949_953_421_312.0;
}

mod moment {
    /// Whole seconds.
    pub(super) const SECONDS: u8 = 0;
    /// Seconds and nanoseconds.
    pub(super) const NANOS: u8 = 1;
}

/// The code of a string in full.
const TEXT: u8 = 0;

/// Recent values. Packer and unpacker have the same ones at each position.
struct Recent<T>(Vec<Option<T>>);

impl<T: Copy + PartialEq> Recent<T> {
    fn new() -> Self {
        Self(vec![None; SLOTS])
    }

    /// Returns the code of a value, or `None` and stores it as recent.
    fn code(&mut self, hash: u64, value: T) -> Option<u8> {
        let (at, is_known) = self.slot(hash, value);
        is_known.then(|| u8::try_from(at).ok().map(|at| at + FIRST_SLOT)).flatten()
    }

    /// Stores a value. Returns its slot and whether it was there already.
    fn slot(&mut self, hash: u64, value: T) -> (usize, bool) {
        let home = home(hash);
        for at in (0..CHOICES).map(|step| (home + step) % SLOTS) {
            match self.0.get_mut(at) {
                Some(Some(known)) if *known == value => return (at, true),
                Some(free @ None) => {
                    *free = Some(value);
                    return (at, false);
                }
                _ => {}
            }
        }
        if let Some(first) = self.0.get_mut(home) {
            *first = Some(value);
        }
        (home, false)
    }

    fn value(&self, code: u8) -> Option<T> {
        self.0.get(usize::from(code.checked_sub(FIRST_SLOT)?)).copied().flatten()
    }
}

/// Returns the first slot for a hash.
fn home(hash: u64) -> usize {
    let high = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from((high * SLOTS as u64) >> 32).unwrap_or(0)
}

/// Returns a hash of the length and of bytes at the start, the middle, and the end.
fn text_hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let word = |from: usize| {
        let end = (from + 8).min(bytes.len());
        bytes.get(from..end).unwrap_or_default().iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte))
    };
    let length = bytes.len();
    let middle = word(length / 2);
    word(0) ^ middle.rotate_left(21) ^ word(length.saturating_sub(8)).rotate_left(42) ^ (length as u64) << 56
}

pub struct Packer<'a> {
    out: Vec<u8>,
    texts: Recent<&'a str>,
    numbers: Recent<u64>,
    times: Recent<i64>,
    last_time: i64,
    shapes: Vec<(&'static [&'static str], u128, bool)>,
}

impl Default for Packer<'_> {
    fn default() -> Self {
        Self {
            out: Vec::new(),
            texts: Recent::new(),
            numbers: Recent::new(),
            times: Recent::new(),
            last_time: 0,
            shapes: Vec::new(),
        }
    }
}

impl<'a> Packer<'a> {
    /// Returns the packed bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes a small number.
    pub fn count(&mut self, mut count: u64) {
        while count >= 0x80 {
            self.out.push((count & 0x7f) as u8 | 0x80);
            count >>= 7;
        }
        self.out.push((count & 0x7f) as u8);
    }

    /// Writes a string that is not repeated, such as a key.
    pub fn literal(&mut self, text: &str) {
        self.count(text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &'a str) {
        match self.texts.code(text_hash(text), text) {
            Some(code) => self.out.push(code),
            None => {
                self.out.push(TEXT);
                self.literal(text);
            }
        }
    }

    fn number(&mut self, value: f64) {
        let bits = value.to_bits();
        if let Some(code) = self.numbers.code(bits, bits) {
            self.out.push(code);
        } else if let Some(whole) = whole(value) {
            self.out.push(number::WHOLE);
            self.count(whole);
        } else if let Some(cents) = cents(value) {
            self.out.push(number::CENTS);
            self.count(cents);
        } else {
            self.out.push(number::RAW);
            self.out.extend_from_slice(&bits.to_le_bytes());
        }
    }

    pub fn time(&mut self, at: Timestamp) {
        let (seconds, nanos) = (at.timestamp(), at.nanosecond());
        if nanos == 0
            && let Some(code) = self.times.code(seconds.cast_unsigned(), seconds)
        {
            self.out.push(code);
            return;
        }
        self.out.push(if nanos == 0 { moment::SECONDS } else { moment::NANOS });
        self.signed(seconds.wrapping_sub(self.last_time));
        self.last_time = seconds;
        if nanos != 0 {
            self.count(nanos.into());
        }
    }

    fn signed(&mut self, value: i64) {
        self.count(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// Writes the shape of an object: two bits per field (0 absent, 1 null, 2 present), and whether it has unknown fields.
    pub(super) fn shape<const N: usize>(&mut self, fields: &'static [&'static str], states: [u8; N], has_extra: bool) {
        const { assert!(N <= MAX_FIELDS, "a shape has two bits for each field of an object") };
        let mask = states.iter().rev().fold(0_u128, |mask, state| mask << 2 | u128::from(*state));
        let known =
            self.shapes.iter().position(|(of, known, extra)| std::ptr::eq(*of, fields) && *known == mask && *extra == has_extra);
        if let Some(known) = known {
            self.count(known as u64 + 1);
            return;
        }
        if self.shapes.len() < MAX_SHAPES {
            self.shapes.push((fields, mask, has_extra));
        }
        self.count(0);
        self.count(states.iter().filter(|state| **state != 0).count() as u64);
        for (name, state) in fields.iter().zip(states).filter(|(_, state)| *state != 0) {
            match FIELD_NAMES.iter().position(|known| known == name).and_then(|at| u8::try_from(at + 1).ok()) {
                Some(code) => self.out.push(code),
                None => {
                    self.out.push(0);
                    self.literal(name);
                }
            }
            self.out.push(state);
        }
        self.out.push(has_extra.into());
    }

    /// Writes unknown fields, if any.
    pub(super) fn extra(&mut self, extra: &Extra) {
        if extra.is_empty() {
            return;
        }
        self.count(extra.len() as u64);
        for (name, value) in extra {
            self.literal(name);
            // A value that was parsed from JSON can be serialized.
            self.literal(&serde_json::to_string(value).unwrap_or_else(|_| "null".into()));
        }
    }
}

fn whole(value: f64) -> Option<u64> {
    let is_whole = (0.0..number::LIMIT).contains(&value) && value.fract() == 0.0 && value.is_sign_positive();
    is_whole.then_some(value as u64)
}

fn cents(value: f64) -> Option<u64> {
    let cents = whole((value * 100.0).round())?;
    (from_cents(cents).to_bits() == value.to_bits()).then_some(cents)
}

fn from_cents(cents: u64) -> f64 {
    cents as f64 / 100.0
}

/// Reads the output of a [`Packer`].
pub struct Unpacker<'b> {
    rest: &'b [u8],
    texts: Recent<&'b str>,
    /// Strings by slot. Equal strings of one schedule share memory.
    shared: Vec<Option<Text>>,
    numbers: Recent<u64>,
    times: Recent<i64>,
    last_time: i64,
    shapes: Vec<Shape>,
}

/// The fields that an object has.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    states: u128,
    pub(super) has_extra: bool,
}

impl Shape {
    /// Returns the state of the next field, in the order of the object.
    pub(super) fn next(&mut self) -> u8 {
        let state = self.states & 3;
        self.states >>= 2;
        state as u8
    }
}

impl<'b> Unpacker<'b> {
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Self {
        Self {
            rest: bytes,
            texts: Recent::new(),
            shared: vec![None; SLOTS],
            numbers: Recent::new(),
            times: Recent::new(),
            last_time: 0,
            shapes: Vec::new(),
        }
    }

    /// Returns whether all bytes are read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Reads a small number.
    pub fn count(&mut self) -> Option<u64> {
        let mut count = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            count |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(count);
            }
        }
        None
    }

    /// Reads the number of items; at most the number of remaining bytes.
    pub fn length(&mut self) -> Option<usize> {
        usize::try_from(self.count()?).ok().filter(|count| *count <= self.rest.len())
    }

    /// Reads a string that is not repeated.
    pub fn literal(&mut self) -> Option<&'b str> {
        let length = self.length()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    /// Reads a string: in full, which then counts as recent, or the code of a recent string. `None` if the bytes are invalid.
    fn text(&mut self) -> Option<&'b str> {
        match self.byte()? {
            TEXT => {
                let text = self.literal()?;
                self.texts.code(text_hash(text), text);
                Some(text)
            }
            code => self.texts.value(code),
        }
    }

    fn shared_text(&mut self) -> Option<Text> {
        let (at, text) = match self.byte()? {
            TEXT => {
                let text = self.literal()?;
                (self.texts.slot(text_hash(text), text).0, text)
            }
            code => (usize::from(code.checked_sub(FIRST_SLOT)?), self.texts.value(code)?),
        };
        match self.shared.get_mut(at)? {
            Some(known) if known.as_str() == text => Some(known.clone()),
            slot => Some(slot.insert(Text::from(text)).clone()),
        }
    }

    fn number(&mut self) -> Option<f64> {
        let value = match self.byte()? {
            number::RAW => f64::from_bits(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?)),
            number::WHOLE => self.count()? as f64,
            number::CENTS => from_cents(self.count()?),
            code => return self.numbers.value(code).map(f64::from_bits),
        };
        self.numbers.code(value.to_bits(), value.to_bits());
        Some(value)
    }

    pub fn time(&mut self) -> Option<Timestamp> {
        let code = self.byte()?;
        if code >= FIRST_SLOT {
            return DateTime::from_timestamp(self.times.value(code)?, 0);
        }
        let seconds = self.last_time.wrapping_add(self.signed()?);
        self.last_time = seconds;
        let nanos = match code {
            moment::SECONDS => {
                self.times.code(seconds.cast_unsigned(), seconds);
                0
            }
            moment::NANOS => u32::try_from(self.count()?).ok()?,
            _ => return None,
        };
        DateTime::from_timestamp(seconds, nanos)
    }

    fn signed(&mut self) -> Option<i64> {
        let zigzag = self.count()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Reads the shape of an object: the number of a shape that was read before, or a new shape with its field names. `None` if the bytes
    /// are invalid, or if a field is not in `fields` or is out of order.
    pub(super) fn shape(&mut self, fields: &'static [&'static str]) -> Option<Shape> {
        let known = usize::try_from(self.count()?).ok()?;
        if let Some(known) = known.checked_sub(1) {
            return self.shapes.get(known).copied();
        }
        let (mut states, mut next) = (0_u128, 0);
        for _ in 0..self.length()? {
            let name = match self.byte()? {
                0 => self.literal()?,
                code => FIELD_NAMES.get(usize::from(code) - 1)?,
            };
            let state = self.byte().filter(|state| (1..=2).contains(state))?;
            let at = next + fields.get(next..)?.iter().position(|field| *field == name)?;
            states |= u128::from(state) << (2 * at);
            next = at + 1;
        }
        let shape = Shape { states, has_extra: self.byte()? != 0 };
        if self.shapes.len() < MAX_SHAPES {
            self.shapes.push(shape);
        }
        Some(shape)
    }

    pub(super) fn extra(&mut self) -> Option<Extra> {
        let count = self.length()?;
        let mut extra = BTreeMap::new();
        for _ in 0..count {
            let name = self.literal()?.to_owned();
            extra.insert(name, serde_json::from_str(self.literal()?).ok()?);
        }
        Some(extra)
    }
}

impl Pack for f64 {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.number(*self);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        from.number()
    }
}

impl Pack for i64 {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.signed(*self);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        from.signed()
    }
}

impl Pack for bool {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.count((*self).into());
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(from.count()? != 0)
    }
}

impl Pack for String {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.text(self);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        from.text().map(str::to_owned)
    }
}

impl Pack for Text {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.text(self);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        from.shared_text()
    }
}

impl Pack for Timestamp {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.time(*self);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        from.time()
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        to.count(self.len() as u64);
        self.iter().for_each(|item| item.pack(to));
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        // Each item takes at least one byte, so a damaged count cannot allocate more than that.
        let count = from.length()?;
        let mut items = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            items.push(T::unpack(from)?);
        }
        Some(items)
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        T::pack(self, to);
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        T::unpack(from).map(Box::new)
    }
}

impl<T: Pack> Pack for NamedOr<T> {
    fn pack<'a>(&'a self, to: &mut Packer<'a>) {
        match self {
            NamedOr::Name(name) => {
                to.count(0);
                name.pack(to);
            }
            NamedOr::Item(item) => {
                to.count(1);
                item.pack(to);
            }
        }
    }
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        match from.count()? {
            0 => String::unpack(from).map(NamedOr::Name),
            1 => T::unpack(from).map(NamedOr::Item),
            _ => None,
        }
    }
}

/// Returns the state of a field in a shape.
pub(super) fn state<T>(field: &Maybe<T>) -> u8 {
    match field {
        Maybe::Absent => 0,
        Maybe::Null => 1,
        Maybe::Value(_) => 2,
    }
}

/// Reads a field of that state.
pub(super) fn field<T: Pack>(state: u8, from: &mut Unpacker<'_>) -> Option<Maybe<T>> {
    match state {
        0 => Some(Maybe::Absent),
        1 => Some(Maybe::Null),
        _ => T::unpack(from).map(Maybe::Value),
    }
}

#[cfg(test)]
mod tests;
