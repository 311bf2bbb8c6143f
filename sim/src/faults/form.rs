//! The forms of a fault, which exhaustive searches place.

use std::fmt;
use std::sync::Arc;

use super::action::Action;
use super::link::Link;
use super::scene::Scene;
use crate::span::Span;

/// A fault of a fixed length, on every target that suits it.
#[derive(Clone)]
pub struct Form {
    /// Its rank, by which searches list forms.
    order: u32,
    verb: &'static str,
    words: String,
    targets: Targets,
}

/// Returns the fault of a process, if it suits the process.
type OnProcess = dyn Fn(&dyn Scene, &str) -> Option<Arc<dyn Action>> + Send + Sync;

/// Returns the fault of a link.
type OnLink = dyn Fn(&Link) -> Arc<dyn Action> + Send + Sync;

/// The targets of a form, with the fault of each.
#[derive(Clone)]
enum Targets {
    Processes(Arc<OnProcess>),
    /// One fault for each direction of a link, or one for `both`.
    Links {
        both: bool,
        fault: Arc<OnLink>,
    },
}

impl Form {
    /// Creates a form on processes: `fault` returns the fault of a process that suits it. `words` describe it
    /// in the claim of a search.
    pub fn of_processes<A: Action>(
        order: u32,
        verb: &'static str,
        words: impl Into<String>,
        fault: impl Fn(&dyn Scene, &str) -> Option<A> + Send + Sync + 'static,
    ) -> Self {
        let boxed = move |scene: &dyn Scene, process: &str| -> Option<Arc<dyn Action>> {
            Some(Arc::new(fault(scene, process)?))
        };
        Self { order, verb, words: words.into(), targets: Targets::Processes(Arc::new(boxed)) }
    }

    /// Creates a form on links, with one fault for each direction, or one for `both`.
    pub fn of_links<A: Action>(
        order: u32,
        verb: &'static str,
        words: impl Into<String>,
        both: bool,
        fault: impl Fn(&Link) -> A + Send + Sync + 'static,
    ) -> Self {
        let boxed = move |link: &Link| -> Arc<dyn Action> { Arc::new(fault(link)) };
        Self { order, verb, words: words.into(), targets: Targets::Links { both, fault: Arc::new(boxed) } }
    }

    /// Returns its rank, by which searches list forms.
    pub(super) fn order(&self) -> u32 {
        self.order
    }

    /// Returns the word that names its fault in schedule files.
    pub fn verb(&self) -> &'static str {
        self.verb
    }

    /// Returns its faults in the scene, each with the name of its target. `links` are the pairs of processes
    /// that have connections.
    pub fn faults(&self, scene: &dyn Scene, links: &[Link]) -> Vec<(String, Arc<dyn Action>)> {
        match &self.targets {
            Targets::Processes(fault) => {
                let on = |process: String| Some((process.clone(), fault(scene, &process)?));
                scene.processes().into_iter().filter_map(on).collect()
            }
            Targets::Links { both, fault } => {
                let back = |link: &Link| (!both).then(|| Link::new(&link.to, &link.from));
                let links = links.iter().flat_map(|link| [link.clone()].into_iter().chain(back(link)));
                links.map(|link| (link.arrow(*both), fault(&link))).collect()
            }
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Form").field(&self.verb).field(&self.words).finish()
    }
}

/// Returns half of a lease.
pub(super) fn half(lease: Span) -> Span {
    Span::from_nanos(lease.as_nanos() / 2)
}

/// Returns one and a half leases.
pub(super) fn longer(lease: Span) -> Span {
    half(lease).times(3)
}
