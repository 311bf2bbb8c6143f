//! Finds the cycles in a graph of imports, and describes each with its imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::imports::Imports;

/// The neighbours of each node.
type Edges<'graph> = BTreeMap<&'graph str, Vec<&'graph str>>;

/// Finds the cycles; returns a set of nodes that reach each other for each.
pub fn find_cycles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let (mut imported, mut importing) = (Edges::new(), Edges::new());
    for (from, to) in imports.keys() {
        imported.entry(from).or_default().push(to);
        importing.entry(to).or_default().push(from);
    }
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for node in imported.keys() {
        if found.iter().any(|cycle| cycle.contains(*node)) {
            continue;
        }
        let (reached, reaching) = (reach(&imported, node), reach(&importing, node));
        let cycle: BTreeSet<String> =
            reached.intersection(&reaching).map(|node| (*node).to_owned()).collect();
        if cycle.len() > 1 {
            found.push(cycle);
        }
    }
    found
}

/// Lists a cycle's imports: a line for each pair of nodes, with the names.
pub fn describe(cycle: &BTreeSet<String>, imports: &Imports) -> String {
    let mut text = format!("a cycle of {}:\n", cycle.len());
    for ((from, to), names) in imports {
        if cycle.contains(from) && cycle.contains(to) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  {from} imports {} from {to}", names.join(", "));
        }
    }
    text
}

/// Returns the node and all nodes that it reaches.
fn reach<'graph>(edges: &Edges<'graph>, node: &'graph str) -> BTreeSet<&'graph str> {
    let mut reached = BTreeSet::from([node]);
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let next = edges.get(node).into_iter().flatten().filter(|next| reached.insert(next));
        open.extend(next);
    }
    reached
}
