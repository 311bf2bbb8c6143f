//! Probes: places in the code that say which situations a search has reached.
//!
//! A file declares its probes by [`probes!`](crate::probes) and evaluates them by
//! [`sometimes!`](crate::sometimes), [`always!`](crate::always), [`reached!`](crate::reached) and
//! [`closest!`](crate::closest), each through a seam: a [`Runtime`](crate::Runtime) or a [`Probed`]. The
//! simulator counts the reports.
//!
//! # What a probe costs elsewhere
//!
//! Nothing. The condition of a probe is a closure, and the default method of the seam drops it without a
//! call: after inlining, no instruction is left, no branch, and no look at a flag. The declarations are
//! constant data that only a list of all probes refers to.

use std::fmt;

/// The expectation of a probe in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Its condition is true in at least one run.
    Sometimes,
    /// Its condition is true whenever it is evaluated, and it is evaluated in at least one run.
    Always,
    /// Its place is reached in at least one run.
    Reached,
    /// Its number is reported in at least one run. The smallest one is kept, such as the time left to a
    /// lease.
    Closest,
}

/// A probe, as its file declares it.
#[derive(Debug)]
pub struct Probe {
    /// Its name. No two probes of a program share one.
    pub name: &'static str,
    /// The expectation of it.
    pub kind: ProbeKind,
    /// The file in which it is declared and evaluated.
    pub file: &'static str,
    /// The line at which the file declares its probes.
    pub line: u32,
    /// The situation, in one sentence.
    pub about: &'static str,
}

/// The seam of probes where there is no [`Runtime`](crate::Runtime). `()` ignores them.
pub trait Probed: Clone + Send + Sync + 'static {
    /// Reports what `seen` returns, evaluated at `line` of the probe's file: 1 or 0 for a condition that is
    /// true or false, or the number of a graded probe. The default does nothing, and does not call `seen`.
    #[inline(always)]
    fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
        let _ = (probe, line, seen);
    }
}

impl Probed for () {}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sometimes => "sometimes",
            Self::Always => "always",
            Self::Reached => "reached",
            Self::Closest => "closest",
        })
    }
}

/// Declares the probes of a file, in a module `probe` whose `ALL` lists them. The doc comment of a probe is
/// its sentence.
///
/// ```
/// use dlock_runtime::{ProbeKind, Runtime, probes, sometimes};
///
/// probes! {
///     /// A renewal failed, and the lease is still valid.
///     sometimes renewal_failed_lease_kept;
///     /// A token is repeated.
///     sometimes token_repeated;
///     /// A lease is never valid for longer than its TTL.
///     always validity_within_ttl;
/// }
///
/// fn renewal_failed(runtime: &impl Runtime, is_valid: bool) {
///     sometimes!(runtime, renewal_failed_lease_kept, is_valid);
/// }
///
/// fn main() {
///     assert_eq!(probe::ALL[1].about.trim(), "A token is repeated.");
///     assert_eq!(probe::ALL[2].kind, ProbeKind::Always);
/// }
/// ```
#[macro_export]
macro_rules! probes {
    ($($(#[doc = $about:literal])+ $kind:ident $name:ident;)+) => {
        #[allow(non_upper_case_globals, reason = "a probe's name is lower case where it is reported")]
        pub(crate) mod probe {
            $(
                $(#[doc = $about])+
                pub(crate) static $name: $crate::Probe = $crate::Probe {
                    name: stringify!($name),
                    kind: $crate::probes!(@kind $kind),
                    file: file!(),
                    line: line!(),
                    about: concat!($($about),+),
                };
            )+

            /// The probes of this file.
            pub(crate) const ALL: &[&$crate::Probe] = &[$(&$name),+];
        }
    };
    (@kind sometimes) => { $crate::ProbeKind::Sometimes };
    (@kind always) => { $crate::ProbeKind::Always };
    (@kind reached) => { $crate::ProbeKind::Reached };
    (@kind closest) => { $crate::ProbeKind::Closest };
    (@evaluate $kind:ident, $seam:expr, $name:ident, $seen:expr) => {{
        const { assert!(matches!(probe::$name.kind, $crate::ProbeKind::$kind), "declared as another kind") };
        $seam.probe(&probe::$name, line!(), || $seen)
    }};
}

/// Reports to `seam` whether a condition is true, which it must be in at least one run of a search.
///
/// `sometimes!(runtime, renewal_failed_lease_kept, lease.is_valid())`
#[macro_export]
macro_rules! sometimes {
    ($seam:expr, $name:ident, $condition:expr) => {
        $crate::probes!(@evaluate Sometimes, $seam, $name, u64::from($condition))
    };
}

/// Reports to `seam` whether a condition is true, which it must be whenever it is evaluated: a run in which
/// it is not is a violation.
///
/// `always!(runtime, validity_within_ttl, valid <= ttl)`
#[macro_export]
macro_rules! always {
    ($seam:expr, $name:ident, $condition:expr) => {
        $crate::probes!(@evaluate Always, $seam, $name, u64::from($condition))
    };
}

/// Reports to `seam` that this place is reached.
///
/// `reached!(runtime, session_replaced)`
#[macro_export]
macro_rules! reached {
    ($seam:expr, $name:ident) => {
        $crate::probes!(@evaluate Reached, $seam, $name, 1)
    };
}

/// Reports a `u64` to `seam`, of which the smallest one in a search is kept: how close it came. `u64::MAX`
/// says that it was not close at all, and is no hit.
///
/// `closest!(runtime, write_before_expiry_ns, handle.remaining().as_nanos() as u64)`
#[macro_export]
macro_rules! closest {
    ($seam:expr, $name:ident, $number:expr) => {
        $crate::probes!(@evaluate Closest, $seam, $name, $number)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::probes! {
        /// The first line
        /// and the second.
        sometimes told;
        /// A condition.
        always held;
        /// A place.
        reached here;
        /// A number.
        closest near;
    }

    #[test]
    fn a_declaration_has_place_and_sentence() {
        let [told, held, ..] = probe::ALL else { unreachable!() };
        assert_eq!((told.name, told.about.trim()), ("told", "The first line and the second."));
        assert_eq!(held.kind, ProbeKind::Always);
        assert!(told.file.ends_with("probe.rs") && told.line > 100, "{told:?}");
    }

    fn evaluated<T>() -> T {
        panic!("the default seam evaluates a condition")
    }

    #[test]
    fn the_default_seam_is_empty_and_evaluates_nothing() {
        assert_eq!(size_of::<()>(), 0);
        sometimes!((), told, evaluated::<bool>());
        always!((), held, evaluated::<bool>());
        reached!((), here);
        closest!((), near, evaluated());
    }

    /// Records the reports.
    #[derive(Clone)]
    struct Recorder(std::sync::Arc<std::sync::Mutex<Vec<(&'static str, u64)>>>);

    impl Probed for Recorder {
        fn probe(&self, probe: &'static Probe, line: u32, seen: impl FnOnce() -> u64) {
            assert!(line > probe.line, "evaluated below its declaration");
            self.0.lock().unwrap().push((probe.name, seen()));
        }
    }

    #[test]
    fn a_seam_that_overrides_the_default_gets_all_reports() {
        let recorder = Recorder(std::sync::Arc::default());
        sometimes!(recorder, told, 1 > 2);
        always!(recorder, held, 1 < 2);
        reached!(recorder, here);
        closest!(recorder, near, 7);
        assert_eq!(*recorder.0.lock().unwrap(), [("told", 0), ("held", 1), ("here", 1), ("near", 7)]);
    }
}
