//! The packed format of a token's linear unlocks in `token_supply`: start, end, and amount, 24 bytes each.

use model::{LinearPiece, Timestamp};

/// The length of a packed linear unlock. NaN stands for an unknown amount.
const PIECE_BYTES: usize = 24;

/// Packs the linear unlocks that have not ended at `now`. Keeps their order.
pub(super) fn pack(pieces: impl IntoIterator<Item = LinearPiece>, now: Timestamp) -> Vec<u8> {
    let now = now.timestamp_millis();
    let pieces: Vec<LinearPiece> = pieces.into_iter().filter(|piece| piece.ends_at > now).collect();
    let mut packed = Vec::with_capacity(pieces.len() * PIECE_BYTES);
    for piece in &pieces {
        packed.extend(piece.starts_at.to_le_bytes());
        packed.extend(piece.ends_at.to_le_bytes());
        packed.extend(piece.amount.unwrap_or(f64::NAN).to_le_bytes());
    }
    packed
}

/// Returns the linear unlocks of a packed list that [`is_valid`]. Invalid ones are left out.
pub(super) fn unpack(packed: &[u8]) -> impl Iterator<Item = LinearPiece> + '_ {
    packed.as_chunks::<PIECE_BYTES>().0.iter().filter_map(piece)
}

/// Returns whether a packed list is complete, and each of its linear unlocks is valid.
pub(super) fn is_valid(packed: &[u8]) -> bool {
    let (pieces, rest) = packed.as_chunks::<PIECE_BYTES>();
    rest.is_empty() && pieces.iter().all(|packed| piece(packed).is_some())
}

fn piece(packed: &[u8; PIECE_BYTES]) -> Option<LinearPiece> {
    let (parts, _) = packed.as_chunks::<8>();
    let [starts_at, ends_at, amount] = <[[u8; 8]; 3]>::try_from(parts).ok()?;
    let amount = Some(f64::from_le_bytes(amount)).filter(|amount| !amount.is_nan());
    LinearPiece::new(i64::from_le_bytes(starts_at), i64::from_le_bytes(ends_at), amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_pieces_round_trip_without_ended_ones() {
        let piece = |start: i64, end: i64, amount: Option<f64>| LinearPiece::new(start, end, amount).expect("a piece");
        let now = Timestamp::from_timestamp_millis(1_000).expect("a time");
        let pieces = [piece(5_000, 9_000, None), piece(0, 1_000, Some(1.0)), piece(-7, 1_001, Some(2.5))];
        let packed = pack(pieces, now);
        assert_eq!(unpack(&packed).collect::<Vec<_>>(), [pieces[0], pieces[2]]);
        assert!(is_valid(&packed) && is_valid(&[]));
        assert!(!is_valid(&packed[..30]), "a tail is missing");
        assert!(!is_valid(&[0xff; PIECE_BYTES]), "an end before its start");
    }
}
