//! Collects the events of the target `resource`, as the audit reads them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

/// One event: its fields as text.
pub(crate) type Event = BTreeMap<&'static str, String>;

/// The events so far. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

thread_local! {
    static COLLECTOR: RefCell<Option<Events>> = const { RefCell::new(None) };
}

impl Events {
    /// Collects the events that this thread emits from now on.
    ///
    /// One global subscriber hands each event to its thread's collector. A subscriber of its own for every
    /// test would race with the other tests for tracing's call-site caches, and lose events.
    pub(crate) fn collect_here(&self) {
        static GLOBAL: Once = Once::new();
        GLOBAL.call_once(|| {
            tracing::subscriber::set_global_default(Registry::default().with(PerThread)).unwrap();
            // Asks again about the call sites that other threads met before the subscriber was global.
            drop(tracing::Dispatch::new(Registry::default()));
        });
        COLLECTOR.set(Some(self.clone()));
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    fn push(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

struct PerThread;

impl<S: tracing::Subscriber> Layer<S> for PerThread {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "resource" {
            let mut fields = Fields::default();
            event.record(&mut fields);
            COLLECTOR.with_borrow(|events| events.iter().for_each(|events| events.push(fields.0.clone())));
        }
    }
}

/// Records the types of field that the vocabulary has: texts and numbers. A field of any other type gets a
/// question mark, and fails the comparison.
#[derive(Default)]
struct Fields(Event);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.to_string());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("?{value:?}"));
    }
}
