//! The tokens that a client has seen on the pages of a list, as part of its cursor.

/// A set of token numbers. The order of the list changes with each price and each correction, so a client's
/// progress can only be given by the tokens that it has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenTokens(Vec<u64>);

impl SeenTokens {
    /// The largest number in a set, so that a forged one has a bounded size.
    const MAX_NUMBER: u64 = 1 << 20;

    #[must_use]
    pub fn contains(&self, number: i64) -> bool {
        let Ok(number) = u64::try_from(number) else { return false };
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get(at));
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub fn insert(&mut self, number: i64) {
        let Some(number) = u64::try_from(number).ok().filter(|number| *number <= Self::MAX_NUMBER) else { return };
        let at = usize::try_from(number / 64).unwrap_or(usize::MAX);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= 1 << (number % 64);
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let bits = |word: u64| (0..64).filter(move |bit| word & (1 << bit) != 0);
        (0..).zip(&self.0).flat_map(move |(at, word)| bits(*word).map(move |bit| at * 64 + bit))
    }

    /// Returns the set as bytes: the differences of successive numbers, or one bit for each number, whichever is shorter.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut differences = vec![0];
        let mut last = 0;
        for number in self.numbers() {
            let mut rest = number - last;
            last = number;
            while rest > 0x7f {
                differences.push(u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80);
                rest >>= 7;
            }
            differences.push(u8::try_from(rest).unwrap_or_default());
        }
        let mut bits: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        bits.truncate(bits.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        bits.insert(0, 1);
        if bits.len() < differences.len() { bits } else { differences }
    }

    /// Reads the form that [`Self::to_bytes`] writes. `None` if it is not valid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, bytes) = bytes.split_first()?;
        let mut seen = Self::default();
        match form {
            0 => {
                let (mut number, mut rest, mut shift) = (0_u64, 0_u64, 0);
                for byte in bytes {
                    rest |= u64::from(byte & 0x7f) << shift;
                    shift += 7;
                    if byte & 0x80 != 0 {
                        (shift <= 21).then_some(())?;
                        continue;
                    }
                    number = Some(number + rest).filter(|number| *number <= Self::MAX_NUMBER)?;
                    seen.insert(i64::try_from(number).ok()?);
                    (rest, shift) = (0, 0);
                }
                (shift == 0).then_some(seen)
            }
            1 => {
                for (at, byte) in (0..).zip(bytes) {
                    for bit in (0..8).filter(|bit| byte & (1 << bit) != 0) {
                        seen.insert(Some(at * 8 + bit).filter(|number: &i64| number.unsigned_abs() <= Self::MAX_NUMBER)?);
                    }
                }
                Some(seen)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = i64>) -> SeenTokens {
        let mut seen = SeenTokens::default();
        numbers.into_iter().for_each(|number| seen.insert(number));
        seen
    }

    #[test]
    fn random_sets_round_trip() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let most = 1 << rng.u32(1..20);
            let numbers: Vec<i64> = (0..rng.usize(0..500)).map(|_| rng.i64(0..most)).collect();
            let seen = of(numbers.iter().copied());
            let read = SeenTokens::from_bytes(&seen.to_bytes()).expect("valid");
            assert_eq!(read.numbers().collect::<Vec<_>>(), seen.numbers().collect::<Vec<_>>(), "seed {seed}");
            assert!(numbers.iter().all(|number| read.contains(*number)), "seed {seed}");
            assert_eq!(read.numbers().count(), numbers.iter().collect::<std::collections::HashSet<_>>().len(), "seed {seed}");
        }
    }

    #[test]
    fn ten_thousand_tokens_need_a_bit_each_and_a_few_tokens_a_byte_each() {
        assert_eq!(of(1..=10_000).to_bytes().len(), 1_252);
        assert_eq!(of([5, 6, 9_000]).to_bytes().len(), 5);
        assert_eq!(of([]).to_bytes().len(), 1);
    }

    #[test]
    fn forged_sets_are_rejected() {
        for bad in [&[][..], &[2], &[7, 1], &[0, 0x80], &[0, 0xff, 0xff, 0xff, 0xff, 1], &[0, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(SeenTokens::from_bytes(bad), None, "{bad:?}");
        }
        let mut large = vec![0; 200_000];
        (large[0], large[199_999]) = (1, 1);
        assert_eq!(SeenTokens::from_bytes(&large), None);
    }
}
