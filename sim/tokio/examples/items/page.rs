//! docs/tokio.md as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::parse::{Kind, Source};
use crate::resolve::{Meaning, join};

/// The modules whose types are listed with their methods.
const WITH_METHODS: [&str; 7] = ["fs", "net", "process", "runtime", "signal", "task", "time"];

const HEAD: &str = "# tokio in a simulated process

`cargo sim` compiles a program with `sim/tokio` in the place of tokio {version}. This page lists each public
item of tokio, by module:

- *simulated*: it acts on the simulated process, with its clock, links, files and signals;
- *real*: it is tokio's own, which touches nothing outside of the program;
- *refused*: a call ends the run with an error that names the caller's line and says what to use;
- *missing*: code that uses it does not compile.

The methods of a type without values, such as `process::Child`, count as refused: the call that would make a
value is. The metrics of a runtime are those of one worker without a queue, and all but `num_alive_tasks` are
constant.

The methods of simulated types are listed for `fs`, `net`, `process`, `runtime`, `signal`, `task` and `time`.
Left out are the items under `--cfg tokio_unstable`, those for Windows alone, and implementations of traits.
`fs::Metadata`, `fs::FileType` and `fs::Permissions` are types of the simulation: in tokio their places have
those of the standard library.

`cargo run -p fencepost-sim-tokio --example items` writes this page; a test fails while it is out of date.
";

/// The state of an item, from the best to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Simulated,
    Real,
    Refused,
    Missing,
}

const ALL: [(Status, &str); 4] = [
    (Status::Simulated, "simulated"),
    (Status::Real, "real"),
    (Status::Refused, "refused"),
    (Status::Missing, "missing"),
];

/// The two crates.
struct Compared {
    tokio: Source,
    shim: Source,
    counts: BTreeMap<Status, usize>,
}

/// Returns the path of the page.
pub(crate) fn path() -> PathBuf {
    repository().join("docs/tokio.md")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the page.
pub(crate) fn page() -> String {
    let version = locked();
    let mut compared = Compared {
        tokio: Source::read(&sources(&version)),
        shim: Source::read(Path::new(env!("CARGO_MANIFEST_DIR"))),
        counts: BTreeMap::new(),
    };
    let mut tables = String::new();
    compared.module("", "", &mut tables);
    let mut page = HEAD.replace("{version}", &version);
    page.push_str("\n| state | items |\n|---|---|\n");
    for (status, word) in ALL {
        let _ = writeln!(page, "| {word} | {} |", compared.counts.get(&status).copied().unwrap_or_default());
    }
    page + &tables
}

/// Returns the version of tokio in Cargo.lock.
fn locked() -> String {
    let lock = std::fs::read_to_string(repository().join("Cargo.lock")).expect("Cargo.lock");
    let entry = lock.split("name = \"tokio\"\nversion = \"").nth(1).expect("tokio in Cargo.lock");
    entry.split('"').next().unwrap_or_default().to_owned()
}

/// Returns the folder of tokio's sources, which cargo has unpacked.
fn sources(version: &str) -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registries = home.expect("a home").join("registry/src");
    let registries = std::fs::read_dir(&registries).expect("cargo's registry").flatten();
    let mut found = registries.map(|registry| registry.path().join(format!("tokio-{version}")));
    found.find(|folder| folder.exists()).expect("tokio's sources: run `cargo fetch`")
}

impl Compared {
    /// Adds the table of a module and those of the modules in it. `real` is its path in tokio's sources, and
    /// `path` the public one.
    fn module(&mut self, real: &str, path: &str, out: &mut String) {
        let own: BTreeMap<String, Meaning> = self.shim_exports(path);
        let (mut rows, mut inner) = (Vec::new(), Vec::new());
        for (name, meaning) in self.tokio.exports(real) {
            match &meaning {
                Meaning::Module(module) => {
                    let path = join(path, &name);
                    inner.push((module.clone(), path));
                }
                _ => rows.push(self.row(path, &name, &meaning, own.get(&name))),
            }
        }
        if !rows.is_empty() {
            let title = if path.is_empty() { "tokio".to_owned() } else { format!("tokio::{path}") };
            let _ = writeln!(out, "\n## {title}\n\n| item | state | methods |\n|---|---|---|");
            rows.into_iter().for_each(|row| out.push_str(&row));
        }
        for (module, path) in inner {
            self.module(&module, &path, out);
        }
    }

