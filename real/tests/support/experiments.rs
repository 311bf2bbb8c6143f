//! Runs an experiment as the command does.

use std::process::Command;

use real::experiments::find;
use real::servers::Stage;
use serde_json::Value;

/// The exit code, output and results file of `real experiment`.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) printed: String,
    pub(crate) record: String,
}

/// Runs `real experiment NUMBER ARGUMENTS…`.
pub(crate) fn experiment(number: u32, arguments: &[&str]) -> Ran {
    let stage = Stage::new().unwrap();
    let file = stage.directory().join("results.json");
    let output = Command::new(env!("CARGO_BIN_EXE_real"))
        .args(["experiment", &number.to_string()])
        .args(arguments)
        .arg("--out")
        .arg(&file)
        .output()
        .unwrap();
    let printed =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ran { code: output.status.code(), printed, record: std::fs::read_to_string(&file).unwrap_or_default() }
}

impl Ran {
    /// Returns the findings; fails the test if the run was not as expected.
    pub(crate) fn findings(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.printed);
        let wide =
            self.printed.lines().find(|line| line.chars().count() > 80 && !line.starts_with("raw results"));
        assert_eq!(wide, None, "a line of more than 80 columns");
        let record: Value = serde_json::from_str(&self.record).unwrap();
        assert_eq!(record["as_expected"], true, "{record}");
        record["findings"].clone()
    }

    /// Returns true if the results are as expected after `change`.
    pub(crate) fn is_expected_after(&self, number: u32, change: impl FnOnce(&mut Value)) -> bool {
        let mut record: Value = serde_json::from_str(&self.record).unwrap();
        change(&mut record["findings"]);
        let chapter = find(number).unwrap().chapter(&record.to_string()).unwrap();
        chapter.section.as_expected()
    }
}
