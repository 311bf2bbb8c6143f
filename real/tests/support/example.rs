//! An example of a published crate, run by the command in its first lines: program, features and arguments
//! come from there. Only the addresses of standard ports are replaced, by those of the test's own servers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// Each scheme of a URL with its standard port. `http` is also the port on which a program listens.
const STANDARD_PORTS: [(&str, &str); 4] =
    [("redis", "6379"), ("etcd", "2379"), ("zookeeper", "2181"), ("http", "8080")];

/// The hosts that stand for a server of the reader's own.
const HOSTS: [&str; 6] = ["127.0.0.1", "localhost", "HOST", "one", "two", "three"];

/// Servers of the test that take the place of those at a standard port.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    scheme: &'static str,
    addresses: Vec<String>,
}

impl Server {
    /// Takes `host:port` for the schemes of [`STANDARD_PORTS`], and the whole URL of a database.
    pub(crate) fn new(scheme: &'static str, addresses: impl IntoIterator<Item = String>) -> Self {
        Self { scheme, addresses: addresses.into_iter().collect() }
    }

    /// Puts these servers into the argument; `None` if it names other ones.
    fn replace(&self, argument: &str) -> Option<String> {
        let Some((_, port)) = STANDARD_PORTS.iter().find(|(scheme, _)| *scheme == self.scheme) else {
            let database = format!("{}://USER@HOST/DB", self.scheme);
            return (argument == database).then(|| self.addresses.concat());
        };
        let (scheme, rest) = match argument.split_once("://") {
            Some((scheme, rest)) if scheme == self.scheme => (format!("{scheme}://"), rest),
            Some(_) => return None,
            None => (String::new(), argument),
        };
        let (hosts, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, hosts) = hosts.split_at(hosts.rfind('@').map_or(0, |at| at + 1));
        let hosts: Vec<_> = hosts.split(',').collect();
        // A URL without a port means the standard one.
        let is_standard = |host: &&str| match host.split_once(':') {
            Some((name, given)) => HOSTS.contains(&name) && given == *port,
            None => HOSTS.contains(host) && !scheme.is_empty(),
        };
        let fits = hosts.len() == self.addresses.len() && hosts.iter().all(is_standard);
        fits.then(|| format!("{scheme}{user}{}{path}", self.addresses.join(",")))
    }
}

/// An example, and the arguments of its command.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    name: String,
    /// Its first doc comment, as one line.
    comment: String,
    arguments: Vec<String>,
}

impl Example {
    /// Reads an example of the crate in `folder`. The command must work there, with the crate's features.
    pub(crate) fn read(folder: &str, name: &str) -> Self {
        let folder = crate_folder(folder);
        let source = fs::read_to_string(folder.join("examples").join(name).with_extension("rs")).unwrap();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        Self::parse(name, &source, &manifest).unwrap_or_else(|error| panic!("examples/{name}.rs: {error}"))
    }

    fn parse(name: &str, source: &str, manifest: &Table) -> Result<Self, String> {
        let lines = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        let comment = lines.collect::<Vec<_>>().join(" ");
        let mut example = Self { name: name.to_owned(), comment, arguments: Vec::new() };
        let commands = example.code("cargo run");
        let mut runs_it = commands.iter().filter(|words| words.iter().any(|word| word == "--example"));
        let (Some(words), None) = (runs_it.next(), runs_it.next()) else {
            return Err("its first lines need one command `cargo run --example …`".to_owned());
        };
        let run = CargoRun::parse(&words[2..])?;
        if run.example != name {
            return Err(format!("its command runs the example {:?}", run.example));
        }
        run.check(manifest)?;
        example.arguments = run.arguments;
        Ok(example)
    }

