//! The museum uses only public items of the laboratory: this program compiles the museum's files outside of
//! the crate. It is a program of its own, since the museum's files name the items by paths from the root.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub use lab::*;

#[path = "../src/museum/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "a program has no users")]
mod outside;

use outside::{Museum, Mutant};
use sim::Schedule;

/// Returns a schedule on `system` that names `mutant`.
fn naming(mutant: &str, system: &str) -> String {
    format!(
        r#"
about  = "A schedule that names a mutant"
system = "{system}"
ttl    = "2s"
mutant = "{mutant}"

[[worker]]
name = "a"
"#
    )
}

fn museum() -> Museum {
    Museum::new(Arm::Fenced)
}

#[test]
fn every_mutant_is_found_by_its_name() {
    for mutant in Mutant::ALL {
        assert_eq!(Mutant::named(mutant.name()), Some(*mutant));
    }
}

#[test]
fn a_schedule_may_name_a_mutant() {
    let schedule: Schedule<Options> = sim::sim::parse(&museum(), "x", &naming("blind-del", "redis")).unwrap();
    assert_eq!(schedule.options.mutant.as_deref(), Some("blind-del"));
}

#[test]
fn an_unknown_mutant_is_refused() {
    let refusal = |text: &str| sim::sim::parse(&museum(), "x", text).unwrap_err().to_string();
    let unknown = refusal(&naming("blind-dell", "redis"));
    assert!(
        unknown.starts_with("x:5: unknown mutant `blind-dell`: known are setnx-then-pexpire, "),
        "{unknown}"
    );
    assert_eq!(refusal(&naming("blind-del", "etcd")), "x:5: `blind-del` does not apply to `etcd`");

    let plain = sim::sim::parse(&Lab::new(Arm::Fenced), "x", &naming("blind-del", "redis")).unwrap_err();
    assert_eq!(plain.to_string(), "x:5: unknown mutant `blind-del`: the laboratory itself has none");
}
