//! The spans of a lock, as an exporter of OpenTelemetry gets them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "all/support/mod.rs"]
mod support;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use dlock::{Cap, Lock, LockKey, Options, Runtime};
use opentelemetry::trace::{SpanId, SpanKind, Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use support::backend::{Fake, Order};
use support::{World, key, ms};
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// Runs `story` with a subscriber that exports spans; returns them in the order in which they ended.
fn exported(story: impl FnOnce(&World, &Fake, &Lock<Fake>)) -> Vec<SpanData> {
    let world = World::default();
    let fake = Fake::new(&world);
    let mut options = Options::new(ms(1200));
    options.instance = Some("worker-4".into());
    let lock = Lock::new(fake.clone(), options).unwrap();
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        story(&world, &fake, &lock);
    });
    exporter.get_finished_spans().unwrap()
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_ref()).collect()
}

fn named<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    spans.iter().find(|span| span.name == name).unwrap()
}

fn id(span: &SpanData) -> SpanId {
    span.span_context.span_id()
}

/// Returns an attribute as text; panics if the span lacks it.
fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.unwrap_or_else(|| panic!("{} has no {name}", span.name)).value.to_string()
}

fn events(span: &SpanData) -> Vec<String> {
    let event = |event: &opentelemetry::trace::Event| {
        let name = event.attributes.iter().find(|attribute| attribute.key.as_str() == "event");
        name.unwrap().value.to_string()
    };
    span.events.iter().map(event).collect()
}

#[test]
fn a_lease_is_three_spans_of_its_caller() {
    let spans = exported(|world, _, lock| {
        let round = info_span!("round");
        let work = async {
            let handle = lock.acquire(&key(), world.now() + ms(5000)).await.unwrap();
            handle.renew().await.unwrap();
            handle.release().await.unwrap();
        };
        world.run(work.instrument(round));
    });
    assert_eq!(names(&spans), ["acquire orders", "hold orders", "release orders", "round"]);
    let [acquire, hold, release, round] = &spans[..] else { unreachable!() };
    for span in [acquire, hold, release] {
        assert_eq!(span.parent_span_id, id(round), "{}", span.name);
        assert_eq!(span.span_context.trace_id(), round.span_context.trace_id());
        assert_eq!(span.status, Status::Unset, "{}", span.name);
    }
    assert_eq!(
        [&acquire.span_kind, &hold.span_kind, &release.span_kind],
        [&SpanKind::Client, &SpanKind::Internal, &SpanKind::Client]
    );
    assert_eq!(release.links.iter().map(|link| link.span_context.span_id()).collect::<Vec<_>>(), [id(hold)]);
    assert_eq!(events(acquire), ["lease_requested", "lease_acquired"]);
    assert_eq!(events(hold), ["lease_renewed", "lease_release_requested"]);
    assert_eq!(events(release), ["lease_released"]);
}

#[test]
fn attributes_have_no_full_id_or_owner_token() {
    let secret = LockKey::new("accounts", "jane@example.org").unwrap();
    let mut owner = String::new();
    let spans = exported(|world, _, lock| {
        let handle = world.run(lock.try_acquire(&secret)).unwrap();
        handle.owner().as_str().clone_into(&mut owner);
        world.run(handle.release()).unwrap();
    });
    assert_eq!(names(&spans), ["acquire accounts", "hold accounts", "release accounts"]);
    for span in &spans {
        let shown = format!("{span:?}");
        assert!(!shown.contains("jane") && !shown.contains(&owner), "{shown}");
        assert_eq!(attribute(span, "dlock.system"), "fake");
        assert_eq!(attribute(span, "dlock.resource_type"), "accounts");
        assert_eq!(attribute(span, "dlock.resource_id_hash"), secret.id_hash());
        assert_eq!(attribute(span, "dlock.owner_token_prefix"), dlock::owner_prefix(&owner));
        assert_eq!(attribute(span, "dlock.fencing_token"), "1");
        assert_eq!(attribute(span, "dlock.outcome"), "done");
    }
    assert_eq!(attribute(&spans[0], "dlock.ttl_millis"), "1200");
}

#[test]
fn a_hold_keeps_its_parent_when_its_handle_moves() {
    let spans = exported(|world, _, lock| {
        let (here, there) = (info_span!("here"), info_span!("there"));
        let handle = world.run(lock.try_acquire(&key()).instrument(here)).unwrap();
        let elsewhere = async move {
            handle.renew().await.unwrap();
            drop(handle);
        };
        world.spawn(elsewhere.instrument(there));
        world.pass(ms(100));
    });
    let (here, there) = (named(&spans, "here"), named(&spans, "there"));
    assert_eq!(named(&spans, "acquire orders").parent_span_id, id(here));
    assert_eq!(named(&spans, "hold orders").parent_span_id, id(here));
    assert_eq!(named(&spans, "release orders").parent_span_id, id(there));
    // The events of a renewal belong to the hold, whichever task renews.
    assert_eq!(events(named(&spans, "hold orders")), ["lease_renewed", "lease_release_requested"]);
    assert!(here.events.is_empty() && there.events.is_empty());
}

#[test]
fn an_acquire_that_another_task_finishes_keeps_its_caller() {
    let spans = exported(|world, fake, lock| {
        fake.on_acquire([Order::After(ms(50))]);
        let (here, wanted) = (info_span!("here"), key());
        let mut acquire = pin!(lock.try_acquire(&wanted));
        let began = here.in_scope(|| acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        assert!(began.is_pending());
        world.run(acquire.instrument(info_span!("there"))).unwrap().leave();
    });
    let here = id(named(&spans, "here"));
    assert_eq!(named(&spans, "acquire orders").parent_span_id, here);
    assert_eq!(named(&spans, "hold orders").parent_span_id, here);
}

#[test]
fn a_hold_ends_when_the_lease_is_lost() {
    let spans = exported(|world, fake, lock| {
        let handle = world.run(lock.try_acquire(&key())).unwrap();
        fake.on_renew([Order::NotOwner]);
        fake.on_release([Order::NotOwner]);
        world.run(handle.while_held(Cap(ms(9000)), std::future::pending::<()>())).unwrap_err();
        info_span!("after the loss").in_scope(|| ());
        world.run(handle.release()).unwrap();
    });
    assert_eq!(names(&spans), ["acquire orders", "hold orders", "after the loss", "release orders"]);
    let hold = &spans[1];
    assert_eq!(events(hold), ["lease_renew_failed", "lease_lost"]);
    assert_eq!(attribute(hold, "dlock.outcome"), "not_owner");
    assert_eq!(attribute(hold, "error.type"), "not_owner");
    assert_eq!(hold.status, Status::error(""));
    assert_eq!(attribute(&spans[3], "dlock.outcome"), "not_owner");
}

#[test]
fn an_acquire_without_a_grant_has_no_hold() {
    let spans = exported(|world, fake, lock| {
        fake.on_acquire(std::iter::repeat_n(Order::Taken(None), 9));
        world.run(lock.acquire(&key(), world.now() + ms(30))).unwrap_err();
        world.run(lock.acquire(&key(), world.now())).unwrap_err();
    });
    assert_eq!(names(&spans), ["acquire orders", "acquire orders"]);
    let outcomes = spans.iter().map(|span| (attribute(span, "dlock.outcome"), span.status.clone()));
    // That a lock is taken is no error.
    let expected = [("contended".to_owned(), Status::Unset), ("timeout".to_owned(), Status::error(""))];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
}
