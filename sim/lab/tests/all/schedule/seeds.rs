//! Every file of the corpus parses, has a description and expectations, and survives a round trip.

use std::collections::BTreeMap;
use std::path::Path;

use lab::museum::Museum;
use lab::{Arm, Options};
use sim::Schedule;

/// The scenarios that SCENARIOS requires for one Redis, with or without a replica.
const SCENARIOS: [&str; 15] = [
    "gc-pause",
    "check-then-write",
    "delayed-write",
    "token-order",
    "read-then-late-write",
    "get-then-del",
    "short-ttl-work",
    "renew-narrows",
    "sigkill-holder",
    "failover-lost-lock",
    "clean-restart",
    "resource-restart",
    "ambiguous-put",
    "ambiguous-acquire",
    "cancelled-acquire",
];

fn corpus() -> BTreeMap<String, Schedule<Options>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds");
    lab::corpus::load(&folder).unwrap_or_else(|error| panic!("{error}")).into_iter().collect()
}

#[test]
fn the_corpus_holds_every_scenario_of_one_redis() {
    let corpus = corpus();
    let missing: Vec<_> = SCENARIOS.into_iter().filter(|name| !corpus.contains_key(*name)).collect();
    assert!(missing.is_empty(), "seeds/ lacks {missing:?}");
}

#[test]
fn every_file_has_a_description_and_expectations() {
    for (name, schedule) in corpus() {
        assert!(
            schedule.about.len() > 40,
            "{name}: about = {:?} is too short for a stranger",
            schedule.about
        );
        assert!(!schedule.expect.is_empty(), "{name} expects nothing");
    }
}

#[test]
fn the_corpus_survives_a_round_trip() {
    for (name, schedule) in corpus() {
        let text = schedule.to_toml();
        assert_eq!(
            sim::sim::parse(&Museum::new(Arm::Fenced), &name, &text).unwrap(),
            schedule,
            "{name} became\n{text}"
        );
    }
}

#[test]
fn a_schedule_is_written_in_the_style_of_the_corpus() {
    let text = corpus()["gc-pause"].to_toml();
    for line in [
        r#"when = { process = "a", after = "entered" }"#,
        r#"what = { pause = "a", for = "5s" }"#,
        "[[worker]]",
        "[expect.unfenced]",
        r#"accepted = ["b:2", "a:1"]"#,
    ] {
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
}
