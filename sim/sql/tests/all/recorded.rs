//! The engine against answers that a live PostgreSQL 15 gave: `tests/record` writes them into the scripts.

use std::path::Path;

use crate::driver::{self, Driver};

/// Runs the script of each file, and compares all answers.
#[test]
fn answers_are_those_of_postgresql() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 5, "there are recorded scripts");
    let only = std::env::var("RECORDED").ok();
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let recorded = std::fs::read_to_string(&file).unwrap();
        let answered = Driver::default().run(&recorded);
        let differences = driver::differences(&recorded, &answered);
        if !differences.is_empty() {
            wrong.push(format!("{name}:\n{differences}"));
        }
    }
    assert!(wrong.is_empty(), "- is recorded, + is answered\n{}", wrong.join("\n"));
}
