//! The contract of all stores about the permits of a semaphore, tested on each.

use crate::common::calls::{key, owner, plain, snapshot, token, version_of};
use crate::common::disk::Disk;
use futures_util::FutureExt;
use proptest::prelude::*;
use redb::{ReadableTable, TableDefinition};
use resource::fence::{Beside, Fence, Fencing, Guard, Refusal, WriteOutcome, WriteSeq};
use resource::store::{
    FenceAdmin, FenceChange, MemoryStore, Read, ReadOutcome, RedbStore, SetOutcome, Snapshot, Store,
    StoreError, Write,
};
use resource::{BodyDigest, ResourceKey};

const ON: Fencing = Fencing::On;

fn set(tokens: &[u64]) -> Beside {
    Beside::new(tokens.iter().copied().map(token)).unwrap()
}

fn write(store: &impl Store, write: &Write, beside: &[u64]) -> WriteOutcome {
    let outcome = store.write_beside(&key("k"), write, &set(beside), ON).now_or_never();
    outcome.expect("completes at once").unwrap()
}

fn claim(store: &impl Store, number: u64, name: &str, beside: &[u64]) -> ReadOutcome {
    let read = Read { claim: Some(token(number)), owner: owner(name) };
    let outcome = store.read_beside(&key("k"), &read, &set(beside), ON).now_or_never();
    outcome.expect("completes at once").unwrap()
}

fn owned(number: u64, name: &str) -> Write {
    Write { owner: owner(name), ..plain(number, name) }
}

fn numbered(number: u64, seq: u64, body: &str) -> Write {
    Write { guard: Guard::Token { token: token(number), seq: WriteSeq::new(seq) }, ..plain(number, body) }
}

fn stale(seen: u64, got: u64) -> WriteOutcome {
    WriteOutcome::Refused(Refusal::Stale { seen: token(seen), got: token(got) })
}

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
    a_live_permit_writes_after_a_newer_one,
    a_claim_below_the_highest_token_is_kept,
    a_claim_replaces_the_permits,
    a_write_without_a_set_makes_a_mutex,
    an_operator_clears_the_permits
);

fn a_live_permit_writes_after_a_newer_one(store: impl Store) {
    assert_eq!(version_of(write(&store, &plain(9, "c"), &[7])), Some(1));
    assert_eq!(write(&store, &plain(8, "b"), &[7]), stale(9, 8), "8 had ended");
    assert_eq!(version_of(write(&store, &numbered(7, 1, "a"), &[])), Some(2));
    assert_eq!(write(&store, &numbered(7, 1, "a"), &[]), stale(9, 7), "a duplicate");
    assert_eq!(version_of(write(&store, &numbered(7, 2, "A"), &[])), Some(3));
    let last = Snapshot { value: Some("A".into()), version: 3, max_fence: Some(token(9)) };
    assert_eq!(snapshot(&store, &key("k")), last);
}

fn a_claim_below_the_highest_token_is_kept(store: impl Store) {
    assert!(matches!(claim(&store, 9, "c", &[7]), ReadOutcome::Read(_)));
    assert!(matches!(claim(&store, 7, "a", &[]), ReadOutcome::Read(_)));
    let foreign = Refusal::ForeignOwner { seen: token(9), got: token(7) };
    assert_eq!(write(&store, &owned(7, "b"), &[]), WriteOutcome::Refused(foreign));
    assert_eq!(claim(&store, 7, "b", &[]), ReadOutcome::Refused(foreign));
    assert_eq!(version_of(write(&store, &owned(7, "a"), &[])), Some(1));
}

fn a_claim_replaces_the_permits(store: impl Store) {
    write(&store, &owned(7, "a"), &[]);
    assert!(matches!(claim(&store, 9, "c", &[7]), ReadOutcome::Read(_)));
    let another = Write { body: "A".into(), ..owned(7, "a") };
    assert_eq!(write(&store, &another, &[]), stale(9, 7), "the plain write of 7 was its last");
    assert!(matches!(claim(&store, 12, "d", &[9]), ReadOutcome::Read(_)));
    assert_eq!(claim(&store, 7, "a", &[]), {
        ReadOutcome::Refused(Refusal::Stale { seen: token(12), got: token(7) })
    });
    assert_eq!(version_of(write(&store, &owned(9, "c"), &[7])), Some(2));
}

