//! The circles of a graph of imports, as text that names what ties them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::imports::Imports;

/// For each node, those next to it.
type Edges<'graph> = BTreeMap<&'graph str, Vec<&'graph str>>;

/// Finds the circles: for each, the nodes that reach each other.
pub fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let (mut imported, mut importing) = (Edges::new(), Edges::new());
    for (from, to) in imports.keys() {
        imported.entry(from).or_default().push(to);
        importing.entry(to).or_default().push(from);
    }
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for node in imported.keys() {
        if found.iter().any(|circle| circle.contains(*node)) {
            continue;
        }
        let (reached, reaching) = (reach(&imported, node), reach(&importing, node));
        let circle: BTreeSet<String> =
            reached.intersection(&reaching).map(|node| (*node).to_owned()).collect();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// Lists a circle's imports: a line for each pair of nodes, with the names.
pub fn describe(circle: &BTreeSet<String>, imports: &Imports) -> String {
    let mut text = format!("a circle of {}:\n", circle.len());
    for ((from, to), names) in imports {
        if circle.contains(from) && circle.contains(to) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  {from} imports {} from {to}", names.join(", "));
        }
    }
    text
}

/// The node and all nodes that it reaches.
fn reach<'graph>(edges: &Edges<'graph>, node: &'graph str) -> BTreeSet<&'graph str> {
    let mut reached = BTreeSet::from([node]);
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let next = edges.get(node).into_iter().flatten().filter(|next| reached.insert(next));
        open.extend(next);
    }
    reached
}
