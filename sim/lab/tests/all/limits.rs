//! Numbers and files beyond all limits are refused at once, with the limit.

use std::path::{Path, PathBuf};

fn saved(name: &str, text: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn problem(text: &str) -> String {
    lab::parse("many.toml", text).unwrap_err().to_string()
}

#[test]
fn ten_thousand_workers_are_too_many() {
    let worker = |number: u64| format!("[[worker]]\nname = \"w{number}\"\n");
    let text = format!("system = \"redis\"\nttl = \"2s\"\n{}", (0..10_000).map(worker).collect::<String>());
    let problem = problem(&text);
    assert!(problem.contains("10000 workers are too many: one run has memory for 500"), "{problem}");
}

#[test]
fn a_schedule_file_of_two_megabytes_is_not_read() {
    let file = saved("huge.toml", &"# nothing\n".repeat(200_000));
    let error = lab::museum::load(&file).unwrap_err().to_string();
    assert!(error.contains("the file has 2000000 bytes, and a schedule at most 1048576"), "{error}");
}

#[test]
fn a_million_threads_are_refused() {
    for threads in ["0", "1000000", "18446744073709551615"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sim"));
        let output = command.args(["explore", "--seeds", "1", "--threads", threads]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("1..=1024"), "{error}");
    }
}
