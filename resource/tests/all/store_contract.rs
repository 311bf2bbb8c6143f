//! The contract of all stores, tested on each.

use crate::common::calls::{
    conflict, key, on, owner, plain, read, receipt, snapshot, token, version_of, write,
};
use crate::common::disk::Disk;
use crate::common::events::Events;
use bytes::Bytes;
use dlock::FencingToken;
use proptest::prelude::*;
use resource::BodyDigest;
use resource::fence::{Fence, Fencing, Guard, Refusal, WriteOutcome, WriteSeq};
use resource::store::{MemoryStore, Read, ReadOutcome, RedbStore, Snapshot, Store, StoreError, Write};

const ON: Fencing = Fencing::On;

/// Makes a test of each promise on each store.
macro_rules! promises {
    ($($promise:ident),*) => {
        mod in_memory { $(#[test] fn $promise() { super::$promise(super::MemoryStore::new()); })* }
        mod on_redb {
            $(#[test] fn $promise() {
                super::$promise(super::RedbStore::create(super::Disk::default()).unwrap());
            })*
        }
        #[cfg(feature = "objects")]
        mod in_a_bucket {
            $(#[test] fn $promise() { super::$promise(crate::common::blocked::bucket()); })*
        }
        #[cfg(feature = "files")]
        mod in_a_folder {
            $(#[test] fn $promise() {
                let scratch = crate::common::scratch::Scratch::new();
                super::$promise(scratch.store());
            })*
        }
    };
}

promises!(
    a_key_never_written_is_empty,
    a_refused_write_leaves_the_value,
    keys_do_not_share_a_fence,
    a_claim_keeps_the_value_and_raises_the_fence,
    without_fencing_a_stale_write_is_applied,
    a_conditional_write_needs_the_version_that_it_names,
    a_conditional_write_does_not_get_around_the_fence,
    racing_updates_lose_none,
    racing_writers_pass_one_check_at_a_time,
    events_are_in_the_order_of_the_decisions
);

fn a_key_never_written_is_empty(store: impl Store) {
    let empty = Snapshot { value: None, version: 0, max_fence: None };
    assert_eq!(snapshot(&store, &key("k")), empty);
}

fn a_refused_write_leaves_the_value(store: impl Store) {
    let k = key("k");
    write(&store, &k, &plain(34, "b"), ON).unwrap();
    let late = write(&store, &k, &plain(33, "a"), ON).unwrap();
    assert_eq!(late, WriteOutcome::Refused(Refusal::Stale { seen: token(34), got: token(33) }));
    let kept = Snapshot { value: Some("b".into()), version: 1, max_fence: Some(token(34)) };
    assert_eq!(snapshot(&store, &k), kept);
}

fn keys_do_not_share_a_fence(store: impl Store) {
    write(&store, &key("one"), &plain(34, "x"), ON).unwrap();
    let other = write(&store, &key("two"), &plain(1, "y"), ON).unwrap();
    assert_eq!(version_of(other), Some(1));
    assert_eq!(snapshot(&store, &key("one")).value, Some("x".into()));
}

fn a_claim_keeps_the_value_and_raises_the_fence(store: impl Store) {
    let k = key("k");
    write(&store, &k, &plain(33, "a"), ON).unwrap();
    let claim = Read { claim: Some(token(34)), owner: owner("b") };
    let claimed = Snapshot { value: Some("a".into()), version: 1, max_fence: Some(token(34)) };
    assert_eq!(read(&store, &k, &claim, ON).unwrap(), ReadOutcome::Read(claimed.clone()));
    let stale = Read { claim: Some(token(33)), owner: owner("a") };
    let refusal = Refusal::Stale { seen: token(34), got: token(33) };
    assert_eq!(read(&store, &k, &stale, ON).unwrap(), ReadOutcome::Refused(refusal));
    assert_eq!(snapshot(&store, &k), claimed);
}

fn without_fencing_a_stale_write_is_applied(store: impl Store) {
    let k = key("k");
    write(&store, &k, &plain(34, "b"), Fencing::Off).unwrap();
    assert_eq!(version_of(write(&store, &k, &plain(33, "a"), Fencing::Off).unwrap()), Some(2));
    let corrupted = Snapshot { value: Some("a".into()), version: 2, max_fence: Some(token(34)) };
    assert_eq!(snapshot(&store, &k), corrupted);
}

fn a_conditional_write_needs_the_version_that_it_names(store: impl Store) {
    let k = key("k");
    let first = on(0, Some("a:1"), "a");
    assert_eq!(write(&store, &k, &first, ON).unwrap(), WriteOutcome::Accepted(receipt(1)));
    let rival = write(&store, &k, &on(0, Some("b:1"), "b"), ON).unwrap();
    assert_eq!(rival, conflict(0, 1));
    let repeated = WriteOutcome::Repeated(receipt(1));
    assert_eq!(write(&store, &k, &first, ON).unwrap(), repeated, "a retry is no rival");
    let unnamed = on(1, None, "x");
    assert_eq!(write(&store, &k, &unnamed, ON).unwrap(), WriteOutcome::Accepted(receipt(2)));
    let again = write(&store, &k, &unnamed, ON).unwrap();
    assert_eq!(again, conflict(1, 2), "without an owner it is not known as a retry");
    assert_eq!(snapshot(&store, &k), Snapshot { value: Some("x".into()), version: 2, max_fence: None });
}

fn a_conditional_write_does_not_get_around_the_fence(store: impl Store) {
    let k = key("k");
    let mine = on(0, Some("c:1"), "c");
    write(&store, &k, &mine, ON).unwrap();
    read(&store, &k, &Read { claim: Some(token(34)), owner: owner("b") }, ON).unwrap();
    let fenced = WriteOutcome::Refused(Refusal::Fenced { seen: token(34) });
    assert_eq!(write(&store, &k, &on(1, Some("c:2"), "d"), ON).unwrap(), fenced, "after a claim");
    assert_eq!(
        write(&store, &k, &mine, ON).unwrap(),
        WriteOutcome::Repeated(receipt(1)),
        "an applied write is recognised"
    );
    write(&store, &k, &Write { owner: owner("b"), ..plain(34, "b") }, ON).unwrap();
    assert_eq!(write(&store, &k, &on(2, Some("c:3"), "e"), ON).unwrap(), fenced, "after a write");
    assert_eq!(snapshot(&store, &k).value, Some("b".into()));
    let off = write(&store, &k, &on(2, Some("c:4"), "f"), Fencing::Off).unwrap();
    assert_eq!(off, WriteOutcome::Accepted(receipt(3)), "without fencing the version alone decides");
}

/// Each of four threads adds one to a number, a hundred times.
fn racing_updates_lose_none(store: impl Store) {
    let k = key("k");
    let add = || loop {
        let Snapshot { value, version, .. } = snapshot(&store, &k);
        let number = value.map_or(0, |value| String::from_utf8(value.into()).unwrap().parse().unwrap());
        let more: u64 = number + 1;
        let outcome = write(&store, &k, &on(version, None, &more.to_string()), ON).unwrap();
        if version_of(outcome).is_some() {
            return;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| add()));
        }
    });
    assert_eq!(snapshot(&store, &k), Snapshot { value: Some("400".into()), version: 400, max_fence: None });
}

