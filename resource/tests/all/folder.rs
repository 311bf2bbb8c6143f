//! The store in a folder: crashes at each step, processes that share the folder, and leftovers.
#![allow(clippy::disallowed_methods, reason = "rivals act on threads of their own")]

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::common::calls::{key, owner, plain, read, snapshot, token, version_of, write};
use crate::common::scratch::Scratch;
use proptest::prelude::*;
use resource::fence::{Fencing, WriteOutcome};
use resource::store::{FolderStep, FolderStore, Read, ReadOutcome, Snapshot, StoreError, Write};

const ON: Fencing = Fencing::On;

/// Opens the folder as another process does. Every value has a file of its own.
fn open(folder: &Path) -> FolderStore {
    FolderStore::open(folder).unwrap().with_inline_bytes_max(0)
}

fn owned(number: u64, name: &str) -> Write {
    Write { owner: owner(name), ..plain(number, name) }
}

fn in_an_hour() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40)
}

/// Returns the names of the files, without the locks.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with("lock-")).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// A copy of the folder, as a process that was killed after the step leaves it.
type Crash = (FolderStep, PathBuf);

/// Does `change` on a folder where 33 has written; returns the folder after each of its steps.
fn crash_at_each_step(scratch: &Scratch, change: impl FnOnce(&FolderStore)) -> Vec<Crash> {
    let folder = scratch.path().join("store");
    write(&open(&folder), &key("k"), &owned(33, "a"), ON).unwrap();
    let crashes = Arc::new(Mutex::new(Vec::new()));
    let (taken, source, copies) = (Arc::clone(&crashes), folder.clone(), scratch.path().to_owned());
    let stopping = open(&folder).with_steps(move |step| {
        let mut crashes = taken.lock().unwrap();
        let crash = copies.join(format!("crash-{}", crashes.len()));
        copy(&source, &crash);
        crashes.push((step, crash));
    });
    change(&stopping);
    crashes.lock().unwrap().clone()
}

fn is_applied(step: FolderStep) -> bool {
    matches!(step, FolderStep::RecordReplaced | FolderStep::OldValueDeleted)
}

#[test]
fn a_write_killed_at_any_step_is_applied_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let mine = owned(34, "b");
    let crashes = crash_at_each_step(&scratch, |store| {
        write(store, &key("k"), &mine, ON).unwrap();
    });
    assert_eq!(crashes.len(), 6, "every step: {crashes:?}");
    for (step, folder) in crashes {
        let store = open(&folder);
        let (version, name, seen) = if is_applied(step) { (2, "b", 34) } else { (1, "a", 33) };
        let expected = Snapshot { value: Some(name.into()), version, max_fence: Some(token(seen)) };
        assert_eq!(snapshot(&store, &key("k")), expected, "{step:?}");
        store.sweep(in_an_hour()).unwrap();
        let left = ["k-k.record".to_owned(), format!("k-k.value-{version}")];
        assert_eq!(files(&folder), left, "after the sweep at {step:?}");
        assert_eq!(snapshot(&store, &key("k")), expected, "{step:?}");
        let again = write(&store, &key("k"), &mine, ON).unwrap();
        assert_eq!(matches!(again, WriteOutcome::Repeated(_)), is_applied(step), "{step:?}: {again:?}");
        assert_eq!(snapshot(&store, &key("k")).version, 2, "{step:?}");
        let late = write(&store, &key("k"), &owned(33, "a"), ON).unwrap();
        assert!(matches!(late, WriteOutcome::Refused(_)), "{step:?}: {late:?}");
    }
}

/// A process that is killed may have renamed a record without syncing the folder. Its mark in the lock's file
/// stays, and the next process syncs the folder before it answers.
#[test]
fn a_record_that_may_not_be_on_the_disk_is_marked() {
    let scratch = Scratch::new();
    let crashes = crash_at_each_step(&scratch, |store| {
        write(store, &key("k"), &owned(34, "b"), ON).unwrap();
    });
    let marks = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let locks = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("lock-"));
        locks.map(|lock| lock.metadata().unwrap().len()).sum::<u64>()
    };
    for (step, folder) in crashes {
        let is_replacing = matches!(step, FolderStep::RecordDrafted | FolderStep::RecordReplaced);
        assert_eq!(marks(&folder), u64::from(is_replacing), "{step:?}");
        snapshot(&open(&folder), &key("k"));
        assert_eq!(marks(&folder), 0, "{step:?}");
    }
}

#[test]
fn a_claim_killed_at_any_step_is_kept_or_not() {
    let scratch = Scratch::new();
    let claim = Read { claim: Some(token(34)), owner: owner("b") };
    let crashes = crash_at_each_step(&scratch, |store| {
        read(store, &key("k"), &claim, ON).unwrap();
    });
    assert_eq!(crashes.len(), 3, "every step: {crashes:?}");
    for (step, folder) in crashes {
        let seen = if is_applied(step) { 34 } else { 33 };
        let expected = Snapshot { value: Some("a".into()), version: 1, max_fence: Some(token(seen)) };
        assert_eq!(snapshot(&open(&folder), &key("k")), expected, "{step:?}");
    }
}

