//! An event as it is logged: a name and the fields that it happens to have, not yet held against the vocabulary.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tracing::field::{Field as TracingField, Visit};

use super::name::Name;
use super::vocabulary::EventName;

/// The raw fields of an event. A subscriber layer fills it (it is a [`Visit`]), a JSON line is read into it; then
/// [`Kind::try_from`](super::Kind) makes a typed event of it. Fields outside the vocabulary are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    event: Option<Label>,
    /// `resource_id_hash`: what the lock guards, hashed ([`dlock::id_hash`]); the same for the lock and the resource.
    #[serde(rename = "resource_id_hash", skip_serializing_if = "Option::is_none")]
    pub key: Option<Name>,
    /// `owner_token_prefix`: the acquisition, as far as it may be logged: `a:7f3c9e12`.
    #[serde(rename = "owner_token_prefix", skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// `fencing_token`: the grant's number; on a refusal, the number that was refused.
    #[serde(rename = "fencing_token", skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// `seq`: which of the writes of one grant; none for a plain write, which is the grant's last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// `ttl_millis`: how long the lease lives, in milliseconds; none if it never ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_millis: Option<u64>,
    /// `valid_micros`: how long the holder may trust the lease, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_micros: Option<u64>,
    /// `position`: the place in a fair lock's line; lower is served first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// `outcome`: how it ended, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Name>,
    /// `seen`: the highest token that the resource had seen; zero for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// `version`: how many writes the resource has stored, this one included; zero if it was never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// `expected`: the version that a conditional write names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// `client`: the process for which a lock server acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Name>,
    /// `step`: where in its work a worker is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Name>,
    /// `detail`: words for a reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Name>,
    /// `body`: the first 8 bytes of the body's SHA-256, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Name>,
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
    /// A record of that event, without fields.
    pub fn new(event: EventName) -> Self {
        Self { event: Some(Label::Known(event)), ..Self::default() }
    }

    /// The event's name.
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

    /// How logs call the field that the code calls `field`.
    pub(super) const fn field_name(field: &'static str) -> &'static str {
        match field.as_bytes() {
            b"key" => "resource_id_hash",
            b"owner" => "owner_token_prefix",
            b"token" => "fencing_token",
            _ => field,
        }
    }

    /// Fills `slot` with text; a slot for a number stays empty.
    pub fn put_text(&mut self, slot: Slot, text: &str) {
        if slot == Slot::Event {
            self.event = Some(Label::from(text));
        } else if let Some(kept) = self.text(slot) {
            *kept = Some(Name::from(text));
        }
    }

    /// Fills `slot` with a number; a slot for text stays empty.
    pub fn put_number(&mut self, slot: Slot, number: u64) {
        let kept = match slot {
            Slot::Token => &mut self.token,
            Slot::Seq => &mut self.seq,
            Slot::TtlMillis => &mut self.ttl_millis,
            Slot::ValidMicros => &mut self.valid_micros,
            Slot::Position => &mut self.position,
            Slot::Seen => &mut self.seen,
            Slot::Version => &mut self.version,
            Slot::Expected => &mut self.expected,
            _ => return,
        };
        *kept = Some(number);
    }

    /// Fills `slot` with the text that `value` is formatted as.
    pub fn put_debug(&mut self, slot: Slot, value: &dyn fmt::Debug) {
        let text = || Name::from_format(format_args!("{value:?}"));
        if slot == Slot::Event {
            self.event = Some(Label::from(text().as_str()));
        } else if let Some(kept) = self.text(slot) {
            *kept = Some(text());
        }
    }

    fn text(&mut self, slot: Slot) -> Option<&mut Option<Name>> {
        Some(match slot {
            Slot::Key => &mut self.key,
            Slot::Owner => &mut self.owner,
            Slot::Outcome => &mut self.outcome,
            Slot::Client => &mut self.client,
            Slot::Step => &mut self.step,
            Slot::Detail => &mut self.detail,
            Slot::Body => &mut self.body,
            _ => return None,
        })
    }
}

