//! A schedule as TOML again, in the shape in which a person would write it: a line a fault's half.

use serde::Serialize;

use super::{Etcd, Network, Outcome, Redis, Resource, Schedule};

impl Schedule {
    /// The schedule as TOML. [`Schedule::parse`] reads it back as an equal one.
    pub fn to_toml(&self) -> String {
        let mut text = self.head();
        self.write_cluster(&mut text);
        for worker in &self.workers {
            section(&mut text, "[[worker]]", worker);
        }
        for fault in &self.faults {
            text.push_str("\n[[fault]]\n");
            field(&mut text, "when", &fault.when);
            field(&mut text, "what", &&*fault.what);
        }
        self.write_expect(&mut text);
        text
    }

    fn head(&self) -> String {
        let mut text = String::new();
        field(&mut text, "about", &self.about);
        field(&mut text, "system", &self.system);
        if self.seed != 0 {
            field(&mut text, "seed", &self.seed);
        }
        field(&mut text, "ttl", &self.ttl);
        if let Some(margin) = &self.drift_margin {
            field(&mut text, "drift_margin", margin);
        }
        field(&mut text, "keys", &self.keys);
        field(&mut text, "limit", &self.limit);
        if let Some(within) = &self.within {
            field(&mut text, "within", within);
        }
        if let Some(mutant) = &self.mutant {
            field(&mut text, "mutant", mutant);
        }
        text
    }

    fn write_cluster(&self, text: &mut String) {
        if self.network != Network::default() {
            text.push_str("\n[network]\n");
            field(text, "latency", &self.network.latency);
        }
        if self.redis != Redis::default() {
            section(text, "[redis]", &self.redis);
        }
        if self.etcd != Etcd::default() {
            section(text, "[etcd]", &self.etcd);
        }
        if self.resource != Resource::default() {
            section(text, "[resource]", &self.resource);
        }
    }

    fn write_expect(&self, text: &mut String) {
        let mut arm = |header: &str, outcome: &Option<Outcome>| {
            if let Some(outcome) = outcome {
                section(text, header, outcome);
            }
        };
        arm("[expect.unfenced]", &self.expect.unfenced);
        arm("[expect.fenced]", &self.expect.fenced);
    }
}

/// A header and a table without tables in it.
fn section<T: Serialize>(text: &mut String, header: &str, table: &T) {
    text.push('\n');
    text.push_str(header);
    text.push('\n');
    text.push_str(&written(toml::to_string(table)));
}

/// A key and its value on one line.
fn field<T: Serialize>(text: &mut String, key: &str, value: &T) {
    let mut line = String::new();
    written(value.serialize(toml::ser::ValueSerializer::new(&mut line)));
    text.push_str(key);
    text.push_str(" = ");
    text.push_str(&line);
    text.push('\n');
}

/// A schedule holds strings, numbers, lists and tables with names for keys: TOML has all of them.
#[expect(
    clippy::expect_used,
    reason = "the schema makes it impossible, and no caller could do anything about it"
)]
fn written<T>(result: Result<T, toml::ser::Error>) -> T {
    result.expect("a schedule is TOML")
}
