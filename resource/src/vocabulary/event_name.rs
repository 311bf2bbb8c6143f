//! The events' names.

/// Builds [`EventName`] out of the table.
macro_rules! event_names {
    ($($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($fields:tt)* } )* })*) => {
        /// The name of an event: the value of its field `event`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventName { $($( $(#[$doc])* $variant, )*)* }

        impl EventName {
            /// Every name, in the table's order.
            pub const ALL: &[Self] = &[$($( Self::$variant, )*)*];

            /// The name as logs have it: `lease_acquired`.
            pub const fn as_str(self) -> &'static str {
                match self { $($( Self::$variant => $name, )*)* }
            }

            /// The `tracing` target that the event is emitted under: `dlock`, `resource`, `worker`, `server`
            /// or `fault`.
            pub const fn target(self) -> &'static str {
                match self { $($( Self::$variant => $target, )*)* }
            }

            /// The event of that name, if the vocabulary has it.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($( $name => Some(Self::$variant), )*)* _ => None }
            }
        }
    };
}

events!(event_names);
