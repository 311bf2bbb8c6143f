//! The lanes and keys of a picture, found by name.

use std::collections::BTreeMap;

use history::text::Names;
use history::{Event, Name};

use super::Lane;

/// The lanes and keys of a picture.
pub(super) struct Cast<'a> {
    pub(super) lanes: &'a [Lane],
    by_name: BTreeMap<&'a str, usize>,
    keys: Vec<Name>,
    pub(super) names: &'a Names,
}

impl<'a> Cast<'a> {
    pub(super) fn new(lanes: &'a [Lane], events: &[Event], names: &'a Names) -> Self {
        let by_name = lanes.iter().enumerate().map(|(number, lane)| (lane.name.as_str(), number)).collect();
        let mut keys = Vec::new();
        for key in events.iter().filter_map(|event| event.kind.key()) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        Self { lanes, by_name, keys, names }
    }

    /// Returns the number of the lane of the process with this name.
    pub(super) fn lane(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the number of a key.
    pub(super) fn key(&self, key: &Name) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }

    pub(super) fn has_several_keys(&self) -> bool {
        self.keys.len() > 1
    }

    pub(super) fn key_name(&self, key: &Name) -> String {
        self.names.key(key).to_owned()
    }

    pub(super) fn key_names(&self) -> Vec<String> {
        self.keys.iter().map(|key| self.key_name(key)).collect()
    }
}
