//! The events' names.

/// Generates [`EventName`] from the table.
macro_rules! event_names {
    ($($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($fields:tt)* } )* })*) => {
        /// The name of an event: the value of its field `event`.
        ///
        /// # Example
        ///
        /// ```
        /// use history::EventName;
        ///
        /// let name = EventName::parse("lease_acquired");
        /// assert_eq!(name, Some(EventName::LeaseAcquired));
        /// assert_eq!(EventName::LeaseAcquired.target(), "dlock");
        /// assert_eq!(EventName::parse("lease_aquired"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventName { $($( $(#[$doc])* $variant, )*)* }

        impl EventName {
            /// Every name, in the table's order.
            pub const ALL: &[Self] = &[$($( Self::$variant, )*)*];

            /// Returns the name in logs, such as `lease_acquired`.
            pub const fn as_str(self) -> &'static str {
                match self { $($( Self::$variant => $name, )*)* }
            }

            /// Returns the `tracing` target that the event is emitted under: `dlock`, `resource`, `worker`,
            /// `server` or `fault`.
            pub const fn target(self) -> &'static str {
                match self { $($( Self::$variant => $target, )*)* }
            }

            /// Returns the event of that name, if the vocabulary has it.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($( $name => Some(Self::$variant), )*)* _ => None }
            }
        }
    };
}

events!(event_names);
