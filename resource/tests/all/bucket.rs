//! The store in a bucket: races between processes, lost answers, leftovers, and buckets that ignore
//! conditions.
#![allow(clippy::disallowed_methods, reason = "rivals act on threads of their own")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::common::blocked::{Blocked, block_on, runtime};
use crate::common::calls::{key, owner, plain, read, snapshot, token, version_of, write};
use crate::common::puppet::{Fault, Ignores, Puppet};
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Attribute, ObjectStore, ObjectStoreExt};
use proptest::prelude::*;
use resource::fence::{Fencing, Refusal, WriteOutcome};
use resource::store::{
    BucketStore, CheckError, FenceAdmin, FenceChange, Read, ReadOutcome, SetOutcome, StoreError, Write,
};

const ON: Fencing = Fencing::On;

/// Returns another process's store on the same bucket. Every value has an object of its own.
fn store(bucket: Arc<dyn ObjectStore>) -> Blocked<BucketStore> {
    Blocked(BucketStore::new(bucket, "resources", &runtime()).with_inline_bytes_max(0))
}

fn on(bucket: &Arc<InMemory>) -> Blocked<BucketStore> {
    store(Arc::clone(bucket) as Arc<dyn ObjectStore>)
}

fn owned(number: u64, name: &str) -> Write {
    Write { owner: owner(name), ..plain(number, name) }
}

fn objects(bucket: &Arc<InMemory>) -> BTreeSet<String> {
    let list = bucket.list(None).map_ok(|object| object.location.to_string()).try_collect();
    block_on(list).unwrap()
}

fn bodies(bucket: &Arc<InMemory>) -> usize {
    objects(bucket).iter().filter(|path| path.contains("/bodies/")).count()
}

fn in_an_hour() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40)
}

/// Judges a history of accepted writes, (version, token): returns the first stale write, or a version that
/// was given twice.
fn judge(mut accepted: Vec<(u64, u64)>) -> Result<(), String> {
    accepted.sort_unstable();
    let wrong = accepted.windows(2).find(|pair| pair[0].0 == pair[1].0 || pair[0].1 >= pair[1].1);
    wrong.map_or(Ok(()), |pair| Err(format!("{:?} and {:?}", pair[0], pair[1])))
}

/// Lets token 33 pause between its read and its put, while 34 claims and writes. Returns the accepted writes.
fn pause_between_read_and_put(ignores: Ignores) -> Vec<(u64, u64)> {
    let bucket = Arc::new(InMemory::new());
    // A write from before, so that both rivals put on the condition of a version.
    write(&on(&bucket), &key("k"), &owned(1, "z"), ON).unwrap();
    let (rival, accepted) = (on(&bucket), Arc::new(Mutex::new(vec![(1, 1)])));
    let done = Arc::clone(&accepted);
    let overtake = move || {
        let outcome = write(&rival, &key("k"), &owned(34, "b"), ON).unwrap();
        done.lock().unwrap().push((version_of(outcome).unwrap(), 34));
    };
    let late = store(Arc::new(Puppet::new(&bucket).ignoring(ignores).before_put(overtake)));
    let outcome = write(&late, &key("k"), &owned(33, "a"), ON).unwrap();
    let mut accepted = accepted.lock().unwrap().clone();
    accepted.extend(version_of(outcome).map(|version| (version, 33)));
    if ignores == Ignores::Nothing {
        assert_eq!(outcome, WriteOutcome::Refused(Refusal::Stale { seen: token(34), got: token(33) }));
        assert_eq!((late.0.lost_races(), bodies(&bucket)), (1, 1), "its own body is deleted");
        assert_eq!(snapshot(&late, &key("k")).value, Some("b".into()));
    }
    accepted
}

#[test]
fn a_writer_overtaken_before_its_put_is_refused() {
    assert_eq!(judge(pause_between_read_and_put(Ignores::Nothing)), Ok(()));
}

/// The mistake: a put without a condition.
#[test]
fn an_unconditional_put_lets_the_stale_writer_in() {
    let judged = judge(pause_between_read_and_put(Ignores::All));
    assert_eq!(judged, Err("(2, 33) and (2, 34)".to_owned()));
}

