//! `docs/decide.md` agrees with the runs: its commands, the output that it shows, and its figures. Each
//! sentence of it, and each paragraph of `docs/patterns.md`, links to its evidence, and each pattern has a
//! table with the right way beside the wrong one. The claims about its schedules are read by `docs`; `report`
//! of the live experiments makes the table of the lab's questions.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use history::Kind;
use lab::Arm;
use sim::{Event, Report};

use crate::support::case;

const PAGE: &str = "docs/decide.md";

/// The page with a section for each pattern.
const PATTERNS: &str = "docs/patterns.md";

/// The head of each command in the page.
const CARGO: &str = "cargo run --release -- ";

/// The first words of the sentences that need no link: the use of the page, introductions of the list or
/// table that follows, and a limit.
const UNLINKED: [&str; 8] = [
    "Read this before",
    "`cargo run --release -- replay seeds/NAME.toml` replays",
    "Suppose that two workers do the work at once",
    "Ask in this order",
    "A lease on one Redis is enough if",
    "These questions choose the system",
    "The columns of Redlock and of a consensus system",
    "No run shows by how much",
];

/// The sources, as the page cites them.
const SOURCES: [&str; 4] = ["part 18", "Part 18", "Palma", "*The Computing Series*"];

/// The columns whose cells have the evidence of their rows: each sentence in them needs a link.
const EVIDENCE: [&str; 10] = [
    "then",
    "a run",
    "gains",
    "costs",
    "evidence",
    "shown by",
    "instead",
    "waiters",
    "exercise",
    "a run that shows it",
];

/// The cases of exercise 4, each with the file that has its run, and text of that run alone: the key of a
/// schedule, or a line that a live test expects.
const CLASSIFIED: [(&str, &str, &str); 6] = [
    ("cache rebuild", "seeds/exercise-4-cache-rebuild.toml", "cache:prices"),
    ("monthly invoice", "real/tests/stores/fence_examples.rs", "invoice: made by 1 of 8 machines"),
    ("payment capture", "real/tests/stores/fence_examples.rs", "Ada: refunded; charges: 1, refunds: 1"),
    ("report export", "seeds/exercise-4-report-export.toml", "report:2026-07"),
    ("legal case assignment", "real/tests/stores/fence_examples.rs", "case: assigned to 1 of 8 clerks"),
    ("search index refresh", "seeds/exercise-4-search-index.toml", "search-index:products"),
];

