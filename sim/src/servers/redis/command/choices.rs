//! Random choices among the elements of a collection.

use crate::servers::redis::random::Rand48;

/// The most choices with repetition. Redis would be busy for hours with larger numbers.
const REPEATED_MAX: usize = 1 << 20;

/// Chooses places among `length`: `count` different ones in order, all if there are fewer; for a negative
/// count as many as that in any order, some perhaps several times.
pub(super) fn choose(random: &mut Rand48, length: usize, count: i64) -> Vec<usize> {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if length == 0 || wanted == 0 {
        return Vec::new();
    }
    if count < 0 {
        return (0..wanted.min(REPEATED_MAX)).map(|_| random.below(length)).collect();
    }
    let mut left: Vec<usize> = (0..length).collect();
    while left.len() > wanted {
        let at = random.below(left.len());
        left.remove(at);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_positive_count_chooses_different_places() {
        let mut random = Rand48::keyed(b"redis");
        for count in 0..6 {
            let mut chosen = choose(&mut random, 4, count);
            chosen.dedup();
            assert_eq!(chosen.len() as i64, count.min(4));
            assert!(chosen.is_sorted() && chosen.iter().all(|place| *place < 4));
        }
    }

    #[test]
    fn a_negative_count_chooses_as_many_places() {
        let mut random = Rand48::keyed(b"redis");
        assert_eq!(choose(&mut random, 2, -5).len(), 5);
        assert!(choose(&mut random, 0, -5).is_empty());
    }
}
