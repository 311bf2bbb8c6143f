//! Recording: `dlock`, `resource` and the simulated servers say what happens in `tracing` events; one global
//! layer stamps each with true time and process and keeps it for the run of the thread it happened on.
//!
//! One layer for all runs, since a subscriber of its own for every run would rebuild tracing's call-site
//! caches each time.

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::rc::Rc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use resource::audit::{Event, Kind, Name, Nanos, Record, Slot};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use xxhash_rust::xxh3::Xxh3Default;

use crate::world::World;

/// The targets whose events make up a history.
const TARGETS: [&str; 5] = ["dlock", "resource", "worker", "server", "fault"];

/// How many events the last run had, whichever it was: the next one most likely needs as much room.
static EVENTS_LAST: AtomicUsize = AtomicUsize::new(64);

/// The hash is told of events by so many bytes, or a little more.
const HASHED_BYTES: usize = 2048;

thread_local! {
    static RUN: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// What one run has recorded so far.
struct Recording {
    world: World,
    /// The processes' names, and that of the harness at the end.
    names: Vec<Name>,
    events: Vec<Event>,
    hash: Box<Xxh3Default>,
    /// The last events' bytes, on their way to the hash: many small updates would cost more than all else
    /// here.
    bytes: Vec<u8>,
    /// The fields of the event that is being read; empty between events.
    record: Record,
    /// What the fields of the call sites heard so far are.
    sites: Vec<Site>,
    /// Hears of every event, in the middle of the task that caused it.
    listener: Rc<dyn Fn(&Event)>,
    /// An event that could not be understood: a mistake in the vocabulary, which fails the run.
    mistake: Option<String>,
}

/// A call site of `tracing`, and what its fields are, in its order.
struct Site {
    callsite: Identifier,
    slots: Box<[Slot]>,
}

/// What a run has recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The events, in the order in which they happened.
    pub events: Vec<Event>,
    /// A hash of all that was recorded, in order: equal hashes mean equal traces.
    pub hash: u64,
    /// The first event outside the vocabulary, if there was one.
    pub mistake: Option<String>,
}

/// Records what happens on this thread from now on. `listener` hears of every event as it happens.
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

/// Ends the recording on this thread.
pub fn finish() -> Option<Recorded> {
    RUN.take().map(|mut run| {
        run.hash.update(&run.bytes);
        EVENTS_LAST.store(run.events.len(), Ordering::Relaxed);
        Recorded { events: run.events, hash: run.hash.digest(), mistake: run.mistake }
    })
}

/// Records an event of the harness itself, such as a fault, as happening in `process`. The listener does not
/// hear of it.
pub fn note(process: &str, kind: Kind) {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.keep(process, kind);
        }
    });
}

/// Records an event of a cluster as a whole, whichever of its members it happened in. The listener hears of
/// it.
pub fn tell(cluster: &str, kind: Kind) {
    RUN.with_borrow_mut(|run| {
        if let Some(run) = run {
            run.keep(cluster, kind);
        }
    });
    hear();
}

/// Has the last event heard. The recording is free meanwhile: what the listener does may be recorded too, and
/// stands behind the event that caused it.
fn hear() {
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

/// Installs the layer, once in the life of the program.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // If a subscriber is there already, the runs find no events and say so.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(RecordLayer));
    });
}

struct RecordLayer;

/// Whether this belongs to a history. Not only events: `tracing::enabled!` asks with call sites of its own.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    !metadata.is_span() && TARGETS.contains(&metadata.target())
}

impl<S: Subscriber> Layer<S> for RecordLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_ours(metadata) { Interest::always() } else { Interest::never() }
    }

    // Asked too: a call site that another thread is registering at this moment answers "sometimes" to all
    // others.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_ours(metadata)
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let is_kept = RUN.with(|slot| match slot.try_borrow_mut() {
            Ok(mut slot) => slot.as_mut().is_some_and(|run| run.record(event)),
            Err(_) => false,
        });
        if is_kept {
            hear();
        }
    }
}

impl Recording {
    /// Keeps the event, unless it comes from a process that is dead; whether it did.
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

    /// The number of the event's call site. There are some ten.
    fn site(&mut self, metadata: &Metadata<'_>) -> usize {
        let callsite = metadata.callsite();
        let known = self.sites.iter().position(|site| site.callsite == callsite);
        known.unwrap_or_else(|| {
            let slots = metadata.fields().iter().map(|field| Slot::of(field.name())).collect();
            self.sites.push(Site { callsite, slots });
            self.sites.len() - 1
        })
    }

    /// Keeps an event that did not come as one of `tracing`. There are few: hashing their `Debug` is cheap
    /// enough.
    fn keep(&mut self, process: &str, kind: Kind) {
        let event = Event { at: Nanos(self.world.now()), process: Name::from(process), kind };
        let mut bytes = Bytes(&mut self.bytes);
        bytes.number(event.at.0);
        bytes.text(process);
        bytes.text(&format!("{:?}", event.kind));
        self.hash_bytes();
        self.events.push(event);
    }

    /// Hashes what has come together, once it is worth the call.
    fn hash_bytes(&mut self) {
        if self.bytes.len() >= HASHED_BYTES {
            self.hash.update(&self.bytes);
            self.bytes.clear();
        }
    }
}

/// Keeps an event's fields and hashes them as they come.
struct Visitor<'a> {
    record: &'a mut Record,
    slots: &'a [Slot],
    bytes: Bytes<'a>,
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Bytes<'_> {
    /// A field of an event. Its place stands for its name: the first field is the event's name, which tells
    /// what stands where.
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

    use super::*;
    use crate::entropy::Entropy;

    /// Keeps the metadata of the events it hears.
    #[derive(Clone, Default)]
    struct Keep(Arc<Mutex<Vec<&'static Metadata<'static>>>>);

    impl<S: Subscriber> Layer<S> for Keep {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.metadata());
        }
    }

    #[test]
    fn a_dependency_s_event_is_refused_when_its_call_site_is_not_registered_yet() {
        let keep = Keep::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(keep.clone()), || {
            tracing::info!(target: "hyper", "not ours");
            tracing::info!(target: "dlock", event = "ours");
        });
        let heard = keep.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(RecordLayer));
        let answers: Vec<_> =
            heard.iter().map(|metadata| (metadata.target(), dispatch.enabled(metadata))).collect();
        assert_eq!(answers, [("hyper", false), ("dlock", true)]);
    }

    #[test]
    fn what_a_listener_causes_stands_behind_its_cause() {
        fn healed(detail: &str) -> Kind {
            Kind::FaultHealed { fault: 0, verb: Name::from("cut"), detail: Name::from(detail) }
        }
        let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
        let recorded = runtime.block_on(async {
            let latency = (Duration::from_millis(1), Duration::from_millis(2));
            let world = World::new(Entropy::new(1), &["one"], latency);
            start(&world, |event| match &event.kind {
                // Once by the harness' own way, and once by tracing, which is heard in its turn.
                Kind::FaultApplied { .. } => {
                    note("one", healed("first"));
                    tracing::info!(target: "dlock", event = "lease_requested", resource_id_hash = "k", owner_token_prefix = "o");
                }
                Kind::LeaseRequested { .. } => note("one", healed("second")),
                _ => {}
            });
            tell("one", Kind::FaultApplied { fault: 0, verb: Name::from("cut"), detail: Name::from("cause") });
            finish()
        });
        let names: Vec<_> = recorded.unwrap().events.iter().map(|event| event.kind.name().as_str()).collect();
        assert_eq!(names, ["fault_applied", "fault_healed", "lease_requested", "fault_healed"]);
    }
}
