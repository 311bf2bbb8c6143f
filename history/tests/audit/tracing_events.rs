//! The events that `dlock` emits are the ones that a history holds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::event::{Event as Emitted, Outcome};
use dlock::{FencingToken, Instant, LockKey, Owner, Runtime};
use history::{Effect, Kind, LinkFault, Record, RecordError};
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Metadata, Subscriber};

/// Records events as a history's recorder does, but without time and process.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Result<Kind, RecordError>>>>);

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut record = Record::default();
        event.record(&mut record);
        self.0.lock().unwrap().push(Kind::try_from(record));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn recorded(emit: impl FnOnce()) -> Vec<Result<Kind, RecordError>> {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), emit);
    let events = recorder.0.lock().unwrap();
    events.clone()
}

/// Enough of a runtime to make an owner token.
#[derive(Clone)]
struct Entropy;

impl Runtime for Entropy {
    type Stream = tokio::io::DuplexStream;

    fn now(&self) -> Instant {
        Instant::from_nanos(0)
    }

    async fn sleep_until(&self, _: Instant) {}

    async fn connect(&self, _: &str) -> std::io::Result<Self::Stream> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {}

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0x7f);
    }
}

#[test]
fn each_lease_event_becomes_a_history_event() {
    let (token, ttl, valid) = (FencingToken::new(7), Duration::from_secs(2), Duration::from_millis(1978));
    let outcome = Outcome::Error;
    let emitted = [
        Emitted::Requested { ttl },
        Emitted::Queued { position: 3 },
        Emitted::Acquired { token, ttl, valid },
        Emitted::NotAcquired { outcome },
        Emitted::Renewed { token, valid },
        Emitted::RenewFailed { token, outcome },
        Emitted::TtlChanged { token, ttl, valid },
        Emitted::Lost { token, outcome },
        Emitted::ReleaseRequested { token },
        Emitted::Released { token, outcome },
    ];
    let lock = LockKey::new("orders", "42").unwrap();
    let holder = Owner::random(&Entropy, Some("a"));
    let events = recorded(|| emitted.iter().for_each(|event| event.emit(&lock, &holder)));

    let (kind, key, owner) = (|| Some("orders".into()), || lock.id_hash().into(), || "a:7f7f7f7f".into());
    let (token, ttl_millis, valid_micros, outcome) =
        (7, Some(2000), Some(1_978_000), || Some("error".into()));
    let expected = [
        Kind::LeaseRequested { resource_type: kind(), key: key(), owner: owner(), ttl_millis },
        Kind::LeaseQueued { resource_type: kind(), key: key(), owner: owner(), position: 3 },
        Kind::LeaseAcquired {
            resource_type: kind(),
            key: key(),
            owner: owner(),
            token,
            ttl_millis,
            valid_micros,
        },
        Kind::LeaseNotAcquired { resource_type: kind(), key: key(), owner: owner(), outcome: outcome() },
        Kind::LeaseRenewed { resource_type: kind(), key: key(), owner: owner(), token, valid_micros },
        Kind::LeaseRenewFailed {
            resource_type: kind(),
            key: key(),
            owner: owner(),
            token,
            outcome: outcome(),
        },
        Kind::LeaseTtlChanged {
            resource_type: kind(),
            key: key(),
            owner: owner(),
            token,
            ttl_millis,
            valid_micros,
        },
        Kind::LeaseLost { resource_type: kind(), key: key(), owner: owner(), token, outcome: outcome() },
        Kind::LeaseReleaseRequested { resource_type: kind(), key: key(), owner: owner(), token },
        Kind::LeaseReleased { resource_type: kind(), key: key(), owner: owner(), token, outcome: outcome() },
    ];
    assert_eq!(events, expected.map(Ok));
}

#[test]
fn a_lease_without_a_token_has_zero() {
    let lock = LockKey::new("orders", "42").unwrap();
    let events = recorded(|| {
        Emitted::ReleaseRequested { token: None }.emit(&lock, &Owner::random(&Entropy, Some("a")));
    });
    let [Ok(Kind::LeaseReleaseRequested { token: 0, .. })] = events.as_slice() else { panic!("{events:?}") };
}

#[test]
fn every_field_of_the_other_events_is_recorded() {
    let events = recorded(|| {
        let (key, owner) = ("2f1a6b03c9de", "a:7f3c9e12");
        tracing::info!(
            event = "write_rejected",
            resource_id_hash = key,
            owner_token_prefix = owner,
            fencing_token = 1_u64,
            seq = 4_u64,
            seen = 2_u64,
            outcome = "stale",
        );
        tracing::info!(
            event = "write_accepted",
            resource_id_hash = key,
            owner_token_prefix = owner,
            fencing_token = 1_u64,
            version = 9_u64,
            body = "0011223344556677",
        );
        tracing::info!(
            event = "key_extended",
            resource_id_hash = key,
            owner_token_prefix = owner,
            ttl_millis = 5_u64,
            client = "a",
        );
        tracing::info!(event = "worker_step", step = "read");
    });
    let (key, owner) = (|| "2f1a6b03c9de".into(), || "a:7f3c9e12".into());
    let named = || Some(owner());
    let expected = [
        Kind::WriteRejected {
            key: key(),
            owner: named(),
            token: 1,
            seq: Some(4),
            seen: 2,
            outcome: Some("stale".into()),
        },
        Kind::WriteAccepted {
            key: key(),
            owner: named(),
            token: 1,
            seq: None,
            version: 9,
            body: Some("0011223344556677".into()),
        },
        Kind::KeyExtended { key: key(), owner: owner(), ttl_millis: Some(5), client: "a".into() },
        Kind::WorkerStep { step: "read".into(), key: None, owner: None },
    ];
    assert_eq!(events, expected.map(Ok));
}

fn cut() -> Effect {
    Effect::links(LinkFault::Cut, [("a", "redis-1"), ("redis-1", "a")])
}

#[test]
fn display_values_and_signed_numbers_are_recorded() {
    let events = recorded(|| {
        let detail = "redis-1 and everything behind it was cut off from a";
        tracing::info!(
            target: "fault", event = "fault_applied", fault = 2, verb = "cut", effect = %cut(), detail = %detail,
            beside = true
        );
        // The text of an effect is JSON.
        tracing::info!(
            target: "fault", event = "fault_healed", fault = 2, verb = "cut", effect = "cut", detail = "over"
        );
        let (key, number) = ("k", 3_i64);
        tracing::info!(
            event = %"section_entered", resource_id_hash = key, owner_token_prefix = %"a:1",
            fencing_token = number
        );
        tracing::info!(
            event = "section_entered", resource_id_hash = key, owner_token_prefix = %"a:1", fencing_token = -1
        );
        tracing::info!("a message of somebody else");
    });
    let (fault, verb) = (2, "cut".into());
    let long = Kind::FaultApplied {
        fault,
        verb,
        effect: cut(),
        until: None,
        detail: "redis-1 and everything behind it was cut off from a".into(),
    };
    let entered = Kind::SectionEntered { key: "k".into(), owner: "a:1".into(), token: 3 };
    assert_eq!(events[0], Ok(long));
    assert!(matches!(events[1], Err(RecordError::Missing { field: "effect", .. })));
    assert_eq!(events[2], Ok(entered));
    assert!(matches!(events[3], Err(RecordError::Missing { field: "fencing_token", .. })));
    assert_eq!(events[4], Err(RecordError::Unnamed));
}