/// The first words of the paragraphs of `docs/patterns.md` that need no link: what a pattern is for.
const UNLINKED_OF_PATTERNS: [&str; 9] = [
    "Uses of the locks beyond one key and one holder",
    "Each claim about the library",
    "At most N processes use something at once",
    "Many processes read something at once",
    "A transfer writes two accounts",
    "Under load it is better to refuse work",
    "Of several processes one leads",
    "Many processes need one result",
    "Each tick of a schedule runs once",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn page() -> String {
    read(PAGE)
}

/// Runs a command of the page; returns its output. It must succeed.
fn run(command: &str) -> String {
    let arguments = command.strip_prefix(CARGO).unwrap_or_else(|| panic!("{command}: begin with {CARGO}"));
    let mut sim = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output = sim.args(arguments.split_whitespace()).current_dir(root()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{command}\n{stdout}");
    stdout
}

#[test]
fn the_commands_run_and_print_what_the_page_shows() {
    let page = page();
    let blocks: Vec<&str> =
        page.split("```").skip(1).step_by(2).map(|block| block.trim_matches('\n')).collect();
    let (mut replayed, mut shown) = (0, 0);
    let mut before = String::new();
    for block in blocks {
        if !block.starts_with(CARGO) {
            assert_eq!(block, before.trim_end(), "{PAGE} shows another output");
            shown += 1;
            continue;
        }
        before = block.lines().map(run).collect();
        replayed += block.matches(" replay seeds/exercise-").count();
    }
    assert_eq!((replayed, shown), (8, 1), "the page has lost commands");
}

#[test]
fn every_sentence_of_the_evidence_of_a_table_has_a_link() {
    let page = page();
    let (mut rows, mut bare, mut columns) = (0, Vec::new(), None);
    for line in page.lines() {
        let Some(line) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            // The rule below a head belongs to the table.
            columns = columns.filter(|_| line.starts_with("|--"));
            continue;
        };
        let cells: Vec<_> = line.split(" | ").collect();
        let Some(columns) = &columns else {
            let found: Vec<_> = (0..cells.len()).filter(|at| EVIDENCE.contains(&cells[*at])).collect();
            assert!(!found.is_empty(), "no column of {cells:?} has evidence");
            columns = Some(found);
            continue;
        };
        rows += 1;
        bare.extend(columns.iter().flat_map(|at| sentences(cells[*at])).filter(|it| !has_evidence(it)));
    }
    assert!(bare.is_empty(), "{PAGE}: claims without evidence: {bare:#?}");
    assert!(rows > 70, "the page has lost rows: {rows} are left");
}

#[test]
fn every_sentence_has_a_link() {
    let page = page();
    let all: Vec<_> = paragraphs(&page).iter().flat_map(|paragraph| sentences(paragraph)).collect();
    let claims: Vec<_> = all.iter().filter(|sentence| !has_evidence(sentence)).collect();
    assert!(claims.is_empty(), "{PAGE}: claims without evidence: {claims:#?}");
    for words in UNLINKED {
        assert!(all.iter().any(|sentence| sentence.starts_with(words)), "no exception for {words:?}");
    }
    assert!(all.len() > 80, "{PAGE} has lost sentences: {} are left", all.len());
}

#[test]
fn every_paragraph_of_the_patterns_has_a_link() {
    let text = read(PATTERNS);
    let (linked, bare): (Vec<_>, Vec<_>) =
        paragraphs(&text).into_iter().partition(|paragraph| paragraph.contains("]("));
    let needs_link = |paragraph: &&String| !UNLINKED_OF_PATTERNS.iter().any(|it| paragraph.starts_with(it));
    let claims: Vec<_> = bare.iter().filter(needs_link).collect();
    assert!(claims.is_empty(), "{PATTERNS}: claims without evidence: {claims:#?}");
    for words in UNLINKED_OF_PATTERNS {
        assert!(bare.iter().any(|paragraph| paragraph.starts_with(words)), "no exception for {words:?}");
    }
    assert!(linked.len() > 40, "{PATTERNS} has lost paragraphs: {} are left", linked.len());
}

#[test]
fn sentences_end_where_another_one_begins() {
    let text = "- [ ] *Why?* It is 3.5 s ([a](b.md)). `Code` follows. And \"so on\".";
    let expected = ["*Why?*", "It is 3.5 s ([a](b.md)).", "`Code` follows.", "And \"so on\"."];
    assert_eq!(sentences(text), expected);
    assert!(has_evidence("*Why?*") && has_evidence(expected[1]) && !has_evidence(expected[2]));
}

/// Splits a paragraph, an item of a list or a cell into sentences, without the mark of an item.
fn sentences(text: &str) -> Vec<String> {
    let text = text.trim_start_matches("- ").trim_start_matches("[ ] ");
    let mut sentences = vec![String::new()];
    let words: Vec<_> = text.split(' ').collect();
    for (at, word) in words.iter().enumerate() {
        let sentence = sentences.last_mut().unwrap();
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let ends = word.trim_end_matches(['*', ')', '"']).ends_with(['.', '!', '?']);
        let begins =
            |next: &&str| next.starts_with(|first: char| first.is_uppercase() || "*[`\"".contains(first));
        if ends && words.get(at + 1).is_some_and(begins) {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Returns whether a sentence links to evidence or cites a source, or needs neither: it asks, or is one of
/// [`UNLINKED`].
fn has_evidence(sentence: &str) -> bool {
    sentence.contains("](")
        || SOURCES.iter().any(|source| sentence.contains(source))
        || sentence.trim_end_matches('*').ends_with('?')
        || UNLINKED.iter().any(|words| sentence.starts_with(words))
}

/// A link such as ``[`while_held`](../dlock/src/held.rs)`` names code that is in the file.
#[test]
fn code_that_links_to_a_source_is_in_it() {
    let page = page();
    let mut checked = 0;
    for link in page.split("[`").skip(1) {
        let Some((code, rest)) = link.split_once("`](") else { continue };
        let target = rest.split(')').next().and_then(|target| target.strip_prefix("../"));
        let Some(file) = target.filter(|file| file.ends_with(".rs")) else { continue };
        let name = code.rsplit("::").next().unwrap();
        assert!(read(file).contains(name), "{file} has no {name}");
        checked += 1;
    }
    assert!(checked > 8, "the page has lost links to code: {checked} are left");
}

#[test]
fn each_row_of_exercise_4_has_a_run_of_its_own() {
    let page = page();
    let table = page.split("| case | lease? |").nth(1).expect("the page has lost exercise 4");
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), CLASSIFIED.len());
    for ((case, file, shows), row) in CLASSIFIED.iter().zip(rows) {
        assert!(row.starts_with(&format!("| {case} |")), "{case} is due: {row}");
        assert!(row.contains(&format!("](../{file})")) && row.contains(&format!("`{shows}`")), "{row}");
        assert!(read(file).contains(&format!("\"{shows}\"")), "{file} does not show {shows:?}");
    }
}

#[test]
fn each_pattern_has_the_right_way_beside_the_wrong_one() {
    let text = read(PATTERNS);
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert!(sections.len() >= 10, "{PATTERNS} has lost sections: {} are left", sections.len());
    for section in sections {
        let name = section.lines().next().unwrap();
        let table = section.lines().skip_while(|line| !line.starts_with("| | the right way"));
        let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 4 && rows[0].contains(" | the wrong way"), "{name}: {} rows", rows.len());
        for row in &rows[2..] {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            let [_, right, wrong] = cells.as_slice() else {
                panic!("{name}: a row without three cells: {row}")
            };
            for way in [right, wrong] {
                let has_evidence = way.contains("](") || way.contains("same schedule");
                assert!(has_evidence || way.contains("No schedule"), "{name}: a way without evidence: {way}");
            }
        }
    }
}

/// Returns the paragraphs and the items of lists, each in one line. Headings, tables, comments and blocks of
/// code are none.
fn paragraphs(page: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for line in page.lines().map(str::trim_start) {
        let is_fence = line.starts_with("```");
        if in_code || is_fence || line.is_empty() || line.starts_with(['#', '|', '<']) {
            in_code ^= is_fence;
            is_open = false;
        } else if is_open && !line.starts_with("- ") {
            let paragraph = paragraphs.last_mut().unwrap();
            *paragraph = format!("{paragraph} {line}");
        } else {
            paragraphs.push(line.to_owned());
            is_open = true;
        }
    }
    paragraphs
}

/// Returns a row of the table of the retry storm.
fn row(waiters: &str, name: &str) -> String {
    let report = case(name).run(Arm::Fenced);
    let grants = report.summary().grants;
    let last = report.events.iter().rfind(|event| event.process.as_str() == "resource").unwrap();
    format!(
        "| [{waiters}](../seeds/{name}.toml) | {} | {} | {:.1} s |",
        report.commands,
        report.commands / grants,
        last.at.0 as f64 / 1e9
    )
}

#[test]
fn the_page_shows_the_figures_of_the_storm() {
    let page = page();
    for row in [
        row("ask every millisecond", "retry-storm"),
        row("back off, with jitter", "retry-storm-backoff"),
        row("are woken by a release", "retry-storm-called"),
    ] {
        assert!(page.contains(&row), "the page lacks\n{row}");
    }
}

#[test]
fn a_retry_storm_costs_many_times_the_requests_of_backoff() {
    let [storm, backoff, called] = ["retry-storm", "retry-storm-backoff", "retry-storm-called"]
        .map(|name| case(name).run(Arm::Fenced).commands);
    assert!(storm > 20 * backoff && storm > 8 * called, "{storm} {backoff} {called}");
}

/// Returns the times of the events of `process` that `is_meant` accepts.
fn times(report: &Report, process: &str, is_meant: impl Fn(&Kind) -> bool) -> Vec<Duration> {
    let of = |event: &&Event| event.process.as_str() == process && is_meant(&event.kind);
    report.events.iter().filter(of).map(|event| Duration::from_nanos(event.at.0)).collect()
}

#[test]
fn the_watchdog_renews_every_third_and_stops_before_the_lease_ends() {
    let report = case("exercise-3-watchdog").run(Arm::Fenced);
    let renewed = times(report, "a", |kind| matches!(kind, Kind::LeaseRenewed { .. }));
    let failed = times(report, "a", |kind| matches!(kind, Kind::LeaseRenewFailed { .. }));
    let left = times(report, "a", |kind| matches!(kind, Kind::SectionLeft { .. }));
    let expired = times(report, "redis-1", |kind| matches!(kind, Kind::KeyExpired { .. }));
    let third = Duration::from_secs(1);
    let near = |found: Duration, due: Duration| found.abs_diff(due) < Duration::from_millis(20);
    assert!(near(renewed[0], third) && near(renewed[1], 2 * third), "{renewed:?}");
    assert!(
        !failed.is_empty() && failed[0] < left[0] && left[0] < expired[0],
        "{failed:?} {left:?} {expired:?}"
    );
}

#[test]
fn the_shutdown_releases_long_before_the_ttl() {
    let report = case("exercise-3-shutdown").run(Arm::Fenced);
    let granted = times(report, "b", |kind| matches!(kind, Kind::LeaseAcquired { .. }));
    assert!(granted[0] < Duration::from_millis(1500), "{granted:?}");
}

#[test]
fn failed_acquires_do_not_raise_the_counter() {
    let report = case("exercise-2-fencing").run(Arm::Fenced);
    let gave_up = times(report, "c", |kind| matches!(kind, Kind::LeaseNotAcquired { .. }));
    assert_eq!(gave_up.len(), 1);
    // The two grants take a dozen commands; the rest are of acquires that found the lock taken.
    assert!(report.commands > 40, "{}", report.commands);
    assert_eq!(report.summary().accepted[0].token, 2);
}
