//! Follows docs/runbook.md: runs each of its commands on live servers in the state that the page assumes, and
//! compares what they print.
//!
//! A comment before a block of the page says what it is: `given: …` brings the servers into a state, `run`
//! (with an exit code other than 0) holds commands, `prints` their whole output. What differs from run to run
//! is masked on both sides: see `masked`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use real::servers::Stage;

use crate::holders::{Crowd, Servers};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/runbook.md");

const LONG: Duration = Duration::from_secs(600);

enum Part {
    Given(String),
    Run { commands: String, code: i32 },
    Prints(String),
}

/// Returns the parts of the page. Every block of code must have a mark.
fn parts() -> Vec<Part> {
    let page = fs::read_to_string(PAGE).unwrap();
    let (mut parts, mut lines, mut mark) = (Vec::new(), page.lines(), None);
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            match comment.strip_prefix("given: ") {
                Some(given) => parts.push(Part::Given(given.to_owned())),
                None => mark = Some(comment),
            }
        } else if line.starts_with("```") {
            let block: String =
                lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
            parts.push(match mark.take().unwrap_or_else(|| panic!("no mark before:\n{block}")) {
                "prints" => Part::Prints(block),
                run => {
                    let code = run.strip_prefix("run").unwrap_or_else(|| panic!("unknown mark {run:?}"));
                    let code = code.strip_prefix(": ").map_or(0, |code| code.parse().unwrap());
                    Part::Run { commands: block, code }
                }
            });
        }
    }
    parts
}

/// Brings servers, holders and the resource into the state that the page assumes.
fn given(stage: &Stage, state: &str) -> Crowd {
    let (system, state) = state.split_once(", ").unwrap();
    let mut crowd = Crowd::new(stage, Servers::start(stage, system));
    match state {
        "a holder that renews and a waiter" => {
            let token = crowd.living("worker-4", Duration::from_secs(30));
            crowd.write(token, "paid");
            crowd.waiting("worker-5", Duration::from_secs(30));
        }
        "a dead holder with a second left" => {
            let token = crowd.dead("worker-4", Duration::from_secs(1));
            crowd.write(token, "paid");
        }
        "a dead holder" => {
            let token = crowd.dead("worker-4", LONG);
            crowd.write(token, "paid");
        }
        "a new holder has written and the old one tries to" => {
            let token = crowd.dead("worker-5", LONG);
            crowd.write(token + 1, "paid");
            let refused = crowd.put(token, "late");
            assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
        }
        "it has lost its data" => {
            crowd.write(41, "paid");
            assert_eq!(crowd.dead("worker-5", LONG), 1);
        }
        "it was restored from a backup" => {
            crowd.write(41, "paid");
            assert!(crowd.dead("worker-5", LONG) < 41);
        }
        "one server is down and the holder is dead" => {
            // Before the acquire: the others then have a vote and a counter each.
            crowd.servers.kill(2);
            let token = crowd.dead("worker-4", LONG);
            crowd.write(token, "paid");
        }
        "a dead holder and a waiter" => {
            let token = crowd.dead("worker-4", LONG);
            crowd.write(token, "paid");
            crowd.waiting("worker-5", Duration::from_secs(60));
        }
        state => panic!("unknown state {state:?}"),
    }
    crowd
}

/// Runs commands in a shell; returns the exit code of the last one, and the output with the addresses of the
/// page.
fn run(stage: &Stage, crowd: &Crowd, commands: &str) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_real")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let addresses = crowd.addresses();
    let real = |text: String, (page, real): &(String, String)| text.replace(page, real);
    let commands = addresses.iter().fold(commands.to_owned(), real);
    // The last command decides, in a pipe the first that fails.
    let mut shell = Command::new("bash");
    shell.args(["-uo", "pipefail", "-c", &format!("exec 2>&1\n{commands}")]).current_dir(stage.directory());
    let output = shell.env("PATH", path).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let page = |text: String, (page, real): &(String, String)| text.replace(real, page);
    (output.status.code(), addresses.iter().fold(printed, page))
}

