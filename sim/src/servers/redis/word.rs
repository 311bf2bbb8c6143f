//! Names of commands and options: short, in any case, and compared in one step.

/// A word of up to 16 bytes, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word(u128);

impl Word {
    /// Returns the word `text`. If it is longer than any name, the result equals no word of [`Word::new`].
    pub(crate) fn of(text: &[u8]) -> Self {
        if text.is_empty() || text.len() > 16 {
            return Self(u128::MAX);
        }
        let (first, rest) = text.split_at(text.len().min(8));
        Self(u128::from(half(first)) << 64 | u128::from(half(rest)))
    }

    /// Returns the word's first place in a hash table of 1024 places.
    pub(crate) const fn place(self) -> usize {
        let folded = (self.0 >> 64) as u64 ^ self.0 as u64;
        // Multiplying by the golden ratio spreads words with the same beginning.
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
    }

    /// Returns the word for a name in lower case, at compile time.
    pub(crate) const fn new(name: &str) -> Self {
        let name = name.as_bytes();
        assert!(name.len() <= 16);
        let mut bytes = [0; 16];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        Self(u128::from_be_bytes(bytes))
    }
}

/// Returns up to eight bytes in lower case, the first one in the highest place.
fn half(text: &[u8]) -> u64 {
    let bytes = match text.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        // Built in a register, which is faster than a copy in memory.
        None if text.is_empty() => 0,
        None => {
            let word = text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            word << (8 * (8 - text.len()))
        }
    };
    lower_case(bytes)
}

/// Changes the ASCII capitals among eight bytes to lower case, all at once.
///
/// Source: Warren, "Hacker's Delight", whose words are vectors of bytes.
const fn lower_case(bytes: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low_bits = bytes & (0x7f * ONES);
    // The highest bit of a byte is set from `A` on, and from the byte after `Z` on.
    let from_a = low_bits + (0x80 - b'A' as u64) * ONES;
    let after_z = low_bits + (0x7f - b'Z' as u64) * ONES;
    let is_capital = (from_a ^ after_z) & !bytes & (0x80 * ONES);
    bytes | is_capital >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_equal_in_any_case_and_ordered_as_texts() {
        const GET: Word = Word::new("get");
        assert_eq!(Word::of(b"GeT"), GET);
        for other in ["", "ge", "gets", "a word far longer than any name"] {
            assert_ne!(Word::of(other.as_bytes()), GET, "{other}");
        }
        assert!(Word::new("get") < Word::new("getdel") && Word::new("getdel") < Word::new("set"));
    }

    #[test]
    fn any_bytes_are_compared_as_in_lower_case() {
        for byte in 0..=u8::MAX {
            for text in [vec![byte], vec![byte; 8], [vec![b'x'; 8], vec![byte; 5]].concat()] {
                let mut expected = [0; 16];
                expected[..text.len()].copy_from_slice(&text.to_ascii_lowercase());
                assert_eq!(Word::of(&text).0, u128::from_be_bytes(expected), "{text:?}");
            }
        }
    }
}