#[test]
fn a_change_holds_the_lock_of_its_key_at_every_step() {
    let scratch = Scratch::new();
    let folder = scratch.path().to_owned();
    let steps = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&steps);
    let store = open(scratch.path()).with_steps(move |step| {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let locks: Vec<_> = entries.filter(|path| path.to_string_lossy().contains("lock-")).collect();
        let [lock] = &locks[..] else { panic!("one key has one lock: {locks:?}") };
        let tried = File::options().write(true).open(lock).unwrap().try_lock();
        assert!(matches!(tried, Err(TryLockError::WouldBlock)), "{step:?}: {tried:?}");
        *counted.lock().unwrap() += 1;
    });
    write(&store, &key("k"), &owned(1, "a"), ON).unwrap();
    write(&store, &key("k"), &owned(2, "b"), ON).unwrap();
    assert_eq!(*steps.lock().unwrap(), 11);
}

#[test]
fn of_racing_processes_none_accepts_a_stale_write() {
    let scratch = Scratch::new();
    let climb = |name: &str| {
        let process = open(scratch.path());
        let sent = (1..=60).map(|number| (number, write(&process, &key("k"), &owned(number, name), ON)));
        let accepted = sent.filter_map(|(number, outcome)| Some((version_of(outcome.unwrap())?, number)));
        accepted.collect::<Vec<_>>()
    };
    let mut accepted: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let climbers = ["a", "b", "c", "d"].map(|name| scope.spawn(move || climb(name)));
        climbers.into_iter().flat_map(|climber| climber.join().unwrap()).collect()
    });
    accepted.sort_unstable();
    let is_later = |one: &(u64, u64), other: &(u64, u64)| one.0 < other.0 && one.1 < other.1;
    assert!(accepted.is_sorted_by(is_later), "{accepted:?}");
    let last = snapshot(&open(scratch.path()), &key("k"));
    assert_eq!((last.version, last.max_fence), (accepted.len() as u64, Some(token(60))));
    assert_eq!(files(scratch.path()).len(), 2, "{:?}", files(scratch.path()));
}

#[test]
fn a_sweep_spares_what_is_new_or_named() {
    let scratch = Scratch::new();
    let store = open(scratch.path());
    // The files of the second key look like those of the first.
    for name in ["k", "k.value-3"] {
        write(&store, &key(name), &owned(1, "a"), ON).unwrap();
    }
    for leftover in [".new-abc", "k-k.value-9", "k-k.value-3.value-9", "k-none.value-1"] {
        fs::write(scratch.path().join(leftover), "x").unwrap();
    }
    let named = ["k-k.record", "k-k.value-1", "k-k.value-3.record", "k-k.value-3.value-1"].map(str::to_owned);
    assert_eq!(store.sweep(SystemTime::UNIX_EPOCH).unwrap(), 0, "all are too new");
    assert_eq!(store.sweep(in_an_hour()).unwrap(), 4);
    assert_eq!(files(scratch.path()), named);
}

#[test]
fn a_small_value_is_part_of_the_record() {
    let scratch = Scratch::new();
    let store = FolderStore::open(scratch.path()).unwrap();
    write(&store, &key("k"), &plain(1, "line\nline"), ON).unwrap();
    assert_eq!(files(scratch.path()), ["k-k.record"]);
    assert_eq!(snapshot(&store, &key("k")).value, Some("line\nline".into()));
}

#[test]
fn a_read_of_a_key_never_written_leaves_no_file_of_it() {
    let scratch = Scratch::new();
    let store = open(scratch.path());
    let outcome = read(&store, &key("k"), &Read::default(), ON).unwrap();
    assert_eq!(outcome, ReadOutcome::Read(Snapshot { value: None, version: 0, max_fence: None }));
    assert_eq!(files(scratch.path()), [""; 0]);
}

#[test]
fn a_damaged_record_or_value_is_an_error() {
    let scratch = Scratch::new();
    let store = open(scratch.path());
    for name in ["k", "l"] {
        write(&store, &key(name), &plain(1, "x"), ON).unwrap();
    }
    let path = |name: &str| scratch.path().join(name);
    let error = || read(&store, &key("k"), &Read::default(), ON).unwrap_err();
    fs::write(path("k-k.value-1"), "y").unwrap();
    assert!(matches!(error(), StoreError::Corrupt(_)), "{}", error());
    fs::remove_file(path("k-k.value-1")).unwrap();
    assert!(error().to_string().contains("only `sweep` may delete it"), "{}", error());
    fs::copy(path("k-l.record"), path("k-k.record")).unwrap();
    assert_eq!(error().to_string(), "the record of a key is corrupt: it is the record of another key");
    fs::write(path("k-k.record"), "").unwrap();
    assert!(matches!(error(), StoreError::Corrupt(_)), "{}", error());
}

#[test]
fn a_path_that_is_no_folder_is_refused() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(FolderStore::open(&file), Err(StoreError::Unavailable(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_two_keys_share_a_file(one in "[a%./2F]{1,2}|\\PC{1,9}", other in "[a%./2F]{1,2}|\\PC{80}") {
        prop_assume!(one != other);
        let scratch = Scratch::new();
        let store = open(scratch.path());
        for name in [&one, &other] {
            write(&store, &key(name), &plain(1, name), ON).unwrap();
        }
        prop_assert_eq!(store.sweep(in_an_hour()).unwrap(), 0);
        for name in [&one, &other] {
            prop_assert_eq!(snapshot(&store, &key(name)).value, Some(name.clone().into()));
        }
    }
}
