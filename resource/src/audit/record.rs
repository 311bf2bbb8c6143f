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

    fn put_text(&mut self, field: &str, text: impl FnOnce() -> Name) {
        let slot = match field {
            "resource_id_hash" => &mut self.key,
            "owner_token_prefix" => &mut self.owner,
            "outcome" => &mut self.outcome,
            "client" => &mut self.client,
            "step" => &mut self.step,
            "detail" => &mut self.detail,
            "body" => &mut self.body,
            _ => return,
        };
        *slot = Some(text());
    }

    fn put_number(&mut self, field: &str, number: u64) {
        let slot = match field {
            "fencing_token" => &mut self.token,
            "seq" => &mut self.seq,
            "ttl_millis" => &mut self.ttl_millis,
            "valid_micros" => &mut self.valid_micros,
            "position" => &mut self.position,
            "seen" => &mut self.seen,
            "version" => &mut self.version,
            "expected" => &mut self.expected,
            _ => return,
        };
        *slot = Some(number);
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &TracingField, value: &str) {
        match field.name() {
            "event" => self.event = Some(Label::from(value)),
            name => self.put_text(name, || Name::from(value)),
        }
    }

    fn record_u64(&mut self, field: &TracingField, value: u64) {
        self.put_number(field.name(), value);
    }

    fn record_i64(&mut self, field: &TracingField, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.put_number(field.name(), value);
        }
    }

    /// Values given as `%display` arrive here too.
    fn record_debug(&mut self, field: &TracingField, value: &dyn fmt::Debug) {
        let text = || Name::from_format(format_args!("{value:?}"));
        match field.name() {
            "event" => self.event = Some(Label::from(text().as_str())),
            name => self.put_text(name, text),
        }
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
