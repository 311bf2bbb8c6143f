//! Enums whose variants have names in files and on the command line, and the error for an unknown name.

/// A text that is not one of the known names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`: known are {known}")]
pub struct UnknownName {
    what: &'static str,
    given: String,
    known: String,
}

impl UnknownName {
    /// Returns the error for the name `given` of a `what`, such as "point", with the names that are known.
    pub fn new(what: &'static str, given: &str, known: &[&str]) -> Self {
        Self { what, given: given.to_owned(), known: known.join(", ") }
    }
}

/// Declares an enum together with the name of each variant: one list serves reading, printing and the error
/// that lists the known names. The crate `strum` must be a dependency of the caller.
#[doc(hidden)]
#[macro_export]
macro_rules! names {
    ($(#[$meta:meta])* pub enum $name:ident as $what:literal {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(strum::Display, strum::EnumString, strum::VariantArray)]
        #[strum(parse_err_ty = $crate::UnknownName, parse_err_fn = Self::unknown)]
        pub enum $name { $($(#[$variant_meta])* #[strum(serialize = $text)] $variant,)+ }

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// Returns the name in files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            fn unknown(text: &str) -> $crate::UnknownName {
                $crate::UnknownName::new($what, text, &[$($text),+])
            }
        }

        $crate::as_text!($name, concat!("the name of the ", $what));
    };
}

/// Reads and writes a type through its `FromStr` and `Display`: a string in every format. Unlike the macros
/// of `serde_plain`, it keeps the message of the error.
#[doc(hidden)]
#[macro_export]
macro_rules! as_text {
    ($name:ident, $expecting:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}
