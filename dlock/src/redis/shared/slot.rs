//! The hash slots of Redis Cluster, and a tag for each.

use std::sync::LazyLock;

use crc::{CRC_16_XMODEM, Crc};

/// The number of hash slots.
///
/// Source: the Redis Cluster specification, "Key distribution model": CRC16 in its XMODEM form, modulo this.
const SLOTS: usize = 16_384;

static CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The smallest number for each slot whose decimal digits lie in it.
static TAGS: LazyLock<Box<[u32]>> = LazyLock::new(|| {
    let mut tags = vec![None; SLOTS];
    let mut left = SLOTS;
    for number in 0u32.. {
        let tag = &mut tags[slot_of(&number.to_string())];
        if tag.replace(tag.unwrap_or(number)).is_none() {
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    tags.into_iter().flatten().collect()
});

/// A text in the hash slot of another one, the same for all texts of that slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag(Box<str>);

impl Tag {
    /// Returns the tag of the slot in which the keys with the hash tag `text` lie.
    pub(super) fn of(text: &str) -> Self {
        // Each slot has a tag.
        Self(TAGS.get(slot_of(text)).copied().unwrap_or_default().to_string().into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

fn slot_of(text: &str) -> usize {
    usize::from(CRC.checksum(text.as_bytes())) % SLOTS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // `CLUSTER KEYSLOT` of Redis 7.0.15.
        assert_eq!(slot_of("123456789"), 12_739);
        assert_eq!(slot_of("orders:42"), 11_414);
        assert_eq!(slot_of(""), 0);
    }

    #[test]
    fn each_slot_has_a_tag_of_its_own() {
        assert_eq!(TAGS.len(), SLOTS);
        for (slot, tag) in TAGS.iter().enumerate() {
            assert_eq!(slot_of(&tag.to_string()), slot);
        }
    }

    proptest! {
        #[test]
        fn the_tag_lies_in_the_slot_of_its_text(text in "\\PC{0,40}") {
            prop_assert_eq!(slot_of(Tag::of(&text).as_str()), slot_of(&text));
        }
    }
}
