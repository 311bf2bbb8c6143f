//! An event of the vocabulary, with its fields, and its way from and to a [`Record`].

use super::event_name::EventName;
use super::name::Name;
use super::record::{Record, RecordError, log_name};

/// Builds [`Kind`] out of the table.
macro_rules! kinds {
    ($($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($field:ident: $type:ty),* } )* })*) => {
        /// What happened: one event of the vocabulary, with its fields. Each field is described at
        /// [`Record`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(
                $(#[$doc])*
                $variant {
                    $( #[doc = concat!("See `", stringify!($field), "` of [`Record`].")] $field: $type, )*
                },
            )*)*
        }

        impl Kind {
            /// The event's name.
            pub const fn name(&self) -> EventName {
                match self { $($( Self::$variant { .. } => EventName::$variant, )*)* }
            }

            /// The fields as a record, as they would be logged.
            pub fn to_record(&self) -> Record {
                let mut record = Record::new(self.name());
                match self {
                    $($( Self::$variant { $($field),* } => { $( record.$field = $field.store(); )* } )*)*
                }
                record
            }

            fn load(event: EventName, record: &mut Record) -> Result<Self, RecordError> {
                match event {
                    $($(
                        EventName::$variant => Ok(Self::$variant {
                            $( $field: Field::load(record.$field.take())
                                .ok_or(RecordError::Missing { event, field: log_name::$field })?, )*
                        }),
                    )*)*
                }
            }
        }
    };
}

events!(kinds);

impl Kind {
    /// The event in `record`, which is empty from then on and can be filled again: where events are many,
    /// moving whole records would cost as much as reading them.
    ///
    /// # Errors
    ///
    /// As for [`Kind::try_from`].
    pub fn take_from(record: &mut Record) -> Result<Self, RecordError> {
        let kind = record.event().and_then(|event| Self::load(event, record));
        *record = Record::default();
        kind
    }
}

impl TryFrom<Record> for Kind {
    type Error = RecordError;

    /// # Errors
    ///
    /// [`RecordError`] for an event without a name, with a name that the vocabulary lacks, or without one of
    /// its fields. Fields that the event does not have are ignored.
    fn try_from(mut record: Record) -> Result<Self, RecordError> {
        Self::take_from(&mut record)
    }
}

/// A field of an event: how it is taken from a record and put into one.
trait Field<Raw>: Sized {
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
