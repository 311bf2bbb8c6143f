//! The order of the entries in a queue. Pure: the names come in as an argument.

use dlock_zookeeper::path::{entry_number, entry_prefix, is_reader, reader_prefix};

/// Returns the name of the entry with that guid, if it is among `names`.
pub(super) fn find<'a>(names: &'a [String], guid: &str) -> Option<&'a str> {
    let prefixes = [entry_prefix(guid), reader_prefix(guid)];
    let is_own = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    names.iter().map(String::as_str).find(|name| is_own(name) && entry_number(name).is_some())
}

/// Returns the names of the entries directly ahead of the one numbered `own`, the nearest first, at most
/// `permits` of them. The entry is served once fewer than `permits` are ahead.
///
/// Only these are worth watching: so long as each of them is there, the entry is not served. If all watched
/// the first, each release would wake all.
pub(super) fn ahead(names: &[String], own: u32, permits: usize) -> Vec<&str> {
    all_ahead(names, own).take(permits).collect()
}

/// Returns the number of entries ahead of the one numbered `own` that have no permit.
pub(super) fn waiting_ahead(names: &[String], own: u32, permits: usize) -> u32 {
    u32::try_from(all_ahead(names, own).skip(permits).count()).unwrap_or(u32::MAX)
}

/// Returns the name of the last writer ahead of the reader numbered `own`, and those of the readers ahead,
/// the nearest first. The reader is served once there is no such writer, however many readers there are.
pub(super) fn ahead_of_reader(names: &[String], own: u32) -> (Option<&str>, Vec<&str>) {
    let (readers, writers): (Vec<_>, Vec<_>) = all_ahead(names, own).partition(|name| is_reader(name));
    (writers.first().copied(), readers)
}

/// Returns the names of all entries ahead of the one numbered `own`, the nearest first.
fn all_ahead(names: &[String], own: u32) -> impl Iterator<Item = &str> {
    let distance = |name: &str| entry_number(name).map(|number| number.wrapping_sub(own).cast_signed());
    let placed = names.iter().filter_map(|name| Some((distance(name)?, name.as_str())));
    let mut ahead: Vec<_> = placed.filter(|(distance, _)| *distance < 0).collect();
    ahead.sort_unstable_by(|one, other| other.cmp(one));
    ahead.into_iter().map(|(_, name)| name)
}

/// Returns the name of the first entry, which is served; `None` without one, or if its number does not show
/// the order any more: see [`is_used_up`].
pub(super) fn first(names: &[String]) -> Option<&str> {
    let mut numbered = names.iter().filter_map(|name| Some((entry_number(name)?, name.as_str())));
    let first = numbered.next()?;
    // Numbers may wrap, so the smallest need not be the first.
    let (number, name) = numbered
        .fold(first, |first, next| if next.0.wrapping_sub(first.0).cast_signed() < 0 { next } else { first });
    (!is_used_up(number)).then_some(name)
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
        fn each_entry_follows_those_before_it(first in count(), gaps in prop::collection::vec(1..9, 1..9)) {
            let mut count = first;
            let mut line = vec![name(first)];
            for gap in gaps {
                count = count.wrapping_add(gap);
                line.push(name(count));
            }
            let mut shuffled = line.clone();
            shuffled.sort();
            for permits in 1..4 {
                let is_ordered = !is_used_up(entry_number(&line[0]).unwrap());
                prop_assert_eq!(super::first(&shuffled), is_ordered.then_some(line[0].as_str()));
                for (place, name) in line.iter().enumerate() {
                    let nearest = line[..place].iter().rev().take(permits);
                    let own = entry_number(name).unwrap();
                    prop_assert_eq!(ahead(&shuffled, own, permits), nearest.collect::<Vec<_>>());
                    let waiting = place.saturating_sub(permits);
                    prop_assert_eq!(waiting_ahead(&shuffled, own, permits) as usize, waiting);
                }
            }
        }
    }

    /// The parties of a queue that have the lock, by the rule for each of them.
    fn served(line: &[String]) -> Vec<bool> {
        let is_served = |name: &String| {
            let own = entry_number(name).unwrap();
            match is_reader(name) {
                true => ahead_of_reader(line, own).0.is_none(),
                false => ahead(line, own, 1).is_empty(),
            }
        };
        line.iter().map(is_served).collect()
    }

    proptest! {
        #[test]
        fn the_first_readers_or_one_writer_are_served(first in count(), reads in prop::collection::vec(any::<bool>(), 1..9)) {
            let name = |(place, reads): (usize, &bool)| {
                let (guid, count) = (format!("{place:08x}"), first.wrapping_add(place as i32));
                let prefix = if *reads { reader_prefix(&guid) } else { entry_prefix(&guid) };
                format!("{prefix}{count:010}")
            };
            let line: Vec<String> = reads.iter().enumerate().map(name).collect();
            let readers = reads.iter().take_while(|reads| **reads).count();
            let expected: Vec<bool> = (0..line.len()).map(|place| place < readers.max(1)).collect();
            prop_assert_eq!(served(&line), expected);
            // Each of the others watches one that comes free before it does, and none watches a reader for a
            // reader.
            for (place, name) in line.iter().enumerate().skip(readers.max(1)) {
                let own = entry_number(name).unwrap();
                let watched = match reads[place] {
                    true => ahead_of_reader(&line, own).0.unwrap(),
                    false => ahead(&line, own, 1)[0],
                };
                let watched = line.iter().position(|name| name == watched).unwrap();
                prop_assert!(watched < place && !(reads[place] && reads[watched]));
                let between = line[watched + 1..place].iter();
                prop_assert!(between.clone().all(|name| is_reader(name)) && (reads[place] || between.len() == 0));
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
        assert_eq!(ahead(&[name(-1), name(0)], 0, 1), [name(-1)]);
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
        assert!(ahead(&names, 5, 9).is_empty());
        assert_eq!(find(&names, "x"), None);
        assert_eq!(first(&names), None);
    }

    #[test]
    fn an_entry_is_found_by_its_guid() {
        let names = [format!("{}0000000007", entry_prefix("aa")), name(8)];
        assert_eq!(find(&names, "7f3c9e12"), Some(names[1].as_str()));
        assert_eq!(find(&names, "7f3c"), None);
    }
}
