//! The messages of a run: recorded without changing it, read from the bytes, with what became of each.

mod bytes;
mod fates;
mod recorded;
mod words;

use std::path::Path;

use lab::Arm;
use lab::museum::{self, Museum};
use sim::Report;

/// Runs a schedule of `seeds/` and records its messages.
pub fn recorded(name: &str, arm: Arm) -> Report {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../seeds")).join(format!("{name}.toml"));
    let schedule = museum::load(&path).unwrap();
    sim::sim::build(&Museum::new(arm), &schedule).unwrap().record_messages().run().unwrap()
}

/// Formats all messages for a person, a line for each.
fn page(report: &Report) -> String {
    let lines = report.messages.iter().map(|message| {
        let arrow = if message.is_reply { "⇠" } else { "→" };
        let (sent, from, to) = (message.sent, &message.from, &message.to);
        format!("{sent:>8} {from:>10} {arrow} {to:<10} {}   {:?}\n", message.words, message.fate)
    });
    lines.collect()
}
