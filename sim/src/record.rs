//! Records histories. `dlock`, `resource` and the simulated servers emit `tracing` events; one global layer
//! stamps each event with true time and process, and keeps it for the run on the current thread.
//!
//! All runs share one layer, since a new subscriber for each run would rebuild tracing's call-site caches.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::mem;
use std::rc::Rc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use history::{Event, Kind, Name, Nanos, Record, Slot};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use xxhash_rust::xxh3::Xxh3Default;

use crate::world::World;

/// The targets whose events make up a history.
const TARGETS: [&str; 5] = ["dlock", "resource", "worker", "server", "fault"];

/// Number of events of the last run that ended, on any thread: the next run reserves as much memory.
static EVENTS_LAST: AtomicUsize = AtomicUsize::new(64);

/// Bytes buffered before they are hashed; the last event may exceed it a little.
const HASHED_BYTES: usize = 2048;

thread_local! {
    static RUN: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// The recording of one run.
struct Recording {
    world: World,
    /// The names of the processes, then that of the harness.
    names: Vec<Name>,
    events: Vec<Event>,
    hash: Box<Xxh3Default>,
    /// Bytes of the last events, not hashed yet: many small updates of the hash would cost more than all else
    /// here.
    bytes: Vec<u8>,
    /// The fields of the event that is being read; empty between events.
    record: Record,
    /// The call sites of the events so far.
    sites: Vec<Site>,
    /// Called with every event but those of [`note`], within the task that caused it.
    listener: Rc<dyn Fn(&Event)>,
    /// The error of the first event outside the vocabulary, which fails the run.
    mistake: Option<String>,
}

/// A call site of `tracing` and the slots of its fields, in their order.
struct Site {
    callsite: Identifier,
    slots: Box<[Slot]>,
}

/// The recording of a finished run.
#[derive(Debug)]
pub struct Recorded {
    /// The events, in the order in which they happened.
    pub events: Vec<Event>,
    /// A hash of all events, in order: equal hashes mean equal traces.
    pub hash: u64,
    /// The error of the first event outside the vocabulary, if there was one.
    pub mistake: Option<String>,
}

/// Starts to record the events of this thread. Calls `listener` with each event as it happens, but not with
/// those of [`note`].
pub fn start(world: &World, listener: impl Fn(&Event) + 'static) {
    install();
    let mut names: Vec<Name> = world.processes().map(|id| Name::from(world.process(id).name())).collect();
    names.push(Name::from("harness"));
    let recording = Recording {
        world: world.clone(),
        names,
        events: Vec::with_capacity(EVENTS_LAST.load(Ordering::Relaxed)),
        hash: Box::default(),
        bytes: Vec::with_capacity(HASHED_BYTES + 512),
        record: Record::default(),
        sites: Vec::new(),
        listener: Rc::new(listener),
        mistake: None,
    };
    RUN.set(Some(recording));
}

/// Ends the recording on this thread and returns it; `None` if there was none.
pub fn finish() -> Option<Recorded> {
    RUN.take().map(|mut run| {
        run.hash.update(&run.bytes);
        EVENTS_LAST.store(run.events.len(), Ordering::Relaxed);
        Recorded { events: run.events, hash: run.hash.digest(), mistake: run.mistake }
    })
}

/// Records an event of the harness itself, such as a fault, as an event of `process`. Does not call the
/// listener.
pub fn note(process: &str, kind: Kind) {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.keep(process, kind);
        }
    });
}

/// Records an event of a cluster as a whole, in whichever member it happened, and calls the listener.
pub fn tell(cluster: &str, kind: Kind) {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.keep(cluster, kind);
        }
    });
    call_listener();
}

/// Calls the listener with the last event. The recording is not borrowed meanwhile, so the listener may cause
/// events; they follow the event that caused them.
fn call_listener() {
    let taken = RUN.with_borrow_mut(|run| {
        run.as_mut().map(|run| (mem::take(&mut run.events), Rc::clone(&run.listener)))
    });
    let Some((mut events, listener)) = taken else { return };
    if let Some(event) = events.last() {
        listener(event);
    }
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            events.append(&mut run.events);
            run.events = events;
        }
    });
}

/// Installs the layer at the first call.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // If the program has another subscriber, a run records nothing and fails with an error about this.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(RecordLayer));
    });
}

struct RecordLayer;

/// Returns whether the call site belongs to a history. It is not always an event: `tracing::enabled!` has
/// call sites of its own.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    !metadata.is_span() && TARGETS.contains(&metadata.target())
}

impl<S: Subscriber> Layer<S> for RecordLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_ours(metadata) { Interest::always() } else { Interest::never() }
    }

    // Called in spite of the fixed interests: while one thread registers a call site, its interest is
    // "sometimes" for all other threads.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_ours(metadata)
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let is_kept = RUN.with(|slot| match slot.try_borrow_mut() {
            Ok(mut slot) => slot.as_mut().is_some_and(|run| run.record(event)),
            Err(_) => false,
        });
        if is_kept {
            call_listener();
        }
    }
}

impl Recording {
    /// Keeps the event, unless its process is dead or it is outside the vocabulary. Returns whether it was
    /// kept.
    fn record(&mut self, event: &tracing::Event<'_>) -> bool {
        let process = match self.world.speaker() {
            Ok(Some(id)) => id.0,
            Ok(None) => self.names.len() - 1,
            Err(_) => return false,
        };
        let at = self.world.now();
        let site = self.site(event.metadata());
        let mut bytes = Bytes(&mut self.bytes);
        bytes.number(at);
        bytes.number(process as u64);
        event.record(&mut Visitor { record: &mut self.record, slots: &self.sites[site].slots, bytes });
        let kind = Kind::take_from(&mut self.record);
        self.hash_bytes();
        match kind {
            Ok(kind) => {
                self.events.push(Event { at: Nanos(at), process: self.names[process].clone(), kind });
                true
            }
            Err(mistake) => {
                self.mistake.get_or_insert(mistake.to_string());
                false
            }
        }
    }

