//! An event as it is logged: a name and some fields, not yet checked against the vocabulary.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracing::field::{Field as TracingField, Visit};

use super::effect::Effect;
use super::event_name::EventName;
use super::name::Name;

/// Generates [`Record`], [`Slot`] and the fields' logged names from the one table of fields.
macro_rules! fields {
    ($( $(#[$doc:meta])* $field:ident $slot:ident = $logged:literal: $type:ty; )*) => {
        /// The raw fields of an event. A subscriber layer fills it (it is a [`Visit`]), a JSON line is read
        /// into it; then [`Kind::try_from`](super::Kind) makes a typed event of it. Fields outside the
        /// vocabulary are dropped.
        ///
        /// # Example
        ///
        /// ```
        /// use history::{EventName, Kind, Record, RecordError, Slot};
        ///
        /// let mut record = Record::new(EventName::PointPassed);
        /// let missing = RecordError::Missing { event: EventName::PointPassed, field: "step" };
        /// assert_eq!(Kind::try_from(record.clone()), Err(missing));
        /// record.put_text(Slot::of("step"), "moving money");
        /// assert!(Kind::try_from(record).is_ok());
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Record {
            event: Option<Label>,
            $(
                #[doc = concat!("`", $logged, "`:")]
                $(#[$doc])*
                #[serde(rename = $logged, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        /// A field of a [`Record`]. The fields of a `tracing` call site are always the same, so a layer that
        /// records many events looks their slots up once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Slot {
            /// `event`.
            Event,
            $(
                #[doc = concat!("[`Record::", stringify!($field), "`].")]
                $slot,
            )*
            /// A field outside the vocabulary, which is dropped.
            Outside,
        }

        impl Slot {
            /// Returns the slot of the field that logs call `field`.
            pub fn of(field: &str) -> Self {
                match field {
                    "event" => Self::Event,
                    $( $logged => Self::$slot, )*
                    _ => Self::Outside,
                }
            }
        }

        /// The names that logs have for the fields.
        #[allow(non_upper_case_globals, reason = "a constant is named for its field, so that macros find it")]
        #[doc(hidden)]
        pub mod log_name {
            $( pub const $field: &str = $logged; )*
        }

        impl Record {
            /// Returns the value of `slot`, to be set.
            fn value_mut(&mut self, slot: Slot) -> Option<ValueMut<'_>> {
                match slot {
                    Slot::Event | Slot::Outside => None,
                    $( Slot::$slot => Some(ValueMut::from(&mut self.$field)), )*
                }
            }
        }
    };
}

fields! {
    /// the type of the resource that the lock guards; none in histories from before it was kept.
    resource_type ResourceType = "resource_type": Name;
    /// the resource that the lock guards, hashed ([`dlock::id_hash`]); the same for the lock and the
    /// resource.
    key Key = "resource_id_hash": Name;
    /// the acquisition: the prefix of its owner token that may be logged, such as `a:7f3c9e12`.
    owner Owner = "owner_token_prefix": Name;
    /// the grant's number, or 0 if the lock gave none; on a refusal, the number that was refused.
    token Token = "fencing_token": u64;
    /// the number of the write within its grant; none for a plain write, which is the grant's last.
    seq Seq = "seq": u64;
    /// the TTL of the lease in milliseconds; none if it never ends.
    ttl_millis TtlMillis = "ttl_millis": u64;
    /// the time for which the holder may still trust the lease, in microseconds of its own clock.
    valid_micros ValidMicros = "valid_micros": u64;
    /// the number of permits of a semaphore.
    permits Permits = "permits": u64;
    /// the place in a fair lock's queue; lower is served first.
    position Position = "position": u64;
    /// the outcome, in a word.
    outcome Outcome = "outcome": Name;
    /// the highest token that the resource had seen; zero for none.
    seen Seen = "seen": u64;
    /// the number of writes that the resource has stored, this one included; zero if it was never written.
    version Version = "version": u64;
    /// the version that a conditional write names.
    expected Expected = "expected": u64;
    /// the process for which a lock server acted.
    client Client = "client": Name;
    /// the step of a worker's round.
    step Step = "step": Name;
    /// the number of a fault in its schedule or plan, counted from zero.
    fault Fault = "fault": u64;
    /// the action of a fault, in a word: `pause`, `cut`, `step`.
    verb Verb = "verb": Name;
    /// the effect of a fault; as text, in JSON.
    effect Effect = "effect": Effect;
    /// the true time at which a fault ends by itself, in nanoseconds since the run began; none if it does
    /// not.
    until Until = "until": u64;
    /// the rate of a clock: its nanoseconds in a billion true ones.
    rate Rate = "rate": u64;
    /// text for a reader, never parsed.
    detail Detail = "detail": Name;
    /// the first 8 bytes of the body's SHA-256, in hexadecimal.
    body Body = "body": Name;
    /// the number of a task: the time of a tick in milliseconds of Unix time, or the number of a job.
    task Task = "task": u64;
    /// the most requests that may wait for a key at once.
    waiters_max WaitersMax = "waiters_max": u64;
    /// the token above which a call of a single-flight accepts values; zero if it accepts any.
    above Above = "above": u64;
}

/// A record that is no event of the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// No field `event`.
    #[error("the record has no field `event`, which names what happened")]
    Unnamed,
    /// The vocabulary lacks the name.
    #[error("`{event}` is no event that a history may hold")]
    Unknown {
        /// The name.
        event: Name,
    },
    /// A field of the event is absent, or of another type.
    #[error("the event `{}` lacks its field `{field}`", .event.as_str())]
    Missing {
        /// The event.
        event: EventName,
        /// The field.
        field: &'static str,
    },
}

impl Record {
    /// Returns a record of that event, without fields.
    pub fn new(event: EventName) -> Self {
        Self { event: Some(Label::Known(event)), ..Self::default() }
    }

    /// Returns the event's name.
    ///
    /// # Errors
    ///
    /// [`RecordError::Unnamed`] or [`RecordError::Unknown`].
    pub fn event(&self) -> Result<EventName, RecordError> {
        match &self.event {
            Some(Label::Known(event)) => Ok(*event),
            Some(Label::Unknown(event)) => Err(RecordError::Unknown { event: event.clone() }),
            None => Err(RecordError::Unnamed),
        }
    }

    /// Fills `slot` with text, and that of an effect from its JSON; a slot for a number stays empty.
    pub fn put_text(&mut self, slot: Slot, text: &str) {
        if slot == Slot::Event {
            self.event = Some(Label::from(text));
            return;
        }
        match self.value_mut(slot) {
            Some(ValueMut::Text(kept)) => *kept = Some(Name::from(text)),
            Some(ValueMut::Effect(kept)) => *kept = serde_json::from_str(text).ok(),
            Some(ValueMut::Number(_)) | None => {}
        }
    }

    /// Fills `slot` with a number; a slot for text stays empty.
    pub fn put_number(&mut self, slot: Slot, number: u64) {
        if let Some(ValueMut::Number(kept)) = self.value_mut(slot) {
            *kept = Some(number);
        }
    }

    /// Fills `slot` with the text that `value` is formatted as; a slot for a number stays empty.
    pub fn put_debug(&mut self, slot: Slot, value: &dyn fmt::Debug) {
        let text = || Name::from_format(format_args!("{value:?}"));
        match slot {
            Slot::Event | Slot::Effect => self.put_text(slot, text().as_str()),
            _ => {
                if let Some(ValueMut::Text(kept)) = self.value_mut(slot) {
                    *kept = Some(text());
                }
            }
        }
    }
}

/// A field of a record that is being read, by the type of its value.
enum ValueMut<'r> {
    Text(&'r mut Option<Name>),
    Number(&'r mut Option<u64>),
    Effect(&'r mut Option<Effect>),
}

impl<'r> From<&'r mut Option<Name>> for ValueMut<'r> {
    fn from(kept: &'r mut Option<Name>) -> Self {
        Self::Text(kept)
    }
}

impl<'r> From<&'r mut Option<u64>> for ValueMut<'r> {
    fn from(kept: &'r mut Option<u64>) -> Self {
        Self::Number(kept)
    }
}

impl<'r> From<&'r mut Option<Effect>> for ValueMut<'r> {
    fn from(kept: &'r mut Option<Effect>) -> Self {
        Self::Effect(kept)
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &TracingField, value: &str) {
        self.put_text(Slot::of(field.name()), value);
    }

    fn record_u64(&mut self, field: &TracingField, value: u64) {
        self.put_number(Slot::of(field.name()), value);
    }

    fn record_i64(&mut self, field: &TracingField, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.put_number(Slot::of(field.name()), value);
        }
    }

    /// Values given as `%display` arrive here too.
    fn record_debug(&mut self, field: &TracingField, value: &dyn fmt::Debug) {
        self.put_debug(Slot::of(field.name()), value);
    }
}

