//! The pages of the experiments and of the comparison, and the table of the guide: the committed ones agree
//! with the committed results, and other results give other ones.

use std::fs;
use std::path::{Path, PathBuf};

use real::experiments::{ALL, Page};
use real::servers::Stage;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn the_committed_page_agrees_with_the_committed_results() {
    let page = Page::of(&root().join("real/results")).unwrap();
    let differing = page.differing(&root().join("docs"));
    assert_eq!(differing, <[PathBuf; 0]>::default(), "run `cargo run -p fencepost-real -- report`");
}

#[test]
fn another_result_gives_another_page() {
    let stage = Stage::new().unwrap();
    let results = stage.subdirectory("results").unwrap();
    let committed = root().join("real/results/experiment-1.json");
    let record = fs::read_to_string(committed).unwrap();
    let broken = record.replacen(r#""value_of": "b""#, r#""value_of": "a""#, 1);
    assert_ne!(record, broken);
    fs::write(results.join("experiment-1.json"), &record).unwrap();
    let docs = stage.subdirectory("docs").unwrap();
    Page::of(&results).unwrap().write(&docs).unwrap();
    assert!(Page::of(&results).unwrap().differing(&docs).is_empty());

    fs::write(results.join("experiment-1.json"), &broken).unwrap();
    let page = Page::of(&results).unwrap();
    assert_eq!(page.differing(&docs), [docs.join("experiments.md")]);
    page.write(&docs).unwrap();
    let text = fs::read_to_string(docs.join("experiments.md")).unwrap();
    assert!(text.contains("✗ NOT AS EXPECTED, this does not hold: with fencing"), "{text}");

    fs::write(results.join("experiment-1.json"), "{}").unwrap();
    let error = Page::of(&results).unwrap_err().to_string();
    assert!(error.contains("experiment-1.json: these results don't fit experiment 1"), "{error}");
}

#[test]
fn another_comparison_gives_another_page() {
    let stage = Stage::new().unwrap();
    let results = stage.subdirectory("results").unwrap();
    let docs = stage.subdirectory("docs").unwrap();
    let record = fs::read_to_string(root().join("real/results/peers.json")).unwrap();
    fs::write(results.join("peers.json"), &record).unwrap();
    Page::of(&results).unwrap().write(&docs).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&record).unwrap();
    other["rows"][0]["acquire_p50_ns"] = 123_456.into();
    fs::write(results.join("peers.json"), other.to_string()).unwrap();
    assert_eq!(Page::of(&results).unwrap().differing(&docs), [docs.join("peers.md")]);

    fs::write(results.join("peers.json"), "{}").unwrap();
    let error = Page::of(&results).unwrap_err().to_string();
    assert!(error.contains("peers.json: no results of `real peers`"), "{error}");
}

#[test]
fn other_results_give_another_table_in_the_guide() {
    let stage = Stage::new().unwrap();
    let results = stage.subdirectory("results").unwrap();
    let docs = stage.subdirectory("docs").unwrap();
    let guide = docs.join("decide.md");
    fs::copy(root().join("docs/decide.md"), &guide).unwrap();
    fs::copy(root().join("real/results/experiment-3.json"), results.join("experiment-3.json")).unwrap();
    let page = Page::of(&results).unwrap();
    assert!(page.differing(&docs).contains(&guide));
    assert!(page.write(&docs).unwrap().contains(&guide));
    assert_eq!(page.differing(&docs), <[PathBuf; 0]>::default());
    let text = fs::read_to_string(&guide).unwrap();
    assert_eq!(text.matches("| no results yet |").count(), ALL.len() - 1);

    fs::write(&guide, "a guide without a place").unwrap();
    assert_eq!(page.differing(&docs), [guide.as_path()]);
    let error = page.write(&docs).unwrap_err().to_string();
    assert!(error.contains("decide.md: there is no table between the lines"), "{error}");
    assert_eq!(fs::read_to_string(&guide).unwrap(), "a guide without a place");
}

#[test]
fn results_of_busy_or_different_machines_or_servers_are_refused() {
    let stage = Stage::new().unwrap();
    let results = stage.subdirectory("results").unwrap();
    for file in ["experiment-1.json", "experiment-2.json", "peers.json"] {
        fs::copy(root().join("real/results").join(file), results.join(file)).unwrap();
    }
    Page::of(&results).unwrap();
    let cases: [(&str, serde_json::Value, &str); 4] = [
        ("load_average", 1.01.into(), "measured at a load average of 1.01, and a page needs at most 1;"),
        ("build", "debug".into(), "measured by a debug build; measure it again with --release"),
        ("kernel", "5.0".into(), "measured on another machine than"),
        ("cores", 64.into(), "experiment-1.json: 64 cores ("),
    ];
    for file in ["experiment-2.json", "peers.json"] {
        let record = fs::read_to_string(results.join(file)).unwrap();
        for (field, value, words) in &cases {
            let mut other: serde_json::Value = serde_json::from_str(&record).unwrap();
            other["machine"][field] = value.clone();
            fs::write(results.join(file), other.to_string()).unwrap();
            let error = Page::of(&results).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains(words), "{error}");
        }
        let mut other: serde_json::Value = serde_json::from_str(&record).unwrap();
        other["software"]["servers"]["Redis"] = "8.0.0".into();
        fs::write(results.join(file), other.to_string()).unwrap();
        let error = Page::of(&results).unwrap_err().to_string();
        let words = "measured on Redis 8.0.0, and ";
        assert!(error.contains(&format!("{file}: {words}")), "{error}");
        assert!(error.contains("experiment-1.json on Redis 7.0.15; measure both on one version"), "{error}");
        // A server that was not installed then is no difference.
        other["software"]["servers"].as_object_mut().unwrap().remove("Redis");
        fs::write(results.join(file), other.to_string()).unwrap();
        Page::of(&results).unwrap();
        fs::write(results.join(file), record).unwrap();
    }
}

#[test]
fn the_committed_configurations_are_the_ones_compiled_in() {
    for experiment in ALL {
        let path = root().join(format!("real/experiments/{}.toml", experiment.number()));
        assert_eq!(fs::read_to_string(&path).unwrap(), experiment.committed(), "{}", path.display());
    }
}

#[test]
fn results_that_cannot_be_read_are_an_error() {
    let stage = Stage::new().unwrap();
    let results = stage.subdirectory("results").unwrap();
    fs::create_dir(results.join("experiment-1.json")).unwrap();
    let error = Page::of(&results).unwrap_err().to_string();
    assert!(error.contains("experiment-1.json: ") && error.contains("make it readable"), "{error}");
}