    /// Returns the words of each piece of code in the first lines that begins with `start`.
    pub(crate) fn code(&self, start: &str) -> Vec<Vec<String>> {
        let pieces = self.comment.split('`').skip(1).step_by(2).filter(|code| code.starts_with(start));
        pieces.map(|code| code.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Fails the test unless the first lines say `words`: something that the test does beyond the command.
    pub(crate) fn expect(&self, words: &str) {
        assert!(self.comment.contains(words), "{} does not say {words:?}: {}", self.name, self.comment);
    }

    /// Returns the built program with the arguments of its command, on `servers`. Each of them must be named
    /// there: an argument that is left out would mean a server at a standard port.
    pub(crate) fn command(&self, servers: &[Server]) -> Command {
        let arguments =
            replace_all(&self.arguments, servers).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut command = Command::new(self.program());
        command.args(arguments);
        command
    }

    /// Runs the example to its end, with `more` arguments after those of its command; returns all that it
    /// printed.
    pub(crate) fn run(&self, servers: &[Server], more: &[&str]) -> String {
        let output = self.command(servers).args(more).output().unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{}: {printed}", self.name);
        printed
    }

    /// Returns the program, which `cargo test --workspace` has built.
    fn program(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_BIN_EXE_real")).parent().unwrap().join("examples");
        let program = folder.join(&self.name);
        assert!(
            program.exists(),
            "{} is missing: run `cargo build --workspace --examples`",
            program.display()
        );
        program
    }
}

/// Fails the test unless the calls `function("NAME")` in `tests`, the source of a test, name exactly the
/// examples of the crate in `folder`.
pub(crate) fn assert_runs_all(tests: &str, function: &str, folder: &str) {
    let called: BTreeSet<_> = tests
        .split(&format!("{function}(\""))
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect();
    let files = fs::read_dir(crate_folder(folder).join("examples")).unwrap();
    let paths = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some());
    let examples = paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(called, examples, "left: the tests run these; right: these are in {folder}/examples");
}

fn crate_folder(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder)
}

/// Puts the servers into the arguments; fails if an argument has none of them, or a server no argument.
fn replace_all(arguments: &[String], servers: &[Server]) -> Result<Vec<String>, String> {
    let mut unused: BTreeSet<_> = (0..servers.len()).collect();
    let replaced = arguments.iter().map(|argument| {
        let found = servers.iter().enumerate().find_map(|(at, server)| Some((at, server.replace(argument)?)));
        let (at, text) = found.ok_or_else(|| format!("no server of the test is for {argument:?}"))?;
        unused.remove(&at);
        Ok(text)
    });
    let replaced = replaced.collect::<Result<_, String>>()?;
    match unused.first() {
        Some(at) => Err(format!("no argument of its command names a server of {:?}", servers[*at].scheme)),
        None => Ok(replaced),
    }
}

/// The arguments of `cargo run` in a first line.
#[derive(Default)]
struct CargoRun {
    example: String,
    features: Vec<String>,
    all_features: bool,
    /// The arguments of the program.
    arguments: Vec<String>,
}

impl CargoRun {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut run = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} has no value"));
            match word.as_str() {
                "--example" => run.example.clone_from(value()?),
                "--features" => run.features.extend(value()?.split(',').map(str::to_owned)),
                "--all-features" => run.all_features = true,
                "--" => break,
                other => return Err(format!("the test does not know {other:?} in its command")),
            }
        }
        run.arguments = words.cloned().collect();
        Ok(run)
    }

    /// Checks that its features exist, and enable those that the manifest requires for the example.
    fn check(&self, manifest: &Table) -> Result<(), String> {
        let features = manifest.get("features").and_then(Value::as_table).cloned().unwrap_or_default();
        if let Some(unknown) = self.features.iter().find(|name| !features.contains_key(*name)) {
            return Err(format!("its command names the feature {unknown:?}, which the crate does not have"));
        }
        let enabled = match self.all_features {
            true => features.keys().cloned().collect(),
            false => enabled(&features, &self.features),
        };
        let examples = manifest.get("example").and_then(Value::as_array).into_iter().flatten();
        let own = examples.filter(|table| table.get("name").and_then(Value::as_str) == Some(&self.example));
        for required in own.flat_map(|table| strings(table.get("required-features"))) {
            if !enabled.contains(&required) {
                return Err(format!("its command lacks `--features {required}`, which Cargo.toml requires"));
            }
        }
        Ok(())
    }
}