    /// Returns the index of the event's call site, which is added if it is new. There are about ten.
    fn site(&mut self, metadata: &Metadata<'_>) -> usize {
        let callsite = metadata.callsite();
        let known = self.sites.iter().position(|site| site.callsite == callsite);
        known.unwrap_or_else(|| {
            let slots = metadata.fields().iter().map(|field| Slot::of(field.name())).collect();
            self.sites.push(Site { callsite, slots });
            self.sites.len() - 1
        })
    }

    /// Keeps an event that did not come through `tracing`. There are few, so hashing their `Debug` text is
    /// cheap enough.
    fn keep(&mut self, process: &str, kind: Kind) {
        let event = Event { at: Nanos(self.world.now()), process: Name::from(process), kind };
        let mut bytes = Bytes(&mut self.bytes);
        bytes.number(event.at.0);
        bytes.text(process);
        bytes.debug(&event.kind);
        self.hash_bytes();
        self.events.push(event);
    }

    /// Hashes the buffered bytes once there are enough of them.
    fn hash_bytes(&mut self) {
        if self.bytes.len() >= HASHED_BYTES {
            self.hash.update(&self.bytes);
            self.bytes.clear();
        }
    }
}

/// Keeps the fields of an event and buffers their bytes for the hash.
struct Visitor<'a> {
    record: &'a mut Record,
    slots: &'a [Slot],
    bytes: Bytes<'a>,
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Bytes<'_> {
    /// Appends a field of an event, with its index instead of its name: the first field is the event's name,
    /// which determines the names of the others.
    fn field(&mut self, field: &Field, value: &str) {
        let [a, b, c, d] = (value.len() as u32).to_le_bytes();
        self.0.reserve(5 + value.len());
        self.0.extend_from_slice(&[field.index() as u8, a, b, c, d]);
        self.0.extend_from_slice(value.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends the `Debug` text of `value`, as [`Self::text`] does.
    fn debug(&mut self, value: &impl fmt::Debug) {
        let start = self.0.len();
        self.number(0);
        // Writing to a Vec can't fail.
        let _ = write!(self.0, "{value:?}");
        let len = (self.0.len() - start - 8) as u64;
        self.0[start..start + 8].copy_from_slice(&len.to_le_bytes());
    }
}

impl Visitor<'_> {
    fn slot(&self, field: &Field) -> Slot {
        self.slots.get(field.index()).copied().unwrap_or(Slot::Outside)
    }
}

impl Visit for Visitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.bytes.field(field, value);
        self.record.put_text(self.slot(field), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let mut bytes = [field.index() as u8; 9];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.bytes.0.extend_from_slice(&bytes);
        self.record.put_number(self.slot(field), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.bytes.field(field, &format!("{value:?}"));
        self.record.put_debug(self.slot(field), value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use history::{Effect, LinkFault};
    use tracing::span::{Attributes, Id};

    use super::*;
    use crate::entropy::Entropy;

    /// Keeps the metadata of the events that it receives.
    #[derive(Clone, Default)]
    struct Keep(Arc<Mutex<Vec<&'static Metadata<'static>>>>);

    impl<S: Subscriber> Layer<S> for Keep {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.metadata());
        }

        fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span.metadata());
        }
    }

    #[test]
    fn foreign_events_and_all_spans_are_refused_before_their_call_site_is_registered() {
        let keep = Keep::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(keep.clone()), || {
            tracing::info!(target: "hyper", "not ours");
            tracing::info!(target: "dlock", event = "ours");
            tracing::info_span!(target: "dlock", "dlock.hold");
        });
        let received = keep.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(RecordLayer));
        let answers: Vec<_> =
            received.iter().map(|metadata| (metadata.target(), dispatch.enabled(metadata))).collect();
        assert_eq!(answers, [("hyper", false), ("dlock", true), ("dlock", false)]);
    }

    #[test]
    fn events_that_a_listener_causes_follow_their_cause() {
        fn healed(detail: &str) -> Kind {
            let (verb, effect) = (Name::from("cut"), Effect::links(LinkFault::Cut, []));
            Kind::FaultHealed { fault: 0, verb, effect, detail: Name::from(detail) }
        }
        let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
        let recorded = runtime.block_on(async {
            let latency = (Duration::from_millis(1), Duration::from_millis(2));
            let world = World::new(Entropy::new(1), &["one"], latency);
            start(&world, |event| match &event.kind {
                // Once through `note`, and once through tracing, which calls the listener again.
                Kind::FaultApplied { .. } => {
                    note("one", healed("first"));
                    tracing::info!(
                        target: "dlock",
                        event = "lease_requested",
                        resource_id_hash = "k",
                        owner_token_prefix = "o",
                    );
                }
                Kind::LeaseRequested { .. } => note("one", healed("second")),
                _ => {}
            });
            let (verb, effect) = (Name::from("cut"), Effect::links(LinkFault::Cut, []));
            tell("one", Kind::FaultApplied { fault: 0, verb, effect, until: None, detail: "cause".into() });
            finish()
        });
        let names: Vec<_> = recorded.unwrap().events.iter().map(|event| event.kind.name().as_str()).collect();
        assert_eq!(names, ["fault_applied", "fault_healed", "lease_requested", "fault_healed"]);
    }
}
