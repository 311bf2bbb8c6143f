use super::*;

fn parsed(line: &str) -> Arguments {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    match parse(&words) {
        Ok(Request::Run(arguments)) => arguments,
        other => panic!("{line}: {other:?}"),
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn arguments_after_the_program_of_run_are_the_programs() {
    let arguments = parsed("sim run --bin server start --offline --target-dir x");
    assert!(!arguments.is_offline);
    assert_eq!(arguments.target_folder, None);
    assert_eq!(arguments.rest, words("--bin server start --offline --target-dir x"));
}

#[test]
fn arguments_after_the_filter_of_test_are_cargos() {
    let arguments = parsed("sim test filter --offline -- --locked");
    assert!(arguments.is_offline);
    assert!(!arguments.is_locked);
    assert_eq!(arguments.rest, words("filter -- --locked"));
}

#[test]
fn frozen_is_locked_and_offline() {
    let arguments = parsed("t --frozen");
    assert_eq!(arguments.command, "test");
    assert!(arguments.is_locked && arguments.is_offline);
    assert_eq!(arguments.rest, words(""));
}

#[test]
fn graph_has_features_in_all_forms() {
    let arguments = parsed("sim test -Fa --features=b -F c --all-features -p d --manifest-path e/Cargo.toml");
    assert_eq!(arguments.graph, words("-Fa --features=b -F c --all-features --manifest-path e/Cargo.toml"));
    assert!(arguments.rest.ends_with(&words("-p d --manifest-path e/Cargo.toml")));
}

#[test]
fn target_folder_is_not_passed_on() {
    for line in ["sim bench --target-dir x -j2", "sim bench -j2 --target-dir=x"] {
        let arguments = parsed(line);
        assert_eq!(arguments.target_folder, Some("x".into()));
        assert_eq!(arguments.rest, words("-j2"));
    }
}

#[test]
fn unknown_command_is_named() {
    let Err(Error::Message(message)) = parse(&words("sim build")) else { panic!("accepted") };
    assert!(message.contains("`build`") && message.contains("cargo sim test"), "{message}");
}

#[test]
fn help_anywhere_before_the_dashes_is_help() {
    assert_eq!(parse(&words("sim test --help")).unwrap(), Request::Help);
    assert_eq!(parsed("sim test -- --help").rest, words("-- --help"));
}
