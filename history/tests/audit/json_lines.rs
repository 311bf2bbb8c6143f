use history::{
    ClockFault, Effect, Event, EventName, History, InstantFault, Kind, LinkFault, LookUpFault, Name, Nanos,
    Record, RecordError, RoleFault,
};
use proptest::prelude::*;

use crate::story::{acquired, entered, history};

fn parse(log: &str) -> Result<History, String> {
    History::parse_json_lines(log.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn an_event_is_written_as_one_json_line() {
    let mut line = Vec::new();
    history([(14, "a", acquired("a", 1))])[0].write_json(&mut line).unwrap();
    let expected = r#"{"at":14000000,"process":"a","event":"lease_acquired","resource_id_hash":"2f1a6b03c9de","owner_token_prefix":"a:7f3c9e12","fencing_token":1,"ttl_millis":2000,"valid_micros":1978000}"#;
    assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
}

#[test]
fn the_type_of_a_resource_is_kept_and_may_be_missing() {
    let old = r#"{"at":14,"process":"a","event":"lease_requested","resource_id_hash":"2f1a6b03c9de","owner_token_prefix":"a:7f3c9e12","ttl_millis":2000}"#;
    let new = old.replace(r#""resource_id_hash""#, r#""resource_type":"orders","resource_id_hash""#);
    for line in [old, &new] {
        let mut written = Vec::new();
        parse(line).unwrap().events[0].write_json(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap().trim_end(), line);
    }
}

#[test]
fn a_log_may_have_empty_lines_and_unknown_fields() {
    let log = "\n{\"at\":1,\"process\":\"a\",\"level\":\"INFO\",\"target\":\"fault\",\
               \"event\":\"fault_applied\",\"fault\":3,\"verb\":\"cut\",\
               \"effect\":{\"link\":{\"how\":\"cut\",\"links\":[[\"a\",\"b\"]]}},\"detail\":\"cut a\"}\n\n";
    let effect = Effect::links(LinkFault::Cut, [("a", "b")]);
    let detail = "cut a".into();
    let kind = Kind::FaultApplied { fault: 3, verb: "cut".into(), effect, until: None, detail };
    let event = Event { at: Nanos(1), process: "a".into(), kind };
    assert_eq!(parse(log).unwrap().events, [event]);
}

#[test]
fn errors_name_line_event_and_field() {
    let good = r#"{"at":5,"process":"a","event":"process_crashed"}"#;
    let error_after_good = |line: &str| parse(&format!("{good}\n\n{line}\n")).unwrap_err();
    assert_eq!(
        error_after_good(r#"{"at":6,"process":"a","event":"lease_stolen"}"#),
        "line 3: `lease_stolen` is no event that a history may hold"
    );
    assert_eq!(
        error_after_good(
            r#"{"at":6,"process":"a","event":"section_entered","resource_id_hash":"k","owner_token_prefix":"a"}"#
        ),
        "line 3: the event `section_entered` lacks its field `fencing_token`"
    );
    assert_eq!(
        error_after_good(r#"{"at":6,"process":"a"}"#),
        "line 3: the record has no field `event`, which names what happened"
    );
    assert_eq!(
        error_after_good(r#"{"at":4,"process":"a","event":"process_crashed"}"#),
        "line 3: its time 4 ns is before 5 ns, that of the line before it: sort the log by `at`"
    );
    assert!(error_after_good("{").starts_with("line 3: "));
    assert!(error_after_good(r#"{"process":"a","event":"process_crashed"}"#).contains("missing field `at`"));
}

#[test]
fn missing_fields_are_named_as_in_logs() {
    let missing = |record| match Kind::try_from(record) {
        Err(RecordError::Missing { event, field }) => (event, field),
        other => panic!("{other:?}"),
    };
    let mut record = Record::new(EventName::SectionEntered);
    assert_eq!(missing(record.clone()), (EventName::SectionEntered, "resource_id_hash"));
    record.key = Some("k".into());
    assert_eq!(missing(record), (EventName::SectionEntered, "owner_token_prefix"));
}

#[test]
fn every_event_is_found_by_its_name() {
    for event in EventName::ALL {
        assert_eq!(EventName::parse(event.as_str()), Some(*event));
        assert!(["dlock", "resource", "worker", "server", "fault"].contains(&event.target()));
    }
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof!["[a-z0-9:\"\\\\é\n]{0,12}", "[ -~]{20,40}"].prop_map(|text| Name::from(text.as_str()))
}

fn effect() -> impl Strategy<Value = Effect> {
    let links = prop::collection::vec((name(), name()), 0..3);
    prop_oneof![
        prop::sample::select(vec![Effect::Pause, Effect::Down]),
        prop::sample::select(RoleFault::ALL).prop_map(Effect::Role),
        prop::sample::select(InstantFault::ALL).prop_map(Effect::Instant),
        prop::sample::select(LookUpFault::ALL).prop_map(Effect::LookUps),
        (prop::sample::select(LinkFault::ALL), links)
            .prop_map(|(how, links)| Effect::Link { how, links: links.into() }),
        any::<i64>().prop_map(|by| Effect::Clock(ClockFault::StepNanos(by))),
        any::<u64>().prop_map(|rate| Effect::Clock(ClockFault::Rate(rate))),
    ]
}

prop_compose! {
    fn full_record()(
        event in prop::sample::select(EventName::ALL),
        names in prop::array::uniform8(name()),
        numbers in prop::array::uniform10(any::<u64>()),
        (effect, until) in (effect(), any::<u64>()),
        [permits, task, waiters, above] in prop::array::uniform4(any::<u64>()),
    ) -> Record {
        let mut record = Record::new(event);
        let [key, owner, outcome, client, step, verb, detail, body] = names.map(Some);
        (record.key, record.owner, record.outcome, record.client) = (key, owner, outcome, client);
        (record.step, record.verb, record.detail, record.body) = (step, verb, detail, body);
        let [token, seq, ttl, valid, position, seen, version, expected, fault, rate] = numbers.map(Some);
        (record.token, record.seq, record.ttl_millis, record.valid_micros) = (token, seq, ttl, valid);
        (record.position, record.seen) = (position, seen);
        (record.version, record.expected) = (version, expected);
        (record.fault, record.rate) = (fault, rate);
        (record.effect, record.until, record.permits) = (Some(effect), Some(until), Some(permits));
        (record.task, record.waiters_max, record.above) = (Some(task), Some(waiters), Some(above));
        record
    }
}

/// Draws an event with all its fields, or without the optional ones.
fn kind() -> impl Strategy<Value = Kind> {
    (full_record(), any::<bool>()).prop_map(|(full, sparse)| {
        let mut record = full.clone();
        if sparse {
            (record.outcome, record.body, record.seq, record.ttl_millis, record.valid_micros) =
                (None, None, None, None, None);
            record.until = None;
        }
        Kind::try_from(record).unwrap()
    })
}

proptest! {
    #[test]
    fn any_history_reads_back_as_it_was_written(
        mut events in prop::collection::vec((any::<u64>(), name(), kind()), 0..20),
    ) {
        events.sort_by_key(|(at, ..)| *at);
        let events: Vec<Event> =
            events.into_iter().map(|(at, process, kind)| Event { at: Nanos(at), process, kind }).collect();
        let mut log = Vec::new();
        for event in &events {
            event.write_json(&mut log).unwrap();
        }
        prop_assert_eq!(History::parse_json_lines(log.as_slice()).unwrap().events, events);
    }
}

#[test]
fn a_typed_event_keeps_the_fields_of_its_record() {
    let record = entered("a", 7).to_record();
    assert_eq!(record.event(), Ok(EventName::SectionEntered));
    assert_eq!((record.token, record.owner.unwrap().as_str()), (Some(7), "a:7f3c9e12"));
}