/// The value of the field `event`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Label {
    Known(EventName),
    Unknown(Name),
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        EventName::parse(name).map_or_else(|| Self::Unknown(Name::from(name)), Self::Known)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Known(event) => event.as_str(),
            Self::Unknown(name) => name.as_str(),
        })
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Self::from(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::vocabulary::LinkFault;

    #[test]
    fn every_field_that_is_written_has_its_slot() {
        let mut record = Record::new(EventName::LeaseRequested);
        for name in [&mut record.resource_type, &mut record.key, &mut record.owner, &mut record.outcome] {
            *name = Some(Name::from("text"));
        }
        let others = [&mut record.client, &mut record.step, &mut record.verb];
        for name in others.into_iter().chain([&mut record.detail, &mut record.body]) {
            *name = Some(Name::from("text"));
        }
        for number in [&mut record.token, &mut record.seq, &mut record.ttl_millis, &mut record.valid_micros] {
            *number = Some(7);
        }
        for number in [&mut record.position, &mut record.seen, &mut record.version, &mut record.expected] {
            *number = Some(7);
        }
        for number in [&mut record.fault, &mut record.rate, &mut record.until, &mut record.permits] {
            *number = Some(7);
        }
        record.effect = Some(Effect::links(LinkFault::Cut, [("a", "b")]));
        (record.waiters_max, record.above) = (Some(7), Some(7));
        let fields = serde_json::to_value(&record).unwrap();
        let fields = fields.as_object().unwrap();
        assert_eq!(fields.len(), 25);
        let mut copy = Record::default();
        for (field, value) in fields {
            match value {
                Value::Number(number) => copy.put_number(Slot::of(field), number.as_u64().unwrap()),
                Value::String(text) => copy.put_text(Slot::of(field), text),
                other => copy.put_text(Slot::of(field), &other.to_string()),
            }
        }
        assert_eq!(copy, record);
        // A value of the wrong type is dropped, and so is a field that the vocabulary lacks.
        copy.put_number(Slot::Key, 1);
        copy.put_text(Slot::Token, "1");
        copy.put_text(Slot::of("hostname"), "worker-4");
        assert_eq!(copy, record);
    }
}