/// Returns the features that the default ones and `named` enable, themselves included.
fn enabled(features: &Table, named: &[String]) -> BTreeSet<String> {
    let mut enabled = BTreeSet::new();
    let mut left = [&["default".to_owned()], named].concat();
    while let Some(feature) = left.pop() {
        // `dep:redis` and `tokio/rt` are no features of this crate.
        left.extend(strings(features.get(&feature)).filter(|name| features.contains_key(name)));
        enabled.insert(feature);
    }
    enabled
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = String> + '_ {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

/// Each mistake in the first lines is found.
mod mistakes {
    use super::{Example, Server, replace_all};

    const MANIFEST: &str = r#"
        [features]
        default = ["tls"]
        tls = []
        redis = ["dep:redis"]
        both = ["redis", "tokio/rt"]

        [[example]]
        name = "report"
        required-features = ["redis", "tls"]
    "#;

    /// Returns the arguments of the command in a comment.
    fn arguments(comment: &str) -> Result<Vec<String>, String> {
        let source =
            format!("//! A report.\n//!\n//! {comment}\n\n//! Not the first comment.\nfn main() {{}}\n");
        let manifest = MANIFEST.parse().unwrap();
        Example::parse("report", &source, &manifest).map(|example| example.arguments)
    }

    #[test]
    fn a_command_that_does_not_run_the_example_is_refused() {
        for (comment, error) in [
            ("Run it.", "need one command"),
            ("Run `cargo run --example`.", "--example has no value"),
            ("Run `cargo run --example a` or `cargo run --example b`.", "need one command"),
            ("Run `cargo run --example other --features redis`.", "runs the example \"other\""),
            ("Run `cargo run --example report`.", "lacks `--features redis`"),
            ("Run `cargo run --example report --features etcd`.", "does not have"),
            ("Run `cargo run --release --example report`.", "does not know \"--release\""),
        ] {
            let found = arguments(comment).unwrap_err();
            assert!(found.contains(error), "{comment} {found}");
        }
    }

    #[test]
    fn features_enable_other_features() {
        for features in ["--features redis", "--features both", "--all-features"] {
            let comment = format!("Run `cargo run {features} --example\n//! report -- a --b`, twice.");
            assert_eq!(arguments(&comment).unwrap(), ["a", "--b"], "{features}");
        }
    }

    #[test]
    fn addresses_of_standard_ports_are_replaced() {
        let addresses = ["h:1", "h:2", "h:3"].map(str::to_owned);
        let servers = [
            Server::new("redis", addresses),
            Server::new("zookeeper", ["z:1".to_owned()]),
            Server::new("http", ["w:0".to_owned()]),
            Server::new("mysql", ["mysql://m@d:9/x".to_owned()]),
        ];
        let replace = |given: &[&str]| {
            replace_all(&given.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &servers)
        };
        let redis = "redis://one:6379,two:6379,three:6379";
        let given = [redis, "zookeeper://a:b@localhost/prod", "127.0.0.1:8080", "mysql://USER@HOST/DB"];
        let expected = ["redis://h:1,h:2,h:3", "zookeeper://a:b@z:1/prod", "w:0", "mysql://m@d:9/x"];
        assert_eq!(replace(&given).unwrap(), expected);
        // An argument is left out, or names no server of the test.
        assert!(replace(&given[1..]).unwrap_err().contains("a server of \"redis\""));
        for unknown in [
            "redis://127.0.0.1:6379",
            "redis://one:6379,two:6379,three:6380",
            "rediss://one:6379,two:6379,three:6379",
            "zookeeper://a:b@example.com/prod",
            "127.0.0.1:9000",
            "localhost",
            "mysql://USER@HOST/db",
            "--verbose",
        ] {
            let error = replace(&[given.as_slice(), &[unknown]].concat()).unwrap_err();
            assert!(error.contains(&format!("is for {unknown:?}")), "{unknown}: {error}");
        }
    }
}