fn a_write_without_a_set_makes_a_mutex(store: impl Store) {
    write(&store, &plain(9, "c"), &[7]);
    write(&store, &plain(12, "d"), &[]);
    assert_eq!(write(&store, &plain(7, "a"), &[]), stale(12, 7));
    assert_eq!(write(&store, &plain(9, "c"), &[7]), stale(12, 9));
}

fn an_operator_clears_the_permits(store: impl FenceAdmin) {
    write(&store, &plain(9, "c"), &[5, 7]);
    let (who, reason) = ("o".to_owned(), "r".to_owned());
    let change = FenceChange { from: Some(token(9)), to: Some(token(8)), who, reason, at_millis: 1 };
    let outcome = store.set_fence(&key("k"), &change).now_or_never().unwrap().unwrap();
    assert_eq!(outcome, SetOutcome::Set);
    assert_eq!(write(&store, &plain(7, "a"), &[]), stale(8, 7));
}

/// A step of a random script: a write, or the claim of a read, and the set beside it.
type Step = (Result<Write, Read>, Vec<u64>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owners = prop_oneof![Just(None), Just(owner("a")), Just(owner("b"))];
    let asked =
        (1..8u64, 0..4u64, owners, "[xy]{0,2}").prop_map(|(number, place, owner, body)| match place {
            0 => Err(Read { claim: Some(token(number)), owner }),
            place => Ok(Write { owner, ..numbered(number, place, &body) }),
        });
    prop::collection::vec((asked, prop::collection::vec(1..8u64, 0..4)), 0..24)
}

fn agrees(store: &impl Store, steps: &[Step], fencing: Fencing) -> Result<(), TestCaseError> {
    let (k, mut fence) = (key("k"), Fence::default());
    for (asked, beside) in steps {
        let beside = set(beside);
        match asked {
            Ok(asked) => {
                let (owner, digest) = (asked.owner.as_ref(), BodyDigest::of(&asked.body));
                let expected = fence.write_beside(asked.guard, &beside, owner, digest, fencing);
                let found = store.write_beside(&k, asked, &beside, fencing).now_or_never().unwrap();
                prop_assert_eq!(found.unwrap(), expected, "{:?} beside {}", asked, beside);
            }
            Err(asked) => {
                let expected = fence.claim_beside(&asked.mark().unwrap(), &beside, fencing).err();
                let found = store.read_beside(&k, asked, &beside, fencing).now_or_never().unwrap();
                let found = match found.unwrap() {
                    ReadOutcome::Read(_) => None,
                    ReadOutcome::Refused(refusal) => Some(refusal),
                };
                prop_assert_eq!(found, expected, "{:?} beside {}", asked, beside);
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

#[test]
fn permits_outlive_a_crash() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    write(&store, &plain(9, "c"), &[6, 7]);
    write(&store, &numbered(7, 2, "a"), &[]);
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    assert_eq!(write(&store, &numbered(7, 2, "a"), &[]), stale(9, 7), "its position is kept");
    assert_eq!(version_of(write(&store, &numbered(7, 3, "A"), &[])), Some(3));
    assert_eq!(version_of(write(&store, &plain(6, "b"), &[])), Some(4));
    assert_eq!(write(&store, &plain(8, "x"), &[]), stale(9, 8));
}

/// The rows of the table `fences`, as they were before there were permits.
type Mark<'a> = (u64, u64, Option<&'a str>);
type Row<'a> = (u64, Option<Mark<'a>>, Option<(Mark<'a>, &'a [u8; 32])>);
const FENCES: TableDefinition<'_, &str, Row<'_>> = TableDefinition::new("fences");

/// Raises the highest token to 12 in the file of a store, as a program without permits does.
fn raise_by_an_older_program(disk: Disk) {
    let database = redb::Builder::new().create_with_backend(disk).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut fences = transaction.open_table(FENCES).unwrap();
    let version = fences.get("k").unwrap().unwrap().value().0;
    fences.insert("k", (version, Some((12, 0, None)), None)).unwrap();
    drop(fences);
    transaction.commit().unwrap();
}

#[test]
fn permits_of_a_token_that_an_older_program_has_replaced_do_not_count() {
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    write(&store, &plain(9, "c"), &[7]);
    drop(store);
    let disk = disk.after_power_loss(|_| false);
    raise_by_an_older_program(disk.clone());
    let store = RedbStore::create(disk.after_power_loss(|_| false)).unwrap();
    assert_eq!(write(&store, &plain(7, "a"), &[]), stale(12, 7));
    // Nor if an operator sets the fence back to that token.
    let (who, reason) = ("o".to_owned(), "r".to_owned());
    let change = FenceChange { from: Some(token(12)), to: Some(token(9)), who, reason, at_millis: 1 };
    let outcome = store.set_fence(&key("k"), &change).now_or_never().unwrap().unwrap();
    assert_eq!(outcome, SetOutcome::Set);
    assert_eq!(write(&store, &plain(7, "a"), &[]), stale(9, 7));
}

#[test]
fn a_store_of_mutexes_has_no_table_of_permits() {
    use redb::{ReadableDatabase, TableHandle};
    let disk = Disk::default();
    let store = RedbStore::create(disk.clone()).unwrap();
    write(&store, &plain(7, "a"), &[]);
    claim(&store, 9, "c", &[]);
    let database = redb::Builder::new().create_with_backend(disk.after_power_loss(|_| false)).unwrap();
    let transaction = database.begin_read().unwrap();
    let mut names: Vec<_> = transaction.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["fences", "values"]);
}