#[test]
fn each_command_of_the_runbook_prints_what_the_page_shows() {
    let stages = [(); 13].map(|()| Stage::new().unwrap());
    let mut free = stages.iter();
    let mut now: Option<(&Stage, Crowd)> = None;
    let (mut exports, mut printed, mut compared) = (String::new(), String::new(), 0);
    for part in parts() {
        match part {
            Part::Given(state) => {
                drop(now.take());
                let stage = free.next().expect("a stage for each state");
                now = Some((stage, given(stage, &state)));
            }
            Part::Run { commands, code } => {
                let (stage, crowd) = now.as_ref().expect("a state before the first command");
                let is_export = |line: &&str| line.starts_with("export ");
                let lines: Vec<_> = commands.lines().filter(is_export).collect();
                if !lines.is_empty() {
                    exports = lines.join("\n");
                }
                let (exited, output) = run(stage, crowd, &format!("{exports}\n{commands}"));
                assert_eq!(exited, Some(code), "{commands}\n{output}");
                printed = output;
            }
            Part::Prints(expected) => {
                assert_eq!(masked(&printed), masked(&expected), "printed:\n{printed}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 14, "the page has lost its outputs: {compared} are left");
}

/// Replaces what differs from run to run: times, dates, users, digits of tokens and sessions, the numbers of
/// clusters, client ports, and the width of columns. Long lines may be broken on the page.
fn masked(text: &str) -> String {
    let is_cluster = text.contains(" on etcd") || text.contains(" on zookeeper");
    let words = text.split_whitespace().map(|word| mask(word, is_cluster));
    words.collect::<Vec<_>>().join(" ")
}

fn mask(word: &str, is_cluster: bool) -> String {
    if word.starts_with("{\"at\":\"20") {
        return "{\"at\":\"TIME\"".to_owned();
    }
    if word.starts_with("\"who\":\"") {
        return "\"who\":\"USER@HOST\"".to_owned();
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if word.split_once('.').is_some_and(|(whole, tenths)| is_number(whole) && is_number(tenths)) {
        return "N.N".to_owned();
    }
    // Longer ones are sessions: hexadecimal, and some have no letter.
    let number = word.trim_end_matches([',', ':', '.']);
    if is_cluster && number.len() < 8 && is_number(number) {
        return "N".to_owned();
    }
    let mut rest = word.to_owned();
    if let Some((host, port)) = word.split_once("127.0.0.1:").filter(|(_, port)| port.len() >= 5) {
        rest = format!("{host}127.0.0.1:{}", port.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    hex_masked(&rest)
}

/// Replaces runs of eight and more hexadecimal digits.
fn hex_masked(word: &str) -> String {
    let (mut masked, mut run) = (String::new(), String::new());
    for character in word.chars().chain(['\0']) {
        if character.is_ascii_digit() || ('a'..='f').contains(&character) {
            run.push(character);
            continue;
        }
        masked.push_str(if run.len() >= 8 { "HEX" } else { &run });
        run.clear();
        masked.extend(Some(character).filter(|character| *character != '\0'));
    }
    masked
}

#[test]
fn the_whole_audit_record_precedes_the_deletion() {
    let stage = Stage::new().unwrap();
    let crowd = given(&stage, "redis, a dead holder");
    let exports = crowd.exports();
    let (code, output) =
        run(&stage, &crowd, &format!("{exports}\nreal clear orders:42 --watch 1s --yes --audit a.jsonl"));
    assert_eq!(code, Some(0), "{output}");
    let log = fs::read_to_string(stage.directory().join("a.jsonl")).unwrap();
    let records: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2, "{log}");
    assert_eq!((&records[0]["stage"], &records[1]["stage"]), (&"before".into(), &"after".into()));
    let lease = &records[0]["found"]["servers"][0]["read"]["lease"];
    assert!(lease["owner"].as_str().unwrap().starts_with("worker-4:"), "{log}");
    assert!(lease["left_ms"].as_u64().unwrap() > 0, "{log}");
    assert_eq!(records[0]["watched"], "silent");
    assert_eq!(records[1]["outcome"][0]["outcome"], "done");
    // Nothing in it releases a lock.
    assert!(!log.contains(&crowd.tokens[0]), "{log}");
}

#[test]
fn without_a_record_nothing_is_cleared() {
    let stage = Stage::new().unwrap();
    let crowd = given(&stage, "redis, a dead holder");
    let exports = crowd.exports();
    let clear = "real clear orders:42 --watch 1s --yes --audit /no/such/folder/a.jsonl";
    let (code, output) = run(&stage, &crowd, &format!("{exports}\n{clear}"));
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("nothing is changed without a record"), "{output}");
    let (_, output) = run(&stage, &crowd, &format!("{exports}\nreal inspect orders:42"));
    assert!(output.contains("worker-4:"), "{output}");
}

#[test]
fn clear_asks_and_takes_only_yes() {
    let stage = Stage::new().unwrap();
    let crowd = given(&stage, "redis, a dead holder");
    let clear = |answer: &str| {
        let commands = format!("{}\necho {answer} | real clear orders:42 --watch 1s", crowd.exports());
        run(&stage, &crowd, &commands)
    };
    let (code, output) = clear("y");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("(it does not renew)? Type yes: Nothing is cleared."), "{output}");
    assert!(!stage.directory().join("dlock-audit.jsonl").exists(), "nothing was recorded");
    let (code, output) = clear("yes");
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_lease_that_ends_before_the_answer_is_not_cleared() {
    for system in ["redis", "zookeeper"] {
        let stage = Stage::new().unwrap();
        let mut crowd = Crowd::new(&stage, Servers::start(&stage, system));
        crowd.dead("worker-4", Duration::from_secs(5));
        // Longer than the session of the command at ZooKeeper, too, which must live on meanwhile.
        let commands = "(sleep 12; echo yes) | real clear orders:42 --watch 100ms";
        let (code, output) = run(&stage, &crowd, &format!("{}\n{commands}", crowd.exports()));
        assert_eq!(code, Some(0), "{system}: {output}");
        assert!(output.contains("Nothing to clear"), "{system}: {output}");
        assert!(!stage.directory().join("dlock-audit.jsonl").exists(), "nothing was recorded");
    }
}

#[test]
fn a_holder_that_renews_is_cleared_only_by_force() {
    for system in ["redis", "redlock", "etcd", "zookeeper"] {
        let stage = Stage::new().unwrap();
        let mut crowd = Crowd::new(&stage, Servers::start(&stage, system));
        // Long enough for a holder that gets no processor for a while.
        crowd.living("worker-4", Duration::from_secs(30));
        let clear = |flags: &str| {
            // Longer than any interval of renewals: the watch ends with the first one.
            let clear = format!("real clear orders:42 --watch 1m --yes {flags}");
            run(&stage, &crowd, &format!("{}\n{clear}", crowd.exports()))
        };
        let (code, output) = clear("");
        assert_eq!(code, Some(1), "{system}: {output}");
        assert!(output.contains("has renewed after"), "{system}: {output}");
        let (code, output) = clear("--force");
        assert_eq!(code, Some(0), "{system}: {output}");
        assert!(output.contains("cleared: "), "{system}: {output}");
        let (_, output) = run(&stage, &crowd, &format!("{}\nreal inspect orders:42", crowd.exports()));
        assert!(output.contains("free"), "{system}: {output}");
    }
}

#[test]
fn writes_go_on_after_a_lost_counter_is_raised() {
    let stage = Stage::new().unwrap();
    for system in ["redis", "redlock"] {
        let stage_of = Stage::new().unwrap();
        let mut crowd = Crowd::new(&stage_of, Servers::start(&stage_of, system));
        let work = format!("{}\nreal worker --key orders --work 0 --ttl 30s --rounds ", crowd.exports());
        let (code, output) = run(&stage, &crowd, &format!("{work}5"));
        assert_eq!(code, Some(0), "{output}");
        crowd.servers.lose_data();
        let inspect = format!("{}\nreal inspect orders:0 --json", crowd.exports());
        // Every grant is refused, as long as the counter has not caught up.
        let (code, output) = run(&stage, &crowd, &format!("{work}2"));
        assert_eq!(code, Some(1), "{system}: {output}");
        assert!(output.contains("2 of 2 writes failed"), "{system}: {output}");
        let (code, output) = run(&stage, &crowd, &inspect);
        assert_eq!(code, Some(1), "{system}: {output}");
        let report: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!(report["findings"][0]["kind"], "counter_behind", "{output}");
        assert_eq!(report["findings"][0]["seen"], 5, "{output}");
        let (code, output) = run(&stage, &crowd, &format!("{}\nreal raise orders:0", crowd.exports()));
        assert_eq!(code, Some(0), "{system}: {output}");
        let (code, output) = run(&stage, &crowd, &inspect);
        assert_eq!(code, Some(0), "{system}: {output}");
        let (code, output) = run(&stage, &crowd, &format!("{work}2"));
        assert_eq!(code, Some(0), "{system}: {output}");
        assert!(output.contains("token 7: written; released"), "{system}: {output}");
    }
}

#[test]
fn a_raise_tells_which_servers_failed() {
    let stage = Stage::new().unwrap();
    let mut crowd = Crowd::new(&stage, Servers::start(&stage, "redlock"));
    crowd.servers.kill(2);
    let raise = format!("{}\nreal raise orders:42 --to 9", crowd.exports());
    let (code, output) = run(&stage, &crowd, &raise);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("raised: 127.0.0.1:7001: from none to 9"), "{output}");
    assert!(output.contains("failed: 127.0.0.1:7003"), "{output}");
    assert!(output.contains("1 of 3 servers failed: a majority has the counter"), "{output}");
    let (code, output) = run(&stage, &crowd, &raise.replace("--to 9", "--to 8"));
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("unchanged: 127.0.0.1:7001: it is at 9 already"), "{output}");
}

#[test]
fn a_hashed_key_is_inspected_by_its_name() {
    let stage = Stage::new().unwrap();
    let mut crowd = Crowd::new(&stage, Servers::start(&stage, "redis"));
    crowd.key = dlock::LockKey::sensitive(None, "orders", "jane@example.org").unwrap();
    crowd.dead("worker-4", LONG);
    let inspect = format!("{}\nreal inspect '{}'", crowd.exports(), crowd.key.name());
    let (code, output) = run(&stage, &crowd, &inspect);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("worker-4:") && output.contains("orders:#"), "{output}");
}

#[test]
fn a_prefix_of_several_owners_is_refused() {
    let stage = Stage::new().unwrap();
    let crowd = given(&stage, "etcd, a dead holder and a waiter");
    let clear = "real clear orders:42 --watch 1s --yes --owner worker-";
    let (code, output) = run(&stage, &crowd, &format!("{}\n{clear}", crowd.exports()));
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("give one of worker-4:"), "{output}");
}

#[test]
fn servers_that_do_not_answer_and_wrong_input_exit_with_2() {
    let real = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_real")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (arguments, problem) in [
        (&["inspect", "orders:42", "--servers", "127.0.0.1:1"][..], "127.0.0.1:1 can't be read"),
        (&["inspect", "orders", "--servers", "127.0.0.1:1"], "write TYPE:ID"),
        (&["inspect", "orders:42", "--servers", "a:1,b:2"], "--system redlock"),
        (&["raise", "orders:42", "--system", "zookeeper"], "zxid"),
        (&["inspect", "orders:42", "--servers", "127.0.0.1:1", "--user", "app"], "DLOCK_PASSWORD"),
    ] {
        let (code, error) = real(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(problem), "{arguments:?}: {error}");
    }
}
