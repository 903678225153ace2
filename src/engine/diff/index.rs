//! Typed indices: an index into one list does not fit another.

use std::{
    fmt,
    hash::Hash,
    marker::PhantomData,
    ops::{Index, IndexMut},
};

/// The side of a comparison: before or after a response.
pub(super) trait Side: Copy + fmt::Debug + Ord + Hash + 'static {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Old {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum New {}

impl Side for Old {}
impl Side for New {}

/// Marks indices of events, and of other rows of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowOf<S>(PhantomData<S>);

/// Marks indices of tranches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TrancheOf<S>(PhantomData<S>);

/// Marks indices of the parts of one event and one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PartOf<S>(PhantomData<S>);

/// Marks positions in one series, sorted by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PlaceOf<S>(PhantomData<S>);

pub(super) type RowIndex<S> = Idx<RowOf<S>>;
pub(super) type OldRow = RowIndex<Old>;
pub(super) type NewRow = RowIndex<New>;

pub(super) type TrancheIndex<S> = Idx<TrancheOf<S>>;
pub(super) type OldTranche = TrancheIndex<Old>;
pub(super) type NewTranche = TrancheIndex<New>;

pub(super) type OldPart = Idx<PartOf<Old>>;
pub(super) type NewPart = Idx<PartOf<New>>;

pub(super) type OldPlace = Idx<PlaceOf<Old>>;
pub(super) type NewPlace = Idx<PlaceOf<New>>;

/// An index into a [`List`] of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Idx<K> {
    position: usize,
    kind: PhantomData<K>,
}

impl<K> Idx<K> {
    fn at(position: usize) -> Self {
        Self { position, kind: PhantomData }
    }
}

/// A vector with typed indices.
#[derive(Clone, Debug)]
pub(super) struct List<K, T> {
    items: Vec<T>,
    kind: PhantomData<K>,
}

impl<K, T> List<K, T> {
    pub(super) fn filled(value: T, len: usize) -> Self
    where
        T: Clone,
    {
        vec![value; len].into()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    pub(super) fn as_slice(&self) -> &[T] {
        &self.items
    }

    pub(super) fn into_vec(self) -> Vec<T> {
        self.items
    }

    pub(super) fn indices(&self) -> impl DoubleEndedIterator<Item = Idx<K>> + Clone + use<K, T> {
        (0..self.items.len()).map(Idx::at)
    }

    pub(super) fn indexed(&self) -> impl DoubleEndedIterator<Item = (Idx<K>, &T)> {
        self.items.iter().enumerate().map(|(position, item)| (Idx::at(position), item))
    }

    pub(super) fn into_indexed(self) -> impl Iterator<Item = (Idx<K>, T)> {
        self.items.into_iter().enumerate().map(|(position, item)| (Idx::at(position), item))
    }

    /// Returns the items from the first one that does not match `is_before`. The items that match must be at the start of the list.
    pub(super) fn suffix_from(&self, is_before: impl Fn(&T) -> bool) -> &[T] {
        &self.items[self.items.partition_point(is_before)..]
    }
}

impl<K, T> From<Vec<T>> for List<K, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, kind: PhantomData }
    }
}

impl<K, T> FromIterator<T> for List<K, T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<K, T> Index<Idx<K>> for List<K, T> {
    type Output = T;
    fn index(&self, index: Idx<K>) -> &T {
        &self.items[index.position]
    }
}

impl<K, T> IndexMut<Idx<K>> for List<K, T> {
    fn index_mut(&mut self, index: Idx<K>) -> &mut T {
        &mut self.items[index.position]
    }
}
