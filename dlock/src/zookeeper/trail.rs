//! What is remembered of one acquisition between its calls.

use super::place::Place;
use crate::backend;
use crate::runtime::Runtime;

/// The entry that an acquisition has, or may have, in the queue of its lock.
pub struct Trail<R: Runtime> {
    /// From before its creation is sent until it is certainly gone.
    place: Option<Place<R>>,
}

impl<R: Runtime> Trail<R> {
    pub(super) fn place(&mut self) -> Option<&mut Place<R>> {
        self.place.as_mut()
    }

    /// Notes an entry that is about to be created.
    pub(super) fn enter(&mut self, place: Place<R>) -> &mut Place<R> {
        self.place.insert(place)
    }

    /// Notes that the entry is certainly gone, or never was.
    pub(super) fn gone(&mut self) {
        self.place = None;
    }
}

impl<R: Runtime> Default for Trail<R> {
    fn default() -> Self {
        Self { place: None }
    }
}

impl<R: Runtime> backend::Trail for Trail<R> {
    fn is_open(&self) -> bool {
        self.place.is_some()
    }
}
