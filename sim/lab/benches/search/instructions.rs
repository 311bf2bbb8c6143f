//! Counts instructions with valgrind's callgrind: unlike time, they are the same on every machine of a kind.

use std::process::Command;

/// Returns the instructions of one unit of work. This program is run twice under callgrind, with the
/// arguments `work` and each of the `counts`; the difference leaves out what the program does once.
pub(crate) fn of_one<const N: usize>(work: [&str; N], counts: [u64; 2]) -> f64 {
    let [few, many] = counts.map(|count| of_program(&work, count));
    (many - few) as f64 / (counts[1] - counts[0]) as f64
}

/// Returns the instructions of this program with the arguments `work` and `count`.
fn of_program(work: &[&str], count: u64) -> u64 {
    let out = std::env::temp_dir().join(format!("callgrind-{}-{count}", std::process::id()));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(work)
        .arg(count.to_string())
        .output()
        .expect("valgrind can't be run: install it, such as by `apt-get install valgrind`");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let profile = std::fs::read_to_string(&out).expect("callgrind writes its file");
    let _ = std::fs::remove_file(out);
    let totals = profile.lines().find_map(|line| line.strip_prefix("totals: ")).expect("its file has totals");
    totals.trim().parse().expect("the total is a number")
}
