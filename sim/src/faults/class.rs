//! The classes of faults by which lock systems are compared.

use std::cmp::Ordering;
use std::fmt;

use super::action::Fault;
use super::draw::FaultDraw;

/// A class of faults: a comparison counts, for each class, what happens to a system that has one such fault.
pub struct Class {
    /// Its rank among all classes, by which tables list them. No two classes have the same.
    pub order: u32,
    /// Its name in tables.
    pub name: &'static str,
    /// The [action](super::Scene::action) of a server without which there is no such fault; `None` if every
    /// system can have one.
    pub needs: Option<&'static str>,
    /// Draws a fault, as one entry of a schedule or several.
    pub draw: fn(&mut FaultDraw<'_>) -> Vec<Fault>,
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Class {}

impl PartialOrd for Class {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Class {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Class").field(&self.name).finish()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
