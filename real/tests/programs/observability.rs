//! The dashboard and the alerts of `real/observability/`, against a live Prometheus: every query has data
//! from programs that run.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use dlock::event::Outcome;
use lab::serve::host_redis;
use real::servers::{Launch, Persistence, Process, Prometheus, Redis, Stage, ask_http, free_port};
use serde_json::Value;

use crate::eventually::eventually;
use crate::promql::{Selector, grouped_by, selectors};

/// The values of the label `outcome` that only the resource has.
const OF_RESOURCE: [&str; 8] =
    ["accepted", "repeated", "answered", "stale", "owner", "conflict", "fenced", "jump"];

fn files() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/observability"))
}

/// Returns the queries of the dashboard, with a value for each of Grafana's variables.
fn dashboard_queries() -> Vec<String> {
    let dashboard = fs::read_to_string(files().join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let filled = |query: &str| {
        let query = query.replace("$__rate_interval", "1m");
        query.replace("$system", ".*").replace("$resource_type", ".*")
    };
    queries.map(filled).inspect(|query| assert!(!query.contains('$'), "{query}")).collect()
}

/// Starts a program of this project and returns the port of its metrics, which it prints.
fn start(stage: &Stage, name: &str, program: &str, arguments: &[&str]) -> (Process, u16) {
    let launch = Launch::new(name, program, stage.directory()).args(arguments);
    let mut process = stage.spawn(&launch).unwrap();
    let port = eventually("its metrics are served", || {
        assert!(process.exited().is_none(), "{}", process.last_words());
        let log = fs::read_to_string(process.log()).unwrap();
        let line =
            log.lines().find(|line| line.starts_with("listening on ") || line.starts_with("metrics on "))?;
        line.trim_end_matches("/metrics").rsplit(':').next()?.parse().ok()
    });
    (process, port)
}

fn real(stage: &Stage, name: &str, arguments: &[&str]) -> (Process, u16) {
    start(stage, name, env!("CARGO_BIN_EXE_real"), arguments)
}

#[test]
fn rules_are_valid_and_fire_as_their_tests_demand() {
    let tool = Prometheus::tool().unwrap();
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts.test.yml"],
        ["check", "config", "prometheus.yml"],
    ] {
        let checked = Command::new(&tool).args(arguments).current_dir(files()).output().unwrap();
        let said = [&checked.stdout[..], &checked.stderr].concat();
        assert!(checked.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn every_query_has_data_from_live_programs() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = host_redis().unwrap();
    let of_simulated = simulated.metrics_address().port();
    let (_resource, resource) =
        real(&stage, "resource", &["resource", "--listen", "127.0.0.1:0", "--store", "memory"]);
    let (servers, at) = (redis.address(), format!("127.0.0.1:{resource}"));
    // Three contend for two locks. They hold them for longer than a TTL, and renew.
    let worker = ["worker", "--servers", &servers, "--resource", &at, "--contenders", "3", "--keys", "2"];
    let work = ["--ttl", "600ms", "--work", "1s", "--renew", "1h", "--rounds", "1000000"];
    let served = ["--metrics", "0"];
    let (_worker, worker) = real(&stage, "worker", &[&worker[..], &work, &served].concat());
    let servers = simulated.address().to_string();
    let load = ["contend", "--servers", &servers, "--rate", "20", "--for", "1h", "--work", "20ms"];
    let (_contend, contend) = real(&stage, "contend", &[&load[..], &served].concat());
    let run = ["chaos", "--system", "redis", "--for", "1h", "--every", "300ms", "--faults", "pause-worker"];
    let (_chaos, chaos) =
        real(&stage, "chaos", &[&run[..], &["--workers", "2", "--out", "out"], &served].concat());
    let targets = [resource, worker, contend, chaos, of_simulated].map(|port| format!("127.0.0.1:{port}"));
    let rules = files().join("alerts.yml");
    let prometheus = Prometheus::start(
        &stage,
        &format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\nscrape_configs: \
             [{{job_name: real, static_configs: [{{targets: {targets:?}}}]}}, {{job_name: children, \
             http_sd_configs: [{{url: 'http://127.0.0.1:{chaos}/targets', refresh_interval: 1s}}]}}]\n",
            rules.display(),
        ),
    )
    .unwrap();
    let has_data = |query: &str| !prometheus.query(query).unwrap().is_empty();
    // The workers of the long run, and its resource.
    for process in ["a", "b", "resource"] {
        eventually(process, || has_data(&format!("up{{process='{process}'}} == 1")).then_some(()));
    }
    for query in dashboard_queries() {
        eventually(&query, || has_data(&query).then_some(()));
        check_labels(&prometheus, &query);
    }
    let rules = eventually("all rules are evaluated", || rules_of(&prometheus));
    for alert in rules {
        check_labels(&prometheus, &alert);
    }
}

/// Returns the queries of all alerts, once each was evaluated.
fn rules_of(prometheus: &Prometheus) -> Option<Vec<String>> {
    let groups = prometheus.api("/api/v1/rules").unwrap();
    let groups = groups["groups"].as_array()?;
    let rules: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert!(rules.len() >= 10, "{rules:?}");
    let broken = rules.iter().find(|rule| rule["health"] == "err");
    assert_eq!(broken, None);
    let is_evaluated = rules.iter().all(|rule| rule["health"] == "ok");
    is_evaluated.then(|| rules.iter().map(|rule| rule["query"].as_str().unwrap().to_owned()).collect())
}

/// Checks that each metric in `query` has samples with the labels that the query uses.
fn check_labels(prometheus: &Prometheus, query: &str) {
    let all = selectors(query);
    assert!(!all.is_empty(), "no metric in {query}");
    let outcomes: BTreeSet<&str> = Outcome::ALL.map(Outcome::as_str).into_iter().chain(OF_RESOURCE).collect();
    for Selector { metric, matchers } in all {
        for (label, value) in &matchers {
            let is_known = value.split('|').all(|value| outcomes.contains(value));
            assert!(label != "outcome" || is_known, "{query}: outcome {value}");
        }
        let labels = matchers.into_iter().map(|(label, _)| label).chain(grouped_by(query));
        let present: Vec<_> = labels.map(|label| format!("{label}!=''")).collect();
        let with_labels = format!("{metric}{{{}}}", present.join(","));
        eventually(&with_labels, || (!prometheus.query(&with_labels).unwrap().is_empty()).then_some(()));
    }
}

#[test]
fn a_simulated_server_counts_its_connections_and_bytes() {
    let server = host_redis().unwrap();
    let metrics = server.metrics_address().port();
    let shows = |series: &str, value: u64| {
        eventually(series, || {
            let text = ask_http(metrics, "GET", "/metrics", "", "").unwrap();
            text.contains(&format!("\n{series}{{server=\"redis\"}} {value}\n")).then_some(())
        });
    };
    shows("sim_server_connections_total", 0);
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    client.read_exact(&mut [0; 7]).unwrap();
    shows("sim_server_open_connections", 1);
    shows("sim_server_received_bytes_total", 6);
    shows("sim_server_sent_bytes_total", 7);
    drop(client);
    shows("sim_server_open_connections", 0);
    shows("sim_server_connections_total", 1);
}

#[test]
fn every_long_running_command_can_serve_its_metrics() {
    for command in ["worker", "contend", "gen", "chaos", "peers", "experiment"] {
        let help = Command::new(env!("CARGO_BIN_EXE_real")).args([command, "--help"]).output().unwrap();
        assert!(String::from_utf8_lossy(&help.stdout).contains("--metrics <PORT>"), "{command}");
    }
}

#[test]
fn the_children_of_an_experiment_leave_its_port_alone() {
    let stage = Stage::new().unwrap();
    let port = free_port().unwrap();
    let variable = format!("DLOCK_METRICS={port}");
    let experiment = [&variable, env!("CARGO_BIN_EXE_real"), "experiment", "1", "--system", "redis"];
    let short = ["--ttl", "500ms", "--pause", "5s", "--out", "out.json"];
    let (mut process, served) = start(&stage, "experiment", "env", &[&experiment[..], &short].concat());
    assert_eq!(served, port);
    let metrics = ask_http(port, "GET", "/metrics", "", "").unwrap();
    assert!(metrics.contains(r#"real_info{command="experiment","#), "{metrics}");
    let elsewhere = ask_http(port, "GET", "/", "", "").unwrap();
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
    let status = eventually("it ends", || process.exited());
    assert!(status.success(), "{}", process.last_words());
}
