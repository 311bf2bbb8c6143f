//! Searches of a fleet: shards, capsules, summaries, and the report that merges them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use sim::explore::fleet::{Canary, Capsule, Capsules, KEPT_MAX, Origin, Summary, merge};

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.args(arguments);
    command
}

fn sim(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Searches for a known mistake on Redis.
fn explore(out: &Path, more: &[&str]) -> Output {
    let fixed = ["explore", "--system", "redis", "--mutant", "blind-del", "--out", out.to_str().unwrap()];
    sim(&[&fixed, more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn origin(shard: &str) -> Origin {
    let subject = "redis".to_owned();
    let (version, behaviour, strategy) = ("1".to_owned(), "abc".to_owned(), "uniform".to_owned());
    Origin { version, behaviour, subject, strategy, first: 0, shard: shard.to_owned() }
}

fn capsule(seed: u64, faults: usize) -> Capsule {
    Capsule {
        name: format!("seed-{seed}-on"),
        cause: "overlap".to_owned(),
        arm: "fenced".to_owned(),
        verdicts: Vec::new(),
        findings: Vec::new(),
        seed,
        faults,
        schedule: "shrunk".to_owned(),
        drawn: "drawn".to_owned(),
        trace_hash: None,
        search: origin("1/1"),
    }
}

/// A search of 100 schedules that ended.
fn ended(shard: &str) -> Summary {
    let mut summary = Summary::new(origin(shard), 2);
    (summary.schedules, summary.seconds, summary.ended) = (100, 10.0, Some("all seeds".to_owned()));
    summary
}

/// Saves the summaries in folders of their own and merges them.
fn merged(name: &str, summaries: &[Summary]) -> Result<sim::explore::fleet::Merged, String> {
    let folders: Vec<PathBuf> =
        (0..summaries.len()).map(|number| folder(&format!("{name}-{number}"))).collect();
    folders.iter().zip(summaries).for_each(|(folder, summary)| summary.save(folder).unwrap());
    merge(&folders).map_err(|error| error.to_string())
}

#[test]
fn two_shards_find_what_one_search_finds() {
    let (whole, one, two) = (folder("whole"), folder("one"), folder("two"));
    // A shard of the feedback strategy continues its own schedules only.
    let search = ["--seeds", "384", "--failures", "100000", "--strategy", "aimed"];
    for (out, shard) in [(&whole, "1/1"), (&one, "1/2"), (&two, "2/2")] {
        let output = explore(out, &[&search[..], &["--shard", shard]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
    let [all, halves] = [&[whole][..], &[one.clone(), two]].map(|folders| merge(folders).unwrap());
    assert_eq!((all.schedules, halves.schedules, halves.shards), (384, 384, 2));
    assert!(all.violations > 0 && !all.causes.is_empty());
    assert_eq!((&all.verdicts, all.violations), (&halves.verdicts, halves.violations));
    let runs = |merged: &sim::explore::fleet::Merged| {
        merged.causes.iter().map(|(cause, found)| (cause.clone(), found.runs)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(runs(&all), runs(&halves));
    assert!(halves.causes.values().all(|found| (1..=KEPT_MAX).contains(&found.capsules.len())));
    assert_eq!(halves.problems, [""; 0]);

    // A capsule replays by itself.
    let best = Capsules::read(&one).unwrap().remove(0);
    let path = one.join(format!("{}.toml", best.name));
    let replayed = sim(&["replay", path.to_str().unwrap(), "--json"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stdout));
    let json: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(json["trace_hash"]["on"].as_str(), best.trace_hash.as_deref());

    // The report of the command, with a trend.
    let (trend, out) = (one.join("trend"), folder("best"));
    let arguments =
        ["merge", one.to_str().unwrap(), "--trend", trend.to_str().unwrap(), "--out", out.to_str().unwrap()];
    assert_eq!(sim(&arguments).status.code(), Some(1));
    let report = text(&sim(&arguments).stdout);
    assert!(report.contains("problem: shards that are missing: 2/2"), "{report}");
    assert!(report.contains("a core and day"), "{report}");
    assert_eq!(std::fs::read_to_string(&trend).unwrap().lines().count(), 2);
    assert!(!Capsules::read(&out).unwrap().is_empty());
}

#[test]
fn a_search_that_is_killed_loses_nothing() {
    let out = folder("killed");
    let arguments = ["explore", "--system", "redis", "--mutant", "blind-del", "--minutes", "10", "--out"];
    let mut search = command(&arguments);
    search.arg(&out).args(["--failures", "1000000"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut search = search.spawn().unwrap();
    let found = || {
        std::fs::read_dir(&out).map_or(0, |entries| {
            entries
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "toml"))
                })
                .count()
        })
    };
    while found() < 2 {
        assert!(search.try_wait().unwrap().is_none(), "the search ended");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    search.kill().unwrap();
    search.wait().unwrap();
    let merged = merge(std::slice::from_ref(&out)).unwrap();
    let capsules: usize = merged.causes.values().map(|found| found.capsules.len()).sum();
    assert!(capsules >= 1, "{merged}");
    assert!(
        merged.problems.iter().any(|problem| problem.contains("was interrupted")),
        "{:?}",
        merged.problems
    );
}

#[test]
fn the_shortest_capsules_of_a_cause_are_kept() {
    let out = folder("kept");
    let mut capsules = Capsules::in_folder(&out);
    for (seed, faults) in [(1, 3), (2, 1), (3, 2), (4, 2), (5, 5)] {
        capsules.add(capsule(seed, faults)).unwrap();
    }
    let names = || Capsules::read(&out).unwrap().into_iter().map(|capsule| capsule.name).collect::<Vec<_>>();
    assert_eq!(names(), ["seed-1-on", "seed-2-on", "seed-3-on", "seed-4-on"]);
    assert!(!capsules.would_keep("overlap", 3, 6) && capsules.would_keep("overlap", 3, 0));
    capsules.add(capsule(6, 0)).unwrap();
    assert_eq!(names(), ["seed-2-on", "seed-3-on", "seed-4-on", "seed-6-on"]);
    assert_eq!(capsules.iter().next().unwrap().name, "seed-6-on");
    // A shrunk one replaces the one as it was drawn.
    capsules.add(Capsule { schedule: "shorter".to_owned(), ..capsule(4, 1) }).unwrap();
    assert_eq!(names().len(), 4);
    assert_eq!(std::fs::read_to_string(out.join("seed-4-on.toml")).unwrap(), "shorter");
}

#[test]
fn a_number_of_failures_ends_a_search() {
    let out = folder("failures");
    let output = explore(&out, &["--seeds", "5000", "--failures", "3", "--threads", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let summary = Summary::read(&out).unwrap();
    assert_eq!((summary.violations, summary.ended.as_deref()), (3, Some("3 violations")));
    assert!(summary.schedules < 5000);
}

#[test]
fn a_run_without_an_end_is_saved_and_ends_the_search() {
    let out = folder("hang");
    // Every schedule takes longer than no time at all.
    let output = explore(&out, &["--seeds", "100000", "--hang", "0", "--failures", "1000000"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("did not end within 0 s"), "{}", text(&output.stderr));
    let merged = merge(std::slice::from_ref(&out)).unwrap();
    let hangs = &merged.causes["hang, fenced"].capsules;
    assert!(hangs[0].drawn.contains("system = \"redis\""), "{}", hangs[0].drawn);
    assert!(merged.problems.iter().any(|problem| problem.contains("did not end")), "{:?}", merged.problems);
}

#[test]
fn a_known_mistake_is_found_on_the_way() {
    let out = folder("canary");
    let arguments =
        ["explore", "--system", "redis", "--seeds", "20", "--canary", "--out", out.to_str().unwrap()];
    let output = sim(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let canary = Summary::read(&out).unwrap().canary.unwrap();
    assert_eq!((canary.found, canary.missed, canary.mistake.as_str()), (1, 0, "blind-del"));
    assert!(canary.schedules > 0 && canary.last.is_some());
}

#[test]
fn a_report_names_what_is_wrong_with_a_search() {
    let canary = |found, missed, last| Canary {
        mistake: "blind-del".to_owned(),
        found,
        missed,
        schedules: 7,
        last: Some(last),
        longest_gap: 1.0,
    };
    let with = |canary| Summary { canary: Some(canary), ..ended("1/1") };
    let problems = |name, summary| merged(name, &[summary]).unwrap().problems.join("; ");
    assert_eq!(problems("good", with(canary(1, 0, 9.0))), "");
    assert!(problems("missed", with(canary(1, 1, 9.0))).contains("missed 1 times"));
    let late = Summary { seconds: 11_000.0, ..with(canary(1, 0, 100.0)) };
    assert!(problems("late", late).contains("not for 10900 s"));
    let unmet = Summary { unmet: vec!["a probe".to_owned()], schedules: 250_000, ..ended("1/1") };
    assert!(problems("unmet", unmet.clone()).contains("no run has met: a probe"));
    assert_eq!(problems("few", Summary { schedules: 249_999, ..unmet }), "");
    assert!(problems("interrupted", Summary { ended: None, ..ended("1/1") }).contains("was interrupted"));
    assert!(problems("missing", ended("2/3")).contains("missing: 1/3, 3/3"));
    let empty = folder("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let begun = folder("begun");
    ended("1/1").save(&begun).unwrap();
    assert!(merge(&[begun, empty]).unwrap().problems[0].contains("its search never began"));
    let rate = merged("rate", &[ended("1/2"), ended("2/2")]).unwrap();
    assert_eq!((rate.core_seconds, rate.schedules_per_core_day), (40.0, 432_000.0));
}

#[test]
fn folders_that_do_not_belong_together_are_refused() {
    let error = merged("same", &[ended("1/2"), ended("1/2")]).unwrap_err();
    assert!(error.contains("are both shard 1/2"), "{error}");
    let mut other = ended("2/2");
    other.search.behaviour = "def".to_owned();
    let error = merged("other", &[ended("1/2"), other]).unwrap_err();
    assert!(error.contains("of different searches"), "{error}");
    let error = merge(&[folder("none")]).unwrap_err().to_string();
    assert!(error.contains("none/summary.json: "), "{error}");
    let output = sim(&["explore", "--seeds", "1", "--shard", "5/4"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`5/4` is no shard"), "{}", text(&output.stderr));
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn two_searches_in_one_folder_keep_both_violations() {
    let out = folder("both");
    let drawn = |seed: u64, drawn: &str| Capsule { drawn: drawn.to_owned(), ..capsule(seed, 1) };
    let (mut one, mut two) = (Capsules::in_folder(&out), Capsules::in_folder(&out));
    one.add(drawn(7, "one")).unwrap();
    two.add(drawn(7, "two")).unwrap();
    let expected = ["seed-7-on-2.json", "seed-7-on-2.toml", "seed-7-on.json", "seed-7-on.toml"];
    assert_eq!(names(&out), expected);
    // Each shrinks its own.
    one.add(Capsule { schedule: "smaller one".to_owned(), ..drawn(7, "one") }).unwrap();
    two.add(Capsule { schedule: "smaller two".to_owned(), ..drawn(7, "two") }).unwrap();
    assert_eq!(names(&out), expected);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!([read("seed-7-on.toml"), read("seed-7-on-2.toml")], ["smaller one", "smaller two"]);
    // A later search that finds the same does not keep it twice, and none replaces a schedule of a person.
    std::fs::write(out.join("seed-8-on.toml"), "mine").unwrap();
    let mut later = Capsules::in_folder(&out);
    later.add(drawn(7, "two")).unwrap();
    later.add(drawn(8, "three")).unwrap();
    assert_eq!(read("seed-8-on.toml"), "mine");
    assert_eq!(names(&out).len(), 7, "{:?}", names(&out));
    // One that can't be saved is kept in memory.
    let mut nowhere = Capsules::in_folder(&out.join("seed-8-on.toml"));
    let error = nowhere.add(drawn(9, "four")).unwrap_err().to_string();
    assert!(error.contains("not a directory"), "{error}");
    assert_eq!(nowhere.iter().count(), 1);
}

#[test]
fn the_summary_of_another_search_stays() {
    let out = folder("another");
    let earlier = out.join("summary.json.earlier");
    let search = |first: &str| {
        let out = out.to_str().unwrap();
        let output = sim(&["explore", "--system", "redis", "--seeds", "3", "--first", first, "--out", out]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr).contains("summary.json.earlier")
    };
    assert!(!search("5") && !search("5"), "the same search again");
    assert!(!earlier.exists());
    let first = std::fs::read_to_string(out.join("summary.json")).unwrap();
    assert!(search("6"), "the file is named");
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), first);
    assert_eq!(Summary::read(&out).unwrap().search.first, 6);
    assert_eq!(sim::explore::fleet::merge(&[out]).unwrap().shards, 1);
}

#[test]
fn a_merge_names_what_is_damaged_and_merges_the_rest() {
    let (one, two, best) = (folder("damaged-1"), folder("damaged-2"), folder("damaged-best"));
    let [one_, two_, best_] = [&one, &two, &best].map(|folder| folder.to_str().unwrap());
    for (folder, shard, seeds) in [(&one, "1/2", &[7, 8][..]), (&two, "2/2", &[9])] {
        ended(shard).save(folder).unwrap();
        let save = |seed: &u64| Capsule { search: origin(shard), ..capsule(*seed, 1) }.save(folder).unwrap();
        seeds.iter().for_each(save);
    }
    let path = one.join("seed-7-on.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let merge = |arguments: &[&str], parts: &[&str]| {
        let output = sim(&[&["merge"], arguments].concat());
        let (printed, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{printed}{error}");
        parts.iter().for_each(|part| assert!(printed.contains(part), "{part:?} is not in {printed}"));
        (printed, error)
    };
    let (printed, error) = merge(&[one_, two_, "--out", best_], &["seed-8-on", "seed-9-on", "200 schedules"]);
    let damaged = format!("problem: {}: it is damaged", path.display());
    assert!(printed.lines().last().unwrap().starts_with(&damaged), "{printed}");
    assert!(error.contains(&format!("written: {best_}/seed-8-on.toml\n")), "{error}");
    // The summary of a shard, too: its capsules are still in the report.
    std::fs::write(two.join("summary.json"), "{").unwrap();
    let damaged = format!("problem: {two_}/summary.json: it is damaged");
    merge(&[one_, two_], &["seed-8-on", "seed-9-on", "100 schedules", &damaged]);
    // And if no shard has a summary.
    merge(&[two_], &["seed-9-on", &damaged]);
    // A merge is not saved among its inputs.
    let output = sim(&["merge", one_, "--out", one_]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the same file as the input"), "{}", text(&output.stderr));
}