/// A record as it was written before there were permits.
#[test]
#[cfg(feature = "files")]
fn an_old_record_is_read_and_a_mutex_still_writes_one() {
    let scratch = crate::common::scratch::Scratch::new();
    let path = scratch.path().join("k-k.record");
    let old = "{\"format\":1,\"key\":\"k\",\"version\":0,\
         \"highest\":{\"token\":7,\"number\":0,\"owner\":\"a\"},\"last_write\":null,\"body\":\"none\",\
         \"stored_by\":\"\",\"written_by\":\"\",\"sweeps\":0,\"changes\":[]}\n";
    std::fs::write(&path, old).unwrap();
    let store = scratch.store();
    assert_eq!(write(&store, &plain(5, "x"), &[]), stale(7, 5));
    claim(&store, 8, "a", &[]);
    let by_a_mutex = std::fs::read_to_string(&path).unwrap();
    assert_eq!(by_a_mutex, old.replace("\"token\":7", "\"token\":8"));
    claim(&store, 9, "c", &[8]);
    let record = std::fs::read_to_string(&path).unwrap();
    let seen = "\"beside\":[{\"token\":8,\"seen\":{\"token\":8,\"number\":0,\"owner\":\"a\"}}]";
    assert!(record.contains(seen), "{record}");
}

/// A store that keeps no permits, as those of users from before there were any.
struct ForMutexes(MemoryStore);

impl Store for ForMutexes {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.0.write(key, write, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.0.read(key, read, fencing).await
    }
}

#[test]
fn a_store_without_permits_refuses_a_set() {
    let store = ForMutexes(MemoryStore::new());
    assert_eq!(version_of(write(&store, &plain(7, "a"), &[])), Some(1));
    let outcome = store.write_beside(&key("k"), &plain(9, "c"), &set(&[7]), ON).now_or_never().unwrap();
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("keeps no permits") && error.contains("X-Fence-Beside: 7;"), "{error}");
    let read = Read { claim: Some(token(9)), owner: None };
    assert!(store.read_beside(&key("k"), &read, &set(&[7]), ON).now_or_never().unwrap().is_err());
    assert_eq!(snapshot(&store, &key("k")).max_fence, Some(token(7)));
}
