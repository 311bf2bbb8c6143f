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
        // Built in a register, which is faster than a copy in memory.
        let word = text.iter().fold(0, |word, byte| word << 8 | u128::from(byte.to_ascii_lowercase()));
        Self(word << (8 * (16 - text.len())))
    }

    /// Returns the word's first place in a hash table of 256 places.
    pub(crate) const fn place(self) -> usize {
        let folded = (self.0 >> 64) as u64 ^ self.0 as u64;
        // Multiplying by the golden ratio spreads words with the same beginning.
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
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
}
