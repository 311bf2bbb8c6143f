//! Collects the events of the target `resource`, as the audit will see them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

/// One event: its fields as text.
pub(crate) type Event = BTreeMap<&'static str, String>;

/// The events so far. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    /// Collects what this thread emits, until the guard is dropped.
    pub(crate) fn collect_here(&self) -> DefaultGuard {
        tracing::subscriber::set_default(Registry::default().with(self.clone()))
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl<S: tracing::Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "resource" {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }
    }
}

/// Takes the kinds of field that the vocabulary has: texts and numbers. Any other is shown with a question mark, and fails
/// the comparison.
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
