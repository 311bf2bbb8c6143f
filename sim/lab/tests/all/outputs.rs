//! Commands lose nothing that they find, write whole files, and never destroy an input.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sim::explore::exhaust::{Progress, Scope, base, exhaust};
use sim::faults::{crash, pause};
use sim::{Sim, Span};
use xxhash_rust::xxh3::xxh3_128;

use super::harness::shaky;

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seeds").join(name)
}

/// The result of a command.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Ran {
    /// Asserts that the command has ended with 2 before it has printed or done anything.
    fn refused(&self, why: &str) {
        assert_eq!(self.code, Some(2), "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.contains(why), "{why:?} is not in {}", self.stderr);
        assert_eq!(self.stdout, "");
    }

    /// Asserts that the command names the file as written.
    fn names(&self, file: &Path) {
        let line = format!("written: {}\n", file.display());
        assert!(self.stderr.contains(&line), "{line:?} is not in {}", self.stderr);
        assert!(file.exists(), "{}", file.display());
    }
}

/// Runs the command in `folder`.
fn sim(folder: &Path, arguments: &[&str]) -> Ran {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(arguments).current_dir(folder).output().unwrap().into()
}

/// Runs the command in `folder`, where it can create files but not write a byte into them, as on a full disk.
fn sim_on_a_full_disk(folder: &Path, arguments: &[&str]) -> Ran {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_sim")]);
    shell.args(arguments).current_dir(folder).output().unwrap().into()
}

fn search(keep_in: &Path) -> sim::Search<fn(&mut Sim)> {
    sim::check("shaky", shaky as fn(&mut Sim)).allow_unmatched("key").keep_in(keep_in).schedules(200)
}

#[test]
fn a_check_shows_the_schedule_that_it_cannot_keep() {
    let folder = folder("check");
    let file = folder.join("sim-regressions");
    fs::write(&file, "").unwrap();
    let failure = search(&file).find().unwrap().expect("a pause breaks it");
    let text = failure.to_string();
    assert!(failure.problems[0].starts_with("one at a time: overlap"), "{text}");
    assert!(text.contains("[[fault]]") && text.contains("pause = "), "{text}");
    assert!(text.contains("SEED=") && text.contains("NOT KEPT"), "{text}");
    assert!(text.contains("sim-regressions: not a directory"), "{text}");
    // The same with a page that can't be written once it is drawn.
    let page = folder.join("page.html");
    symlink("/dev/full", &page).unwrap();
    let text = search(&file).html(&page).find().unwrap().unwrap().to_string();
    assert!(text.contains("NOT KEPT") && text.contains("no page: can't write"), "{text}");
    // A page that can't be written is an error before the first schedule.
    let error = search(&file).html(folder.join("none/page.html")).find().unwrap_err();
    assert!(error.contains("none/page.html: "), "{error}");
}

#[test]
fn two_checks_in_one_folder_keep_both_schedules() {
    let folder = folder("checks");
    let other = "# the schedule of another search\n";
    let first = search(&folder).find().unwrap().unwrap();
    let kept = fs::read_to_string(folder.join("shaky.toml")).unwrap();
    assert_eq!(kept, first.schedule);
    // It has no fault, so that its replay passes.
    fs::write(folder.join("shaky.toml"), other).unwrap();
    let second = search(&folder).find().unwrap().unwrap();
    assert_eq!(names(&folder), ["shaky-2.toml", "shaky.toml"]);
    assert_eq!(fs::read_to_string(folder.join("shaky.toml")).unwrap(), other);
    assert_eq!(fs::read_to_string(folder.join("shaky-2.toml")).unwrap(), second.schedule);
    // Without the first one, the second one is still replayed.
    fs::remove_file(folder.join("shaky.toml")).unwrap();
    let third = search(&folder).find().unwrap().unwrap();
    assert!(third.replay.contains("it is kept in") && third.replay.contains("shaky-2.toml"), "{third}");
    // A page does not replace a schedule.
    let error = search(&folder).html(folder.join("shaky-2.toml")).find().unwrap_err();
    assert!(error.contains("the same file as the input"), "{error}");
}

const MUTANT: [&str; 8] =
    ["explore", "--system", "redis", "--mutant", "blind-del", "--seeds", "200", "--failures"];

