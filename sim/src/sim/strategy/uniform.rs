//! Each fault by itself.

use super::Material;
use crate::faults::Fault;

/// The largest number of faults.
const FAULTS_MAX: u64 = 4;

/// Draws up to four faults, each from its own site: leaving one out changes no other.
pub(super) fn faults(material: &Material<'_>) -> Vec<Fault> {
    let count = (material.site)("faults").below(FAULTS_MAX + 1);
    let draw = |number| material.known.draw(material.scene, &mut (material.site)(&format!("fault {number}")));
    (1..=count).filter_map(draw).collect()
}
