//! A worker that only reads, beside one that writes under the lock.

use lab::{Arm, Options, System, Worker, WorkerMode, run, schedule};
use sim::{Schedule, Span};

fn reader() -> Worker {
    let think = Span::from_millis(20);
    Worker { mode: WorkerMode::new("read"), rounds: 8, think, ..Worker::new("r") }
}

fn beside_a_writer(reader: Worker) -> Schedule<Options> {
    let writer = Worker { rounds: 3, think: Span::from_millis(10), ..Worker::new("a") };
    schedule("reads", System::REDIS, Span::from_secs(2), vec![writer, reader])
}

#[test]
fn a_reader_sees_versions_in_order_and_writes_nothing() {
    let report = run(&beside_a_writer(reader()), Arm::Fenced, 5).unwrap();
    let trace = report.trace();
    let versions: Vec<u64> = trace
        .lines()
        .filter_map(|line| line.split_once("GET orders:42 r → version "))
        .map(|(_, version)| version.trim().parse().unwrap())
        .collect();
    assert_eq!(versions.len(), 8, "{trace}");
    assert!(versions.is_sorted() && versions.first() < versions.last(), "{versions:?}");
    assert_eq!(report.summary().grants, 3, "only the writer takes the lock");
    assert_eq!(report.verdicts, []);
}

#[test]
fn a_reader_with_options_of_locks_is_refused() {
    let with_token = Worker { writes: 2, ..reader() };
    let error = run(&beside_a_writer(with_token), Arm::Fenced, 5).unwrap_err().to_string();
    assert!(error.contains("`writes` does not apply to `mode = \"read\"`"), "{error}");
    let hasty = Worker { attempts: Some(2), ..reader() };
    let error = run(&beside_a_writer(hasty), Arm::Fenced, 5).unwrap_err().to_string();
    assert!(error.contains("`attempts` does not apply to `mode = \"read\"`"), "{error}");
}
