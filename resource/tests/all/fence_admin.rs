//! The limit on a token's jump, and the fences that operators set, on each store.

use crate::common::calls::{key, owner, plain, read, snapshot, token, version_of, write};
use crate::common::disk::Disk;
use crate::common::events::Events;
use futures_util::FutureExt;
use resource::MaxJump;
use resource::fence::{FenceMoved, Fencing, Refusal, WriteOutcome};
use resource::store::{
    CHANGES_MAX, FenceAdmin, FenceChange, MemoryStore, Read, ReadOutcome, RedbStore, SetOutcome, Write,
};

const ON: Fencing = Fencing::On;
const POISON: u64 = u64::MAX;

/// Makes a test of each promise on each store.
macro_rules! promises {
    ($($promise:ident),*) => {
        mod in_memory {
            $(#[test] fn $promise() {
                super::$promise(super::MemoryStore::new(), super::MemoryStore::with_max_jump);
            })*
        }
        mod on_redb {
            $(#[test] fn $promise() {
                let store = super::RedbStore::create(super::Disk::default()).unwrap();
                super::$promise(store, super::RedbStore::with_max_jump);
            })*
        }
        #[cfg(feature = "objects")]
        mod in_a_bucket {
            $(#[test] fn $promise() {
                use resource::store::BucketStore;
                let bucket = std::sync::Arc::new(object_store::memory::InMemory::new());
                let store = BucketStore::new(bucket, "resources", &crate::common::blocked::runtime());
                let limit = |store: Blocked<BucketStore>, max| Blocked(store.0.with_max_jump(max));
                super::$promise(Blocked(store), limit);
            })*
            use crate::common::blocked::Blocked;
        }
        #[cfg(feature = "files")]
        mod in_a_folder {
            $(#[test] fn $promise() {
                use resource::store::FolderStore;
                let scratch = crate::common::scratch::Scratch::new();
                let store = FolderStore::open(scratch.path()).unwrap();
                super::$promise(store, FolderStore::with_max_jump);
            })*
        }
    };
}

promises!(
    a_token_beyond_the_step_is_refused_and_moves_nothing,
    without_fencing_or_a_limit_any_token_passes,
    a_poisoned_key_works_again_after_its_fence_is_set,
    a_fence_that_has_moved_is_not_set,
    the_newest_changes_are_returned_first
);

fn jump(seen: Option<u64>, got: u64, max: u64) -> Refusal {
    Refusal::Jump { seen: seen.map(token), got: token(got), max }
}

fn change(from: u64, to: u64, reason: &str) -> FenceChange {
    let number = dlock::FencingToken::new;
    FenceChange {
        from: number(from),
        to: number(to),
        who: "alice".to_owned(),
        reason: reason.to_owned(),
        at_millis: 7,
    }
}

fn set(store: &impl FenceAdmin, change: &FenceChange) -> SetOutcome {
    store.set_fence(&key("k"), change).now_or_never().expect("completes at once").unwrap()
}

fn changes(store: &impl FenceAdmin, name: &str) -> Vec<FenceChange> {
    store.fence_changes(&key(name)).now_or_never().expect("completes at once").unwrap()
}

fn a_token_beyond_the_step_is_refused_and_moves_nothing<S: FenceAdmin>(store: S, limit: fn(S, MaxJump) -> S) {
    let (store, k) = (limit(store, MaxJump::new(10, 5)), key("k"));
    let claim = |number: u64| Read { claim: Some(token(number)), owner: owner("a") };
    let refused = |refusal| WriteOutcome::Refused(refusal);
    let before = snapshot(&store, &k);
    assert_eq!(write(&store, &k, &plain(11, "x"), ON).unwrap(), refused(jump(None, 11, 10)));
    let claimed = read(&store, &k, &claim(11), ON).unwrap();
    assert_eq!(claimed, ReadOutcome::Refused(jump(None, 11, 10)));
    assert_eq!(snapshot(&store, &k), before);

    assert_eq!(version_of(write(&store, &k, &plain(10, "a"), ON).unwrap()), Some(1));
    let before = snapshot(&store, &k);
    assert_eq!(write(&store, &k, &plain(POISON, "x"), ON).unwrap(), refused(jump(Some(10), POISON, 15)));
    let claimed = read(&store, &k, &claim(16), ON).unwrap();
    assert_eq!(claimed, ReadOutcome::Refused(jump(Some(10), 16, 15)));
    assert_eq!(snapshot(&store, &k), before);
    assert!(matches!(read(&store, &k, &claim(15), ON).unwrap(), ReadOutcome::Read(_)));
}

