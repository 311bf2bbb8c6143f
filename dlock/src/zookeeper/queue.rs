//! The order of the entries in a queue. Pure: the names come in as an argument.

use dlock_zookeeper::path::{entry_number, entry_prefix};

/// Returns the name of the entry with that guid, if it is among `names`.
pub(super) fn find<'a>(names: &'a [String], guid: &str) -> Option<&'a str> {
    let prefix = entry_prefix(guid);
    names.iter().map(String::as_str).find(|name| name.starts_with(&prefix) && entry_number(name).is_some())
}

/// Returns the name of the entry directly ahead of the one numbered `own`; `None` if that is the first.
///
/// Only this one is worth watching: if all watched the first, each release would wake all.
pub(super) fn ahead(names: &[String], own: u32) -> Option<&str> {
    let distance = |name: &str| entry_number(name).map(|number| number.wrapping_sub(own).cast_signed());
    let placed = names.iter().filter_map(|name| Some((distance(name)?, name.as_str())));
    placed.filter(|(distance, _)| *distance < 0).max_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns true if `number` is the last one, or beyond it: several entries may have such numbers, and their
/// names don't show their order. ZooKeeper increments its counter only while the new count is greater
/// (`DataTree.createNode`). So the counter stays at 2 147 483 647, and every later child gets that number, or
/// a negative one while the creation before it is in progress.
pub(super) fn is_used_up(number: u32) -> bool {
    number >= i32::MAX.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the name that a server gives to the entry with the count `count`.
    fn name(count: i32) -> String {
        format!("{}{count:010}", entry_prefix("7f3c9e12"))
    }

    /// Any count; those next to an overflow as often as all others.
    fn count() -> impl Strategy<Value = i32> {
        prop_oneof![any::<i32>(), -20..20i32, i32::MAX - 20..=i32::MAX]
    }

    proptest! {
        #[test]
        fn each_entry_follows_the_one_before_it(first in count(), gaps in prop::collection::vec(1..9, 1..9)) {
            let mut count = first;
            let mut line = vec![name(first)];
            for gap in gaps {
                count = count.wrapping_add(gap);
                line.push(name(count));
            }
            let mut shuffled = line.clone();
            shuffled.sort();
            prop_assert_eq!(ahead(&shuffled, first.cast_unsigned()), None);
            for pair in line.windows(2) {
                let own = entry_number(&pair[1]).unwrap();
                prop_assert_eq!(ahead(&shuffled, own), Some(pair[0].as_str()));
            }
        }
    }

    #[test]
    fn a_count_that_overflows_is_ordered() {
        assert_eq!(name(i32::MIN), "_c_7f3c9e12-lock--2147483648");
        assert_eq!(name(-1), "_c_7f3c9e12-lock--000000001");
        assert_eq!(entry_number(&name(i32::MAX)), Some(0x7fff_ffff));
        assert_eq!(entry_number(&name(i32::MIN)), Some(0x8000_0000));
        assert_eq!(entry_number(&name(-1)), Some(u32::MAX));
        assert_eq!(ahead(&[name(-1), name(0)], 0), Some(name(-1).as_str()));
    }

    #[test]
    fn numbers_end_before_they_repeat() {
        let is_used_up = |count| is_used_up(entry_number(&name(count)).unwrap());
        assert_eq!([0, 1, i32::MAX - 1].map(is_used_up), [false; 3]);
        assert_eq!([i32::MAX, i32::MIN, -1].map(is_used_up), [true; 3]);
    }

    #[test]
    fn other_nodes_are_ahead_of_no_entry() {
        let names =
            ["config", "_c_x-lock-", "_c_x-lock-000000000x", "_c_x-lock-+000000001"].map(str::to_owned);
        assert_eq!(ahead(&names, 5), None);
        assert_eq!(find(&names, "x"), None);
    }

    #[test]
    fn an_entry_is_found_by_its_guid() {
        let names = [format!("{}0000000007", entry_prefix("aa")), name(8)];
        assert_eq!(find(&names, "7f3c9e12"), Some(names[1].as_str()));
        assert_eq!(find(&names, "7f3c"), None);
    }
}