    /// Returns the public names of a module of the simulated tokio. A module that is tokio's own has none.
    fn shim_exports(&self, path: &str) -> BTreeMap<String, Meaning> {
        let mut module = Meaning::Module(String::new());
        for step in path.split("::").filter(|step| !step.is_empty()) {
            let Meaning::Module(of) = &module else { break };
            let exports = self.shim.exports(of);
            let named = |wanted: &str| {
                let is_module = |meaning: &Meaning| !matches!(meaning, Meaning::Own(..));
                exports.iter().find(|(name, meaning)| name == wanted && is_module(meaning))
            };
            match named(step).or_else(|| named("*")) {
                Some((_, meaning)) => module = meaning.clone(),
                None => return BTreeMap::new(),
            }
        }
        match module {
            // An item replaces a module of the same name.
            Meaning::Module(of) => self.shim.exports(&of).into_iter().rev().collect(),
            real => BTreeMap::from([("*".to_owned(), real)]),
        }
    }

    fn row(&mut self, path: &str, name: &str, real: &Meaning, own: Option<&Meaning>) -> String {
        let all = self.shim_exports(path).get("*").cloned();
        let own = own.cloned().or(all);
        let status = self.status(own.as_ref());
        *self.counts.entry(status).or_default() += 1;
        let is_listed = WITH_METHODS.iter().any(|module| path.split("::").next() == Some(module));
        let methods = if is_listed { self.methods(real, own.as_ref()) } else { String::new() };
        let word = ALL.iter().find(|(known, _)| *known == status).map_or("", |(_, word)| word);
        format!("| `{name}` | {word} | {methods} |\n")
    }

    /// Returns the methods by their states, unless all are tokio's own.
    fn methods(&mut self, real: &Meaning, own: Option<&Meaning>) -> String {
        let methods = self.tokio.methods_of(real);
        let known = match own {
            Some(own @ Meaning::Own(..)) => self.shim.methods_of(own),
            Some(Meaning::Other(_)) => {
                *self.counts.entry(Status::Real).or_default() += methods.len();
                return String::new();
            }
            Some(Meaning::Module(_)) | None => {
                *self.counts.entry(Status::Missing).or_default() += methods.len();
                return String::new();
            }
        };
        let mut by_status: BTreeMap<Status, Vec<String>> = BTreeMap::new();
        for method in methods {
            let status = match known.iter().find(|known| known.name == method.name) {
                None => Status::Missing,
                Some(known) if known.is_refused => Status::Refused,
                Some(_) => Status::Simulated,
            };
            *self.counts.entry(status).or_default() += 1;
            by_status.entry(status).or_default().push(format!("`{}`", method.name));
        }
        let listed = ALL
            .iter()
            .filter_map(|(status, word)| Some(format!("*{word}*: {}", by_status.get(status)?.join(", "))));
        listed.collect::<Vec<_>>().join("; ")
    }

    /// Returns the state of an item. A type is refused if all of its methods are.
    fn status(&self, own: Option<&Meaning>) -> Status {
        match own {
            None => Status::Missing,
            Some(Meaning::Own(_, _, Kind::Function { is_refused: true })) => Status::Refused,
            Some(own @ Meaning::Own(_, _, Kind::Type)) => {
                let methods = self.shim.methods_of(own);
                let is_refused = !methods.is_empty() && methods.iter().all(|method| method.is_refused);
                if is_refused { Status::Refused } else { Status::Simulated }
            }
            Some(Meaning::Own(..) | Meaning::Module(_)) => Status::Simulated,
            Some(Meaning::Other(_)) => Status::Real,
        }
    }
}