fn without_fencing_or_a_limit_any_token_passes<S: FenceAdmin>(store: S, limit: fn(S, MaxJump) -> S) {
    assert_eq!(version_of(write(&store, &key("k"), &plain(POISON, "x"), ON).unwrap()), Some(1));
    let store = limit(store, MaxJump::COUNTER);
    let off = write(&store, &key("other"), &plain(POISON, "x"), Fencing::Off).unwrap();
    assert_eq!(version_of(off), Some(1));
}

fn a_poisoned_key_works_again_after_its_fence_is_set<S: FenceAdmin>(store: S, _: fn(S, MaxJump) -> S) {
    let k = key("k");
    let poisoned = Write { owner: owner("x"), ..plain(POISON, "poison") };
    write(&store, &k, &plain(34, "a"), ON).unwrap();
    write(&store, &k, &poisoned, ON).unwrap();
    let stale = Refusal::Stale { seen: token(POISON), got: token(35) };
    assert_eq!(write(&store, &k, &plain(35, "b"), ON).unwrap(), WriteOutcome::Refused(stale));

    let events = Events::default();
    events.collect_here();
    let change = change(POISON, 34, "a client sent the largest number");
    assert_eq!(set(&store, &change), SetOutcome::Set);
    let set = events.all();
    let field = |name: &str| set[0].iter().find(|(field, _)| **field == name).map(|(_, value)| value.clone());
    assert_eq!((set.len(), field("event")), (1, Some("fence_set".to_owned())));
    let numbers = (field("fencing_token"), field("seen"));
    assert_eq!(numbers, (Some("34".to_owned()), Some(POISON.to_string())));

    assert_eq!(changes(&store, "k"), [change]);
    assert_eq!(changes(&store, "l"), []);
    assert_eq!(snapshot(&store, &k).value, Some("poison".into()), "the value stays");
    let again = write(&store, &k, &poisoned, ON).unwrap();
    assert!(matches!(again, WriteOutcome::Repeated(_)), "a retry does not poison it again: {again:?}");
    let stale = Refusal::Stale { seen: token(34), got: token(34) };
    assert_eq!(write(&store, &k, &plain(34, "c"), ON).unwrap(), WriteOutcome::Refused(stale));
    assert_eq!(version_of(write(&store, &k, &plain(35, "b"), ON).unwrap()), Some(3));
}

fn a_fence_that_has_moved_is_not_set<S: FenceAdmin>(store: S, _: fn(S, MaxJump) -> S) {
    write(&store, &key("k"), &plain(35, "b"), ON).unwrap();
    let moved = FenceMoved { expected: Some(token(34)), current: Some(token(35)) };
    assert_eq!(set(&store, &change(34, 1, "too late")), SetOutcome::Moved(moved));
    assert_eq!(snapshot(&store, &key("k")).max_fence, Some(token(35)));
    assert_eq!(changes(&store, "k"), []);
}

fn the_newest_changes_are_returned_first<S: FenceAdmin>(store: S, _: fn(S, MaxJump) -> S) {
    for number in 0..CHANGES_MAX as u64 + 2 {
        assert_eq!(set(&store, &change(number, number + 1, "up")), SetOutcome::Set);
    }
    let kept = changes(&store, "k");
    assert_eq!(kept.len(), CHANGES_MAX);
    assert_eq!(kept[0], change(101, 102, "up"));
    assert_eq!(kept[CHANGES_MAX - 1], change(2, 3, "up"));
}

#[test]
fn a_set_fence_and_its_record_outlive_a_crash() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    write(&store, &key("k"), &plain(POISON, "x"), ON).unwrap();
    let change = change(POISON, 0, "a test wrote it");
    assert_eq!(set(&store, &change), SetOutcome::Set);
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    assert_eq!(changes(&store, "k"), [change]);
    assert_eq!(snapshot(&store, &key("k")).max_fence, None);
    assert_eq!(version_of(write(&store, &key("k"), &plain(1, "a"), ON).unwrap()), Some(2));
}

#[test]
fn each_source_has_its_first_token_and_its_step() {
    let limits = [MaxJump::COUNTER, MaxJump::REVISION, MaxJump::ZXID, MaxJump::TIME];
    let first = limits.map(|limit| limit.max_after(None));
    assert_eq!(first, [1_000_000, 1 << 48, (1 << 52) - 1, (1 << 53) - 1]);
    let step = limits.map(|limit| limit.max_after(dlock::FencingToken::new(7)) - 7);
    assert_eq!(step, [1_000_000, 1 << 40, 1_000 << 32, 366 * 86_400_000_000]);
    let last = dlock::FencingToken::new(u64::MAX - 1);
    assert_eq!(MaxJump::COUNTER.max_after(last), u64::MAX, "it saturates");
}