#[test]
fn of_racing_processes_none_accepts_a_stale_write() {
    let bucket = Arc::new(InMemory::new());
    let climb = |name: &str| {
        let process = store(Arc::new(Puppet::new(&bucket)));
        let sent = (1..=300).map(|number| (number, write(&process, &key("k"), &owned(number, name), ON)));
        let accepted = sent.filter_map(|(number, outcome)| Some((version_of(outcome.unwrap())?, number)));
        accepted.collect::<Vec<_>>()
    };
    let accepted: Vec<_> = std::thread::scope(|scope| {
        let climbers = ["a", "b", "c", "d"].map(|name| scope.spawn(move || climb(name)));
        climbers.into_iter().flat_map(|climber| climber.join().unwrap()).collect()
    });
    let versions = accepted.len() as u64;
    assert_eq!(judge(accepted), Ok(()));
    let last = snapshot(&on(&bucket), &key("k"));
    assert_eq!((last.version, last.max_fence, bodies(&bucket)), (versions, Some(token(300)), 1));
}

#[test]
fn a_put_whose_answer_is_lost_is_accepted_once() {
    let bucket = Arc::new(InMemory::new());
    for (number, fault) in [(1, Fault::LosesAnswer), (2, Fault::LosesRequest)] {
        let process = store(Arc::new(Puppet::new(&bucket).with_fault(fault)));
        // Without an owner the rule would take a retry for a stale write.
        let outcome = write(&process, &key("k"), &plain(number, "x"), ON).unwrap();
        assert_eq!(version_of(outcome), Some(number), "{fault:?}");
        assert_eq!(snapshot(&process, &key("k")).version, number);
    }
}

/// Lets `rival` act between the put whose answer is lost and the read that looks for it; returns the outcome.
fn lose_answer_before(
    bucket: &Arc<InMemory>,
    rival: impl FnOnce(Blocked<BucketStore>) + Send + 'static,
) -> Result<WriteOutcome, StoreError> {
    let other = on(bucket);
    let puppet = Puppet::new(bucket).with_fault(Fault::LosesAnswer).after_put(|| rival(other));
    write(&store(Arc::new(puppet)), &key("k"), &owned(33, "a"), ON)
}

#[test]
fn a_write_is_recognised_after_the_claim_of_another() {
    let bucket = Arc::new(InMemory::new());
    let outcome = lose_answer_before(&bucket, |other| {
        read(&other, &key("k"), &Read { claim: Some(token(34)), owner: owner("b") }, ON).unwrap();
    });
    assert_eq!(version_of(outcome.unwrap()), Some(1));
    assert_eq!(snapshot(&on(&bucket), &key("k")).value, Some("a".into()));
}

#[test]
fn a_write_that_may_have_been_replaced_is_not_answered() {
    let bucket = Arc::new(InMemory::new());
    let outcome = lose_answer_before(&bucket, |other| {
        write(&other, &key("k"), &owned(34, "b"), ON).unwrap();
    });
    let error = outcome.expect_err("nothing shows whether it was applied").to_string();
    assert!(error.contains("ask again with the same request"), "{error}");
    let again = write(&on(&bucket), &key("k"), &owned(33, "a"), ON).unwrap();
    assert!(matches!(again, WriteOutcome::Refused(Refusal::Stale { .. })), "{again:?}");
    assert_eq!((snapshot(&on(&bucket), &key("k")).version, bodies(&bucket)), (2, 1));
}

#[test]
fn a_claim_and_a_set_fence_outlive_lost_answers() {
    let bucket = Arc::new(InMemory::new());
    let lossy = || store(Arc::new(Puppet::new(&bucket).with_fault(Fault::LosesAnswer)));
    let claim = Read { claim: Some(token(34)), owner: owner("b") };
    assert!(matches!(read(&lossy(), &key("k"), &claim, ON).unwrap(), ReadOutcome::Read(_)));
    let (who, reason) = ("alice".to_owned(), "poison".to_owned());
    let change = FenceChange { from: Some(token(34)), to: Some(token(7)), who, reason, at_millis: 1 };
    assert_eq!(block_on(lossy().0.set_fence(&key("k"), &change)).unwrap(), SetOutcome::Set);
    assert_eq!(block_on(on(&bucket).0.fence_changes(&key("k"))).unwrap(), [change]);
    assert_eq!(snapshot(&on(&bucket), &key("k")).max_fence, Some(token(7)));
}

