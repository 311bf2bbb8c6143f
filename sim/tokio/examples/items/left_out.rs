//! The items that the page leaves out.

use syn::{Attribute, Meta};

/// Macros of tokio for items that this page leaves out, or that are in no usual build.
const LEFT_OUT: [&str; 12] = [
    "unstable",
    "windows",
    "loom",
    "io_uring",
    "uring",
    "taskdump",
    "trace",
    "schedule_latency",
    "aio",
    "metrics_variant",
    "test_only",
    "bench",
];

/// The beginnings of conditions that hold in no usual build on Linux.
const ELSEWHERE: [&str; 10] = [
    "tokio_unstable",
    "all(not(loom),tokio_unstable",
    "windows",
    "loom",
    "docsrs",
    "fuzzing",
    "not(unix)",
    "any(windows",
    "any(docsrs",
    "any(all(doc",
];

/// Returns true for a macro whose items this page leaves out.
pub(crate) fn is_left_out_macro(name: &str) -> bool {
    let is_negation =
        name.starts_with("cfg_not_") && !name.starts_with("cfg_not_wasi") && name != "cfg_not_loom";
    is_negation || LEFT_OUT.iter().any(|word| name.contains(word) && name != "cfg_not_loom")
}

/// Returns true for an item that this page leaves out.
pub(crate) fn is_left_out(attribute: &Attribute) -> bool {
    is_hidden(attribute) || is_elsewhere(attribute)
}

/// Returns true for an item that documentation hides.
pub(crate) fn is_hidden(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc") && condition(attribute) == "hidden"
}

/// Returns true for an item that no usual build on Linux has.
pub(crate) fn is_elsewhere(attribute: &Attribute) -> bool {
    let text = condition(attribute);
    let begins = |word: &&str| text.starts_with(*word) || text.contains(&format!("all({word}"));
    attribute.path().is_ident("cfg") && (text == "test" || ELSEWHERE.iter().any(begins))
}

/// Returns true for the first attribute in the body of tokio's macro `feature!`, if no usual build on Linux
/// has the items behind it: `#![all(tokio_unstable, …)]`.
pub(crate) fn is_left_out_body(attributes: &[Attribute]) -> bool {
    let is_elsewhere = |attribute: &Attribute| {
        let text = condition(attribute);
        attribute.path().is_ident("all") && ELSEWHERE.iter().any(|word| text.starts_with(word))
    };
    attributes.iter().any(is_elsewhere)
}

/// Returns the text in the parentheses of an attribute, without spaces.
fn condition(attribute: &Attribute) -> String {
    let Meta::List(list) = &attribute.meta else { return String::new() };
    list.tokens.to_string().split_whitespace().collect()
}