#[test]
fn a_search_shows_the_violation_that_it_cannot_keep() {
    let folder = folder("search");
    let out = folder.join("out");
    let search = [&MUTANT[..], &["1", "--out", out.to_str().unwrap()]].concat();
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("summary.json"), "of an earlier search").unwrap();
    let ran = sim_on_a_full_disk(&folder, &search);
    // It can't even begin: the earlier summary is kept under another name before the search.
    ran.refused("summary.json.earlier: ");
    assert_eq!(fs::read_to_string(out.join("summary.json")).unwrap(), "of an earlier search");
    // Without --out there is no summary, and the violations go to `violations`.
    let ran = sim_on_a_full_disk(&folder, &[&MUTANT[..], &["1"]].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let early = ran.stderr.find("violation: foreign_release").expect("shown as it is found");
    assert!(ran.stderr[early..].contains("NOT KEPT: can't write violations/seed-"), "{}", ran.stderr);
    for part in ["violation: foreign_release", "seed = ", "system = \"redis\"", "NOT KEPT", "violations: 1"] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    assert_eq!(names(&folder.join("violations")), [""; 0], "nothing half written is left");
}

#[test]
fn an_unwritable_folder_is_an_error_before_the_search() {
    let folder = folder("unwritable");
    fs::write(folder.join("file"), "").unwrap();
    let endless = "18446744073709551615";
    let out = ["--out", "file"];
    let refused = |arguments: &[&str]| sim(&folder, arguments).refused("can't write file");
    refused(&[&["explore", "--seeds", endless][..], &out].concat());
    refused(&[&["exhaust", "--subject", "redis", "--faults", "9"][..], &out].concat());
    let seeds = seed("").canonicalize().unwrap();
    let gallery = ["gallery", "--seeds", seeds.to_str().unwrap(), "--schedules", "99999999"];
    refused(&[&gallery[..], &out].concat());
    refused(&["exhaust", "--subject", "redis", "--faults", "9", "--resume", "file/progress"]);
    refused(&["compare", "--schedules", "99999999", "--out", "file/table.md"]);
    refused(&["run", "--seed", "7", "--pcap", "file/run.pcapng"]);
    refused(&["--html", "file/run.html"]);
    refused(&["merge", "none", "--out", "file"]);
    refused(&["merge", "none", "--trend", "file/trend"]);
    // `violations` is the default.
    fs::write(folder.join("violations"), "").unwrap();
    sim(&folder, &["explore", "--seeds", endless]).refused("violations: ");
    sim(&folder, &["explore", "--seeds", endless, "--out", "new", "--html", "none/x"]).refused("none/x: ");
    assert_eq!(names(&folder), ["file", "violations"]);
}

#[test]
fn an_output_never_replaces_its_input() {
    let folder = folder("inputs");
    let text = fs::read_to_string(seed("gc-pause.toml")).unwrap();
    let file = |name: &str| folder.join(name);
    fs::write(file("x.toml"), &text).unwrap();
    symlink("x.toml", file("soft.html")).unwrap();
    fs::hard_link(file("x.toml"), file("hard.svg")).unwrap();
    // The name of an arm is added to that of a capture.
    fs::hard_link(file("x.toml"), file("run-fenced.pcapng")).unwrap();
    let absolute = file("x.toml").to_str().unwrap().to_owned();
    for output in [
        ["--html", "x.toml"],
        ["--svg", "./x.toml"],
        ["--html", &absolute],
        ["--html", "soft.html"],
        ["--svg", "hard.svg"],
        ["--pcap", "run.pcapng"],
    ] {
        let ran = sim(&folder, &[&["replay", "x.toml"][..], &output].concat());
        ran.refused("it is the same file as the input x.toml");
        assert_eq!(fs::read_to_string(file("x.toml")).unwrap(), text, "{output:?}");
    }
    let input = "it is the same file as the input x.toml";
    sim(&folder, &["shrink", "x.toml", "--out", "soft.html"]).refused(input);
    sim(&folder, &["exhaust", "x.toml", "--faults", "1", "--resume", "x.toml"]).refused(input);
    sim(&folder, &["replay", "x.toml", "--html", "a", "--svg", "./a"]).refused("they are the same file");
    assert_eq!(fs::read_to_string(file("x.toml")).unwrap(), text);
    assert_eq!(names(&folder), ["hard.svg", "run-fenced.pcapng", "soft.html", "x.toml"]);
}

#[test]
fn a_comparison_replaces_a_page_only_if_it_is_named() {
    let folder = folder("comparison");
    let page = folder.join("docs/comparison.md");
    fs::create_dir_all(folder.join("docs")).unwrap();
    fs::write(&page, "1500 schedules").unwrap();
    let compare = ["compare", "--schedules", "1"];
    let ran = sim(&folder, &compare);
    assert!(ran.stdout.contains("runs in"), "{}", ran.stdout);
    assert_eq!(fs::read_to_string(&page).unwrap(), "1500 schedules");
    // A disk that is full by then leaves the old page, and hides no result.
    let named = [&compare[..], &["--out", "docs/comparison.md"]].concat();
    let full = sim_on_a_full_disk(&folder, &named);
    assert_eq!(full.code, Some(2), "{}", full.stderr);
    assert!(full.stderr.contains("can't write docs/comparison.md: "), "{}", full.stderr);
    assert!(full.stdout.contains("runs in"), "{}", full.stdout);
    assert_eq!(fs::read_to_string(&page).unwrap(), "1500 schedules");
    assert_eq!(names(&folder.join("docs")), ["comparison.md"]);
    let ran = sim(&folder, &named);
    assert!(ran.stderr.contains("written: docs/comparison.md"), "{}", ran.stderr);
    assert!(fs::read_to_string(&page).unwrap().starts_with("# The lock systems, compared"));
}