#[test]
fn a_bucket_that_never_answers_is_given_up() {
    let bucket = Arc::new(InMemory::new());
    let puppet = (0..3).fold(Puppet::new(&bucket), |puppet, _| puppet.with_fault(Fault::LosesRequest));
    let process = store(Arc::new(puppet));
    assert!(matches!(write(&process, &key("k"), &plain(1, "x"), ON), Err(StoreError::Unavailable(_))));
    assert_eq!(version_of(write(&process, &key("k"), &plain(1, "x"), ON).unwrap()), Some(1));
}

#[test]
fn a_sweep_deletes_what_dead_processes_left() {
    let bucket = Arc::new(InMemory::new());
    for name in ["k", "acme/orders:42", ".."] {
        write(&on(&bucket), &key(name), &owned(1, "a"), ON).unwrap();
    }
    // The record of `l` is never put.
    for name in ["k", "..", "l"] {
        let dying = store(Arc::new(Puppet::new(&bucket).with_fault(Fault::Denies)));
        write(&dying, &key(name), &owned(2, "b"), ON).unwrap_err();
    }
    assert_eq!(bodies(&bucket), 6);
    let sweep = |before| block_on(on(&bucket).0.sweep(before)).unwrap();
    assert_eq!((sweep(SystemTime::UNIX_EPOCH), bodies(&bucket)), (0, 6), "all are too new");
    assert_eq!((sweep(in_an_hour()), bodies(&bucket)), (3, 3));
    assert_eq!((sweep(in_an_hour()), bodies(&bucket)), (0, 3));
    for name in ["k", "acme/orders:42", ".."] {
        assert_eq!(snapshot(&on(&bucket), &key(name)).value, Some("a".into()), "{name}");
    }
}

/// The sweep deletes the body of a writer that is paused before its put; the writer must notice.
#[test]
fn a_writer_paused_during_a_sweep_keeps_its_value() {
    let bucket = Arc::new(InMemory::new());
    // The first write of a key, and one that replaces another.
    for number in 1..=2 {
        let sweeper = on(&bucket);
        let sweep = move || assert_eq!(block_on(sweeper.0.sweep(in_an_hour())).unwrap(), 1);
        let paused = store(Arc::new(Puppet::new(&bucket).before_put(sweep)));
        let outcome = write(&paused, &key("k"), &owned(number, "a"), ON).unwrap();
        assert_eq!(version_of(outcome), Some(number));
        assert_eq!(snapshot(&on(&bucket), &key("k")).value, Some("a".into()));
        assert_eq!(bodies(&bucket), 1);
    }
}

#[test]
fn the_metadata_of_both_objects_has_the_token() {
    let bucket = Arc::new(InMemory::new());
    write(&on(&bucket), &key("k"), &owned(34, "b"), ON).unwrap();
    assert_eq!(objects(&bucket).len(), 2);
    for path in objects(&bucket) {
        let object = block_on(bucket.get(&Path::from(path.as_str()))).unwrap();
        let metadata = |name: &'static str| object.attributes.get(&Attribute::Metadata(name.into())).cloned();
        let found = (metadata("fencing-token"), metadata("version"));
        assert_eq!(found, (Some("34".into()), Some("1".into())), "{path}");
    }
}

