//! The servers in Docker: their versions are pinned, they are open on this machine only, and docs/live.md
//! names them beside the versions on which the tests run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

#[derive(Deserialize)]
struct Compose {
    services: BTreeMap<String, Service>,
}

#[derive(Deserialize)]
struct Service {
    image: String,
    ports: Vec<String>,
}

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn compose() -> Compose {
    let text = std::fs::read_to_string(root("real/compose.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Returns the version that an image names, without what follows it (`-alpine`).
fn version(image: &str) -> &str {
    let tag = image.rsplit_once(':').map(|(_, tag)| tag).unwrap_or_default();
    tag.trim_start_matches('v').split('-').next().unwrap_or_default()
}

/// Returns the rows of the table of versions: server, version in Docker, version of the tests.
fn rows() -> Vec<[String; 3]> {
    let page = std::fs::read_to_string(root("docs/live.md")).unwrap();
    let table = page.split_once("| server | in Docker |").unwrap().1;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    lines.map(|line| [1, 2, 3].map(|number| cells(line)[number].clone())).collect()
}

/// Runs a shell command and returns what it prints.
fn printed(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let [told, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{command}: {told}{errors}");
    told
}

#[test]
fn every_image_is_pinned_and_open_on_this_machine_only() {
    let services = compose().services;
    assert!(services.len() >= 5, "{:?}", services.keys());
    for (name, Service { image, ports }) in services {
        let numbers: Vec<_> = version(&image).split('.').collect();
        let is_exact = numbers.len() >= 2 && numbers.iter().all(|number| number.parse::<u32>().is_ok());
        assert!(is_exact, "{name}: {image}");
        assert!(
            !ports.is_empty() && ports.iter().all(|port| port.starts_with("127.0.0.1:")),
            "{name}: {ports:?}"
        );
    }
}

#[test]
fn the_page_names_the_pinned_versions() {
    let services = compose().services;
    let pinned: Vec<_> = [("Redis", "redis"), ("etcd", "etcd-1"), ("ZooKeeper", "zookeeper")]
        .into_iter()
        .chain([("PostgreSQL", "postgres")])
        .map(|(server, service)| (server.to_owned(), version(&services[service].image).to_owned()))
        .collect();
    let named: Vec<_> = rows().into_iter().map(|[server, docker, _]| (server, docker)).collect();
    assert_eq!(named, pinned);
    // All of one kind have one version.
    for (name, service) in &services {
        let kind = name.split('-').next().unwrap().replace("redlock", "redis");
        let (_, expected) =
            pinned.iter().find(|(server, _)| server.to_lowercase().starts_with(&kind)).unwrap();
        assert_eq!(version(&service.image), expected, "{name}");
    }
}

#[test]
fn the_page_names_the_versions_of_the_tests() {
    let installed = [
        ("Redis", "redis-server --version | sed 's/.*v=\\([0-9.]*\\).*/\\1/'"),
        ("etcd", "etcd --version | sed -n 's/^etcd Version: //p'"),
        ("ZooKeeper", "dpkg-query --show --showformat='${Version}' libzookeeper-java | sed 's/-.*//'"),
        ("PostgreSQL", "dpkg-query --show --showformat='${Version}' postgresql-15 | sed 's/-.*//'"),
    ];
    let rows = rows();
    assert_eq!(rows.len(), installed.len());
    for ([server, _, tested], (name, command)) in rows.iter().zip(installed) {
        assert_eq!(server, name);
        // A security update of Debian moves the last number alone.
        let series = |version: &str| version.rsplit_once('.').map(|(series, _)| series.to_owned());
        assert_eq!(series(tested), series(printed(command).trim()), "{server}: {tested}");
    }
}

/// Where Docker is, the servers of the file start, and `real` works with them. Elsewhere there is nothing to
/// start.
#[test]
fn the_servers_start_where_docker_is() {
    let works = |arguments: &[&str]| {
        let mut docker = Command::new("docker");
        docker.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        docker.status().is_ok_and(|status| status.success())
    };
    // A client without an engine starts nothing.
    if !(works(&["compose", "version"]) && works(&["info"])) {
        return;
    }
    let file = root("real/compose.yaml");
    let file = file.display();
    printed(&format!("docker compose -f {file} -p dlock-test up --wait"));
    let real = env!("CARGO_BIN_EXE_real");
    let load = format!(
        "{real} contend --system redis --servers 127.0.0.1:6379 --rate 5 --for 2s && \
         {real} contend --system etcd --servers 127.0.0.1:2379,127.0.0.1:2381,127.0.0.1:2383 --rate 5 --for 2s && \
         {real} contend --system zookeeper --servers 127.0.0.1:2181 --rate 5 --for 2s"
    );
    let worked = Command::new("bash").args(["-c", &load]).output().unwrap();
    printed(&format!("docker compose -f {file} -p dlock-test down --volumes"));
    assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
}