/// A field of a [`Record`], as a name that need not be compared again: the fields of a `tracing` call site are always the
/// same, so whoever records many events looks them up once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `event`.
    Event,
    /// [`Record::key`].
    Key,
    /// [`Record::owner`].
    Owner,
    /// [`Record::token`].
    Token,
    /// [`Record::seq`].
    Seq,
    /// [`Record::ttl_millis`].
    TtlMillis,
    /// [`Record::valid_micros`].
    ValidMicros,
    /// [`Record::position`].
    Position,
    /// [`Record::outcome`].
    Outcome,
    /// [`Record::seen`].
    Seen,
    /// [`Record::version`].
    Version,
    /// [`Record::expected`].
    Expected,
    /// [`Record::client`].
    Client,
    /// [`Record::step`].
    Step,
    /// [`Record::detail`].
    Detail,
    /// [`Record::body`].
    Body,
    /// A field outside the vocabulary, which is dropped.
    Outside,
}

impl Slot {
    /// The slot of the field that logs call `field`.
    pub fn of(field: &str) -> Self {
        match field {
            "event" => Self::Event,
            "resource_id_hash" => Self::Key,
            "owner_token_prefix" => Self::Owner,
            "fencing_token" => Self::Token,
            "seq" => Self::Seq,
            "ttl_millis" => Self::TtlMillis,
            "valid_micros" => Self::ValidMicros,
            "position" => Self::Position,
            "outcome" => Self::Outcome,
            "seen" => Self::Seen,
            "version" => Self::Version,
            "expected" => Self::Expected,
            "client" => Self::Client,
            "step" => Self::Step,
            "detail" => Self::Detail,
            "body" => Self::Body,
            _ => Self::Outside,
        }
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

/// A field of an event: how it is taken from a record and put into one.
pub(super) trait Field<Raw>: Sized {
    /// `None` if the event can't do without it.
    fn load(raw: Option<Raw>) -> Option<Self>;
    fn store(&self) -> Option<Raw>;
}

impl<Raw: Clone> Field<Raw> for Raw {
    fn load(raw: Option<Raw>) -> Option<Self> {
        raw
    }

    fn store(&self) -> Option<Raw> {
        Some(self.clone())
    }
}

impl<Raw: Clone> Field<Raw> for Option<Raw> {
    fn load(raw: Option<Raw>) -> Option<Self> {
        Some(raw)
    }

    fn store(&self) -> Option<Raw> {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_is_written_has_its_slot() {
        let mut record = Record::new(EventName::LeaseRequested);
        for name in [&mut record.key, &mut record.owner, &mut record.outcome, &mut record.client] {
            *name = Some(Name::from("text"));
        }
        for name in [&mut record.step, &mut record.detail, &mut record.body] {
            *name = Some(Name::from("text"));
        }
        for number in [&mut record.token, &mut record.seq, &mut record.ttl_millis, &mut record.valid_micros] {
            *number = Some(7);
        }
        for number in [&mut record.position, &mut record.seen, &mut record.version, &mut record.expected] {
            *number = Some(7);
        }
        let fields = serde_json::to_value(&record).unwrap();
        let fields = fields.as_object().unwrap();
        assert_eq!(fields.len(), 16);
        let mut copy = Record::default();
        for (field, value) in fields {
            match value.as_u64() {
                Some(number) => copy.put_number(Slot::of(field), number),
                None => copy.put_text(Slot::of(field), value.as_str().unwrap()),
            }
        }
        assert_eq!(copy, record);
        // The wrong kind of value is dropped, and so is what the vocabulary lacks.
        copy.put_number(Slot::Key, 1);
        copy.put_text(Slot::Token, "1");
        copy.put_text(Slot::of("resource_type"), "account");
        assert_eq!(copy, record);
    }
}