#[test]
fn a_small_value_is_part_of_the_record() {
    let bucket = Arc::new(InMemory::new());
    let process = Blocked(BucketStore::new(Arc::clone(&bucket) as _, "", &runtime()));
    write(&process, &key("k"), &plain(1, "line\nline"), ON).unwrap();
    assert_eq!(objects(&bucket), ["k/record".to_owned()].into());
    assert_eq!(snapshot(&process, &key("k")).value, Some("line\nline".into()));
    write(&process, &key("k"), &plain(2, &"x".repeat(4097)), ON).unwrap();
    assert_eq!((objects(&bucket).len(), snapshot(&process, &key("k")).value.unwrap().len()), (2, 4097));
    assert_eq!(block_on(process.0.sweep(in_an_hour())).unwrap(), 0, "without a prefix, too");
}

#[test]
fn a_bucket_that_ignores_conditions_is_found_out() {
    let bucket = Arc::new(InMemory::new());
    let check = |ignores| {
        let process = store(Arc::new(Puppet::new(&bucket).ignoring(ignores)));
        block_on(process.0.check_conditional_puts())
    };
    check(Ignores::Nothing).unwrap();
    assert!(matches!(check(Ignores::All), Err(CheckError::Ignored { condition: "If-None-Match: *" })));
    assert!(matches!(check(Ignores::IfMatch), Err(CheckError::Ignored { condition: "If-Match" })));
    assert_eq!(objects(&bucket), BTreeSet::new(), "the check leaves nothing");
}

#[test]
fn a_damaged_record_or_value_is_an_error() {
    let bucket = Arc::new(InMemory::new());
    write(&on(&bucket), &key("k"), &plain(1, "x"), ON).unwrap();
    let body = objects(&bucket).into_iter().find(|path| path.contains("/bodies/")).unwrap();
    let put =
        |path: &str, bytes: &'static str| block_on(bucket.put(&Path::from(path), bytes.into())).unwrap();
    let error = || read(&on(&bucket), &key("k"), &Read::default(), ON).unwrap_err().to_string();
    put(&body, "y");
    assert_eq!(error(), "the record of a key is corrupt: a value is not the one that was written last");
    block_on(bucket.delete(&Path::from(body.as_str()))).unwrap();
    assert!(error().contains("only `sweep` may delete it"), "{}", error());
    put("resources/k/record", "hello\n");
    assert_eq!(error(), "the record of a key is corrupt: it is not a record of this program");
    write(&on(&bucket), &key("l"), &plain(1, "x"), ON).unwrap();
    let other = Path::from("resources/l/record");
    let record = block_on(async { bucket.get(&other).await.unwrap().bytes().await.unwrap() });
    block_on(bucket.put(&Path::from("resources/k/record"), record.into())).unwrap();
    assert_eq!(error(), "the record of a key is corrupt: it is the record of another key");
}

#[test]
fn keys_that_look_alike_are_kept_apart() {
    let bucket = Arc::new(InMemory::new());
    let names = ["/", "%2F", ".", "..", "%2E%2E", "a", "a/record", "a/bodies/b", "A"];
    for name in names {
        assert_eq!(
            version_of(write(&on(&bucket), &key(name), &plain(1, name), ON).unwrap()),
            Some(1),
            "{name}"
        );
    }
    assert_eq!(block_on(on(&bucket).0.sweep(in_an_hour())).unwrap(), 0);
    for name in names {
        assert_eq!(snapshot(&on(&bucket), &key(name)).value, Some(name.into()), "{name}");
    }
}

proptest! {
    /// Each key has its objects to itself, and a sweep finds them all.
    #[test]
    fn no_two_keys_share_an_object(one in "[a%./2F]{1,2}|\\PC{1,9}", other in "[a%./2F]{1,2}|\\PC{1,9}") {
        prop_assume!(one != other);
        let bucket = Arc::new(InMemory::new());
        for name in [&one, &other] {
            let dying = store(Arc::new(Puppet::new(&bucket).with_fault(Fault::Denies)));
            write(&dying, &key(name), &plain(1, "x"), ON).unwrap_err();
            write(&on(&bucket), &key(name), &plain(1, name), ON).unwrap();
        }
        prop_assert_eq!(block_on(on(&bucket).0.sweep(in_an_hour())).unwrap(), 2);
        for name in [&one, &other] {
            prop_assert_eq!(snapshot(&on(&bucket), &key(name)).value, Some(name.clone().into()));
        }
    }
}
