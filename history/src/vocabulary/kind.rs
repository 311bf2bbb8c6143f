//! An event of the vocabulary, with its fields, and its conversion from and to a [`Record`].

use super::effect::Effect;
use super::event_name::EventName;
use super::name::Name;
use super::record::{Record, RecordError, log_name};

/// Generates [`Kind`] from the table.
macro_rules! kinds {
    ($($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($field:ident: $type:ty),* } )* })*) => {
        /// One event of the vocabulary, with its fields. Each field is described at [`Record`].
        ///
        /// # Example
        ///
        /// ```
        /// use history::{EventName, Kind, Name};
        ///
        /// let owner = Some(Name::from("a:7f3c9e12"));
        /// let kind = Kind::KeyExpired { key: Name::from("6b6e"), owner };
        /// assert_eq!(kind.name(), EventName::KeyExpired);
        /// assert_eq!(kind.key().map(Name::as_str), Some("6b6e"));
        /// assert_eq!(Kind::try_from(kind.to_record()), Ok(kind));
        /// ```
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
            /// Returns the event's name.
            pub const fn name(&self) -> EventName {
                match self { $($( Self::$variant { .. } => EventName::$variant, )*)* }
            }

            /// Returns the fields as a record, as they would be logged.
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
    /// Takes the event out of `record`, which is then empty and can be filled again: with many events, moving
    /// whole records would cost as much as reading them.
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
    /// Converts a raw value; `None` if the event requires the field and it is missing.
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