#[test]
fn every_written_file_is_named() {
    let folder = folder("named");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let input = seed("gc-pause.toml");
    let replay = ["replay", input.to_str().unwrap(), "--json"];
    let (html, svg, pcap, trace) = (file("r.html"), file("r.svg"), file("r.pcapng"), file("r.pftrace"));
    let outputs = ["--html", &html, "--svg", &svg, "--pcap", &pcap, "--perfetto", &trace];
    let ran = sim(&folder, &[&replay[..], &outputs].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Standard output is one JSON object.
    serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    for name in ["r.html", "r.svg", "r-fenced.pcapng", "r-unfenced.pcapng", "r-fenced.pftrace"] {
        ran.names(&folder.join(name));
    }
    let small = file("small.toml");
    sim(&folder, &["shrink", input.to_str().unwrap(), "--out", &small]).names(Path::new(&small));
    let progress = file("progress");
    let search = ["exhaust", "--subject", "redis", "--faults", "0", "--resume", &progress];
    sim(&folder, &search).names(Path::new(&progress));
}

/// A small search.
fn pauses() -> Scope {
    let span = Span::from_millis;
    Scope { forms: Some(vec![pause::lasting(span(500)), crash::restarting(span(500))]), ..Scope::of(1) }
}

#[test]
fn a_progress_file_that_was_changed_is_refused() {
    let folder = folder("progress");
    let file = folder.join("progress");
    let start = base(&shaky, 0).unwrap();
    let scope = Scope { progress: Some(file.clone()), ..pauses() };
    let on = |_: &Progress| true;
    let whole = exhaust(&shaky, &start, &scope, on).unwrap();
    assert!(!whole.breaks.is_empty());
    let text = fs::read_to_string(&file).unwrap();
    let again = exhaust(&shaky, &start, &scope, on).unwrap();
    assert_eq!((again.claim(), again.resumed), (whole.claim(), whole.runs - 1));
    let refused = |text: &str| {
        fs::write(&file, text).unwrap();
        let error = exhaust(&shaky, &start, &scope, on).unwrap_err().to_string();
        assert!(error.contains("name another file, or delete it to begin anew"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is left as it is");
        error
    };
    let (_, runs) = text.split_once("\"runs\":").unwrap();
    let runs = &runs[..runs.find(',').unwrap()];
    let more = text.replacen(&format!("\"runs\":{runs},"), "\"runs\":1000000,", 1);
    assert!(refused(&more).contains("changed or damaged"));
    assert!(refused(&text[..text.len() - 20]).contains("changed or damaged"));
    assert!(refused(&format!("{text}\n")).contains("changed or damaged"));
    for foreign in ["", "{}", "no progress", &text[1..]] {
        assert!(refused(foreign).contains("it is no progress of a search"), "{foreign}");
    }
    // The file of another program, whole.
    let (head, done) = text.split_once('\n').unwrap();
    let head: serde_json::Value = serde_json::from_str(head).unwrap();
    let (program, search) = ("sim 0.0.1 of another build", head["search"].as_str().unwrap());
    let sum = format!("{:032x}", xxh3_128(format!("{program}\n{search}\n{done}").as_bytes()));
    let head = serde_json::json!({ "program": program, "search": search, "checksum": sum });
    assert!(refused(&format!("{head}\n{done}")).contains("by another program (sim 0.0.1"));
    fs::remove_file(&file).unwrap();
    assert_eq!(exhaust(&shaky, &start, &scope, on).unwrap().claim(), whole.claim());
    assert_eq!(names(&folder), ["progress"]);
}

#[test]
fn a_progress_file_that_cannot_be_written_hides_no_violation() {
    let start = base(&shaky, 0).unwrap();
    let nowhere = folder("no-progress").join("none/progress");
    let scope = Scope { progress: Some(nowhere), ..pauses() };
    let error = exhaust(&shaky, &start, &scope, |_| true).unwrap_err().to_string();
    assert!(error.contains("none/progress: "), "{error}");
    assert!(error.contains("NOT KEPT: pause client: one at a time"), "{error}");
    assert!(error.contains("[[fault]]") && error.contains("pause = "), "{error}");
}