/// Lets `racers` threads write, and returns (version, token) of the accepted writes. Each thread climbs
/// through all the tokens, so that nearly every check has a rival.
fn race(store: &impl Store, racers: u64, tokens: u64, events: &Events) -> Vec<(u64, u64)> {
    let run = |racer: u64| {
        events.collect_here();
        let climb = (1..=tokens).map(|number| (number, format!("{racer}")));
        let sent =
            climb.map(|(number, body)| (number, write(store, &key("k"), &plain(number, &body), ON).unwrap()));
        sent.filter_map(|(number, outcome)| Some((version_of(outcome)?, number))).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..racers).map(|racer| scope.spawn(move || run(racer))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn racing_writers_pass_one_check_at_a_time(store: impl Store) {
    let mut accepted = race(&store, 4, 200, &Events::default());
    accepted.sort_unstable();
    let versions: Vec<u64> = accepted.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (1..=accepted.len() as u64).collect::<Vec<_>>(), "each version once");
    assert!(accepted.is_sorted_by(|(_, a), (_, b)| a < b), "tokens go up with the versions: {accepted:?}");
    assert_eq!(snapshot(&store, &key("k")).max_fence, Some(token(200)));
}

fn events_are_in_the_order_of_the_decisions(store: impl Store) {
    let events = Events::default();
    race(&store, 4, 200, &events);
    let mut seen = 0;
    for event in events.all() {
        let number: u64 = event["fencing_token"].parse().unwrap();
        if event["event"] == "write_accepted" {
            assert!(number > seen, "{event:?} after {seen}");
            seen = number;
        } else {
            assert_eq!(event["seen"], seen.to_string(), "{event:?}");
        }
    }
    assert_eq!(seen, 200);
}

/// A step of a random script.
#[derive(Clone, Debug)]
enum Step {
    Write(&'static str, Write),
    Read(&'static str, Read),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let names = prop_oneof![Just("k"), Just("l")];
    let owners = prop_oneof![Just(None), Just(owner("a")), Just(owner("b"))];
    let step = (names, 0..6u64, 0..4u64, owners, "[xy]{0,2}", 0..3u8).prop_map(
        |(name, number, seq, owner, body, what)| match (what, FencingToken::new(number)) {
            (0, Some(token)) => {
                let guard = Guard::Token { token, seq: WriteSeq::new(seq) };
                Step::Write(name, Write { guard, owner, body: body.into() })
            }
            (1, _) => {
                let guard = Guard::Version { expected: seq };
                Step::Write(name, Write { guard, owner, body: body.into() })
            }
            (_, claim) => Step::Read(name, Read { claim, owner }),
        },
    );
    prop::collection::vec(step, 0..24)
}

/// A model of one key.
#[derive(Clone, Debug, Default)]
struct Model {
    fence: Fence,
    value: Option<Bytes>,
}

impl Model {
    fn write(&mut self, write: &Write, fencing: Fencing) -> WriteOutcome {
        let outcome =
            self.fence.write(write.guard, write.owner.as_ref(), BodyDigest::of(&write.body), fencing);
        if version_of(outcome).is_some() {
            self.value = Some(write.body.clone());
        }
        outcome
    }

    fn read(&mut self, read: &Read, fencing: Fencing) -> ReadOutcome {
        match read.mark().map_or(Ok(()), |mark| self.fence.claim(&mark, fencing)) {
            Ok(()) => ReadOutcome::Read(self.snapshot()),
            Err(refusal) => ReadOutcome::Refused(refusal),
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { value: self.value.clone(), version: self.fence.version, max_fence: self.fence.max_fence() }
    }
}

fn agrees(store: &impl Store, steps: &[Step], fencing: Fencing) -> Result<(), TestCaseError> {
    let mut models = std::collections::BTreeMap::<&str, Model>::new();
    for step in steps {
        match step {
            Step::Write(name, asked) => {
                let expected = models.entry(name).or_default().write(asked, fencing);
                prop_assert_eq!(write(store, &key(name), asked, fencing).unwrap(), expected, "{:?}", step);
            }
            Step::Read(name, asked) => {
                let expected = models.entry(name).or_default().read(asked, fencing);
                prop_assert_eq!(read(store, &key(name), asked, fencing).unwrap(), expected, "{:?}", step);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_memory_store_agrees_with_the_fence(steps in steps(), off: bool) {
        agrees(&MemoryStore::new(), &steps, if off { Fencing::Off } else { ON })?;
    }

    #[test]
    fn the_redb_store_agrees_with_the_fence(steps in steps(), off: bool) {
        agrees(&RedbStore::create(Disk::default()).unwrap(), &steps, if off { Fencing::Off } else { ON })?;
    }

    #[test]
    #[cfg(feature = "objects")]
    fn the_store_in_a_bucket_agrees_with_the_fence(steps in steps(), off: bool) {
        agrees(&crate::common::blocked::bucket(), &steps, if off { Fencing::Off } else { ON })?;
    }

    /// The power fails at some operation of the disk. Afterwards the store holds all acknowledged requests;
    /// the interrupted one is stored as a whole or not at all.
    #[test]
    fn acknowledged_writes_survive_a_loss_of_power(steps in steps(), power in 0..200u64, survivors: u64) {
        let disk = Disk::default();
        let store = RedbStore::create(disk.clone()).unwrap();
        disk.fail_after(power);
        let mut model = Model::default();
        let mut halfway = None;
        for step in &steps {
            let mut next = model.clone();
            let answer = match step {
                Step::Write("k", asked) => {
                    next.write(asked, ON);
                    write(&store, &key("k"), asked, ON).map(drop)
                }
                Step::Read("k", asked) => {
                    next.read(asked, ON);
                    read(&store, &key("k"), asked, ON).map(drop)
                }
                Step::Write(..) | Step::Read(..) => continue,
            };
            if answer.is_err() {
                halfway = Some(next.snapshot());
                break;
            }
            model = next;
        }
        let survives = |number: usize| survivors >> (number % 64) & 1 == 1;
        let reopened = RedbStore::create(disk.after_power_loss(survives)).unwrap();
        let found = snapshot(&reopened, &key("k"));
        prop_assert!(found == model.snapshot() || Some(&found) == halfway.as_ref(),
            "found {:?}, acknowledged {:?}, halfway {:?}", found, model.snapshot(), halfway);
    }
}

#[cfg(feature = "files")]
proptest! {
    // Each change waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_store_in_a_folder_agrees_with_the_fence(steps in steps(), off: bool) {
        agrees(&crate::common::scratch::Scratch::new().store(), &steps, if off { Fencing::Off } else { ON })?;
    }
}

/// B33: a resource that forgets its highest token lets the stale writer in after a restart.
#[test]
fn the_highest_token_outlives_a_crash() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    let mine = Write { owner: owner("b"), ..plain(34, "b") };
    assert_eq!(version_of(write(&store, &key("k"), &mine, ON).unwrap()), Some(1));
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    let late = write(&store, &key("k"), &plain(33, "a"), ON).unwrap();
    assert!(matches!(late, WriteOutcome::Refused(Refusal::Stale { .. })), "{late:?}");
    let again = write(&store, &key("k"), &mine, ON).unwrap();
    assert!(
        matches!(again, WriteOutcome::Repeated(_)),
        "the writer's retry is recognised after the crash: {again:?}"
    );
}

#[test]
fn a_conditional_write_and_its_retry_outlive_a_crash() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    let mine = on(0, Some("a:1"), "a");
    write(&store, &key("k"), &mine, ON).unwrap();
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    let again = write(&store, &key("k"), &mine, ON).unwrap();
    assert_eq!(again, WriteOutcome::Repeated(receipt(1)));
    let rival = write(&store, &key("k"), &on(0, Some("b:1"), "b"), ON).unwrap();
    assert_eq!(rival, conflict(0, 1));
}

/// A claim without a write must be durable, too.
#[test]
fn a_claim_outlives_a_crash() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    read(&store, &key("k"), &Read { claim: Some(token(34)), owner: owner("b") }, ON).unwrap();
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    let late = write(&store, &key("k"), &plain(33, "a"), ON).unwrap();
    assert!(matches!(late, WriteOutcome::Refused(_)), "{late:?}");
}

#[test]
fn a_file_keeps_its_values() {
    let path = std::env::temp_dir().join(format!("resource-store-{}.redb", std::process::id()));
    let store = RedbStore::open(&path).unwrap();
    write(&store, &key("k"), &plain(34, "b"), ON).unwrap();
    drop(store);
    let found = snapshot(&RedbStore::open(&path).unwrap(), &key("k"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found, Snapshot { value: Some("b".into()), version: 1, max_fence: Some(token(34)) });
}

#[test]
fn a_disk_with_something_else_on_it_is_refused() {
    let disk = Disk::default();
    redb::StorageBackend::set_len(&disk, 4096).unwrap();
    redb::StorageBackend::write(&disk, 0, b"not a database").unwrap();
    assert!(matches!(RedbStore::create(disk), Err(StoreError::Unavailable(_))));
}
