//! The declaration of the mutants, from a row each.

/// Declares the mutants: each with its number, its name in schedule files, its file, the place where it was
/// seen, the verdicts that convict it on the schedule aimed at it, and its exhibit.
macro_rules! mutants {
    ($(
        #[doc = $mistake:literal]
        $variant:ident = $name:literal, $number:ident in $file:ident, from $source:literal, shows $shows:expr
            $(, found by $check:literal)? => $exhibit:expr,
    )+) => {
        /// One mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant { $(#[doc = $mistake] $variant,)+ }

        impl Mutant {
            /// All mutants, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns its name in schedule files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the number of the mistake: B for mistakes of real libraries, R for those that recipes
            /// teach. Two mutants may show one mistake.
            pub const fn number(self) -> &'static str {
                match self { $(Self::$variant => stringify!($number),)+ }
            }

            /// Returns a sentence that says what is wrong.
            pub const fn mistake(self) -> &'static str {
                match self { $(Self::$variant => $mistake.trim_ascii(),)+ }
            }

            /// Returns the place where the mistake was seen: a project, and the number of its issue if any.
            pub const fn source(self) -> &'static str {
                match self { $(Self::$variant => $source,)+ }
            }

            /// Returns the verdicts that convict it, each by itself. If there are none, only a schedule's
            /// expectations do: the correct lock gets writes through that the mutant does not.
            pub const fn shows(self) -> &'static [Verdict] {
                match self { $(Self::$variant => const { &$shows },)+ }
            }

            /// Returns the check that convicts it in a search, where fencing is on and may hide it from the
            /// verdicts; `None` if its verdicts do.
            pub const fn check(self) -> Option<&'static str> {
                let of: &[&'static str] = match self { $(Self::$variant => &[$($check)?],)+ };
                of.first().copied()
            }

            /// Returns the path of its file in the repository.
            pub const fn file(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("sim/lab/src/museum/", stringify!($file), ".rs"),)+
                }
            }

            pub(super) fn exhibit(self) -> Exhibit {
                match self { $(Self::$variant => $exhibit,)+ }
            }
        }
    };
}
