//! Files of a machine: they outlive a crash of the process, and lose in a power loss what was not synced.

use std::collections::BTreeSet;
use std::io::{ErrorKind, SeekFrom};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use sim::faults::{Crash, Fault, Pause, Trigger};
use sim::{Report, RunError, Sim, Span};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::time::sleep;

/// Runs a process.
fn run<F: Future<Output = ()> + Send + 'static>(
    main: impl Fn() -> F + Send + Sync + 'static,
) -> Result<Report, RunError> {
    Sim::new(7).process("a", move |_| main()).run()
}

/// Runs `before` in the first life of a process, whose machine then crashes, and `after` in the second.
fn crashed<B, A>(
    seed: u64,
    power_loss: bool,
    before: impl Fn() -> B + Send + Sync + 'static,
    after: impl Fn() -> A + Send + Sync + 'static,
) -> Report
where
    B: Future<Output = ()> + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let lives = AtomicU32::new(0);
    let mut sim = Sim::new(seed);
    sim.process("a", move |_| {
        let is_first = lives.fetch_add(1, Ordering::Relaxed) == 0;
        let (before, after) = (is_first.then(&before), (!is_first).then(&after));
        async move {
            if let Some(before) = before {
                before.await;
                sim::point("before");
                std::future::pending::<()>().await;
            }
            if let Some(after) = after {
                after.await;
                sim::point("after");
            }
        }
    });
    let restart_after = Some(Span::from_secs(1));
    let crash = Crash { power_loss, restart_after, ..Crash::of("a") };
    sim.fault(Fault::new(Trigger::At(Span::from_secs(1)), crash));
    let report = sim.run().unwrap();
    let trace = report.trace();
    assert!(trace.contains("before") && trace.contains("after"), "{trace}");
    report
}

/// Returns the points that begin with `got`, from runs of many seeds.
fn got_in_seeds<B, A>(
    before: impl Fn() -> B + Copy + Send + Sync + 'static,
    after: impl Fn() -> A + Copy + Send + Sync + 'static,
) -> BTreeSet<String>
where
    B: Future<Output = ()> + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let got = |seed| {
        let trace = crashed(seed, true, before, after).trace();
        let line = trace.lines().find(|line| line.contains("got")).unwrap();
        line.split("got ").nth(1).unwrap().to_owned()
    };
    (0..40).map(got).collect()
}

#[test]
fn a_file_is_written_read_and_removed() {
    let report = run(|| async {
        fs::create_dir_all("/var/lib/app/data").await.unwrap();
        fs::write("/var/lib/app/data/a", "one").await.unwrap();
        assert_eq!(fs::read_to_string("var/lib/app/../app/data/a").await.unwrap(), "one");
        fs::rename("/var/lib/app/data/a", "/var/lib/app/data/b").await.unwrap();
        assert_eq!(fs::copy("/var/lib/app/data/b", "/tmp/c").await.unwrap(), 3);
        let gone = fs::read("/var/lib/app/data/a").await.unwrap_err();
        assert_eq!((gone.kind(), gone.raw_os_error()), (ErrorKind::NotFound, Some(2)));
        assert!(fs::try_exists("/tmp/c").await.unwrap());
        assert!(!fs::try_exists("/tmp/d").await.unwrap());
        let full = fs::remove_dir("/var/lib/app").await.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir_all("/var/lib/app").await.unwrap();
        assert!(!fs::try_exists("/var/lib/app").await.unwrap());
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn a_handle_reads_writes_and_seeks() {
    let report = run(|| async {
        let mut file = File::create_new("/tmp/a").await.unwrap();
        assert_eq!(File::create_new("/tmp/a").await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        file.write_all(b"hello world").await.unwrap();
        file.seek(SeekFrom::Start(6)).await.unwrap();
        let mut word = String::new();
        file.read_to_string(&mut word).await.unwrap();
        assert_eq!(word, "world");
        // A clone shares the position.
        let mut clone = file.try_clone().await.unwrap();
        clone.seek(SeekFrom::Current(-5)).await.unwrap();
        file.write_all(b"W").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(fs::read("/tmp/a").await.unwrap(), b"hello World");
        file.set_len(5).await.unwrap();
        let mut log = OpenOptions::new().append(true).open("/tmp/a").await.unwrap();
        log.write_all(b"!").await.unwrap();
        log.flush().await.unwrap();
        assert_eq!(fs::read("/tmp/a").await.unwrap(), b"hello!");
        assert_eq!(file.metadata().await.unwrap().len(), 6);
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn a_write_goes_on_after_its_handle_is_dropped() {
    let report = run(|| async {
        let mut file = File::create("/tmp/a").await.unwrap();
        file.write_all(b"late").await.unwrap();
        let other = File::open("/tmp/a").await.unwrap();
        drop(file);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(other.metadata().await.unwrap().len(), 4);
        let mut file = File::create("/tmp/b").await.unwrap();
        assert_eq!(file.write(b"late").await.unwrap(), 4);
        file.flush().await.unwrap();
        assert_eq!(fs::metadata("/tmp/b").await.unwrap().len(), 4);
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn an_operation_goes_on_without_its_caller() {
    let report = run(|| async {
        {
            let mut write = std::pin::pin!(fs::write("/tmp/a", "kept"));
            let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(write.as_mut().poll(cx))).await;
            assert!(begun.is_pending());
        }
        sleep(Duration::from_millis(1)).await;
        assert_eq!(fs::read("/tmp/a").await.unwrap(), b"kept");
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn metadata_has_the_methods_of_the_standard_library() {
    let report = run(|| async {
        fs::write("/tmp/a", "12345").await.unwrap();
        fs::set_permissions("/tmp/a", std::fs::Permissions::from_mode(0o600)).await.unwrap();
        fs::hard_link("/tmp/a", "/tmp/b").await.unwrap();
        fs::symlink("b", "/tmp/link").await.unwrap();
        let found = fs::metadata("/tmp/link").await.unwrap();
        assert!(found.is_file() && !found.permissions().readonly());
        assert_eq!((found.len(), found.mode(), found.nlink()), (5, 0o100_600, 2));
        let elapsed = found.modified().unwrap().elapsed().unwrap();
        assert!(elapsed < Duration::from_millis(1), "{elapsed:?}");
        assert!(fs::symlink_metadata("/tmp/link").await.unwrap().is_symlink());
        assert_eq!(fs::canonicalize("/tmp/link").await.unwrap().to_str(), Some("/tmp/b"));
        let mut names = Vec::new();
        let mut entries = fs::read_dir("/tmp").await.unwrap();
        while let Some(entry) = entries.next_entry().await.unwrap() {
            names
                .push((entry.file_name().into_string().unwrap(), entry.file_type().await.unwrap().is_file()));
        }
        names.sort();
        let expected = [("a", true), ("b", true), ("link", false)];
        assert_eq!(names, expected.map(|(name, is_file)| (name.to_owned(), is_file)));
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn files_outlive_a_crash_of_their_process() {
    crashed(
        7,
        false,
        || async { fs::write("/tmp/a", "written").await.unwrap() },
        || async { assert_eq!(fs::read("/tmp/a").await.unwrap(), b"written") },
    );
}

#[test]
fn a_power_loss_keeps_what_was_synced() {
    let before = || async {
        let mut file = File::create("/tmp/new").await.unwrap();
        file.write_all(&[7; 10_000]).await.unwrap();
        file.sync_all().await.unwrap();
        fs::rename("/tmp/new", "/tmp/a").await.unwrap();
        File::open("/tmp").await.unwrap().sync_all().await.unwrap();
    };
    let after = || async {
        let is_whole = fs::read("/tmp/a").await.unwrap() == [7; 10_000];
        sim::point(&format!("got {is_whole} {}", fs::try_exists("/tmp/new").await.unwrap()));
    };
    assert_eq!(got_in_seeds(before, after), BTreeSet::from(["true false".to_owned()]));
}

#[test]
fn a_power_loss_tears_writes_that_were_not_synced() {
    let before = || async {
        let mut file = File::create("/tmp/a").await.unwrap();
        file.write_all(&[b'1'; 12_288]).await.unwrap();
        file.sync_all().await.unwrap();
        file.seek(SeekFrom::Start(0)).await.unwrap();
        file.write_all(&[b'2'; 12_288]).await.unwrap();
        file.flush().await.unwrap();
    };
    let after = || async {
        let bytes = fs::read("/tmp/a").await.unwrap();
        let firsts: String = bytes.iter().step_by(4096).map(|byte| char::from(*byte)).collect();
        sim::point(&format!("got {firsts}"));
    };
    let got = got_in_seeds(before, after);
    for torn in ["111", "222", "121", "112"] {
        assert!(got.contains(torn), "{got:?}");
    }
}

#[test]
fn a_power_loss_may_take_a_rename_that_was_not_synced() {
    let before = || async {
        fs::write("/tmp/a", "old").await.unwrap();
        fs::write("/tmp/new", "new").await.unwrap();
        for path in ["/tmp/a", "/tmp/new"] {
            File::open(path).await.unwrap().sync_all().await.unwrap();
        }
        fs::rename("/tmp/new", "/tmp/a").await.unwrap();
    };
    let after = || async {
        sim::point(&format!("got {}", fs::read_to_string("/tmp/a").await.unwrap()));
    };
    assert_eq!(got_in_seeds(before, after), BTreeSet::from(["new".to_owned(), "old".to_owned()]));
}

#[test]
fn a_pause_stops_an_operation() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        let begun = SystemTime::now();
        let mut write = std::pin::pin!(fs::write("/tmp/a", "x"));
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(write.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        sim::point("begun");
        write.await.unwrap();
        let written = fs::metadata("/tmp/a").await.unwrap().modified().unwrap();
        let took = written.duration_since(begun).unwrap();
        assert!(took >= Duration::from_secs(3), "{took:?}");
        sim::point("done");
    });
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(3)) };
    let (process, point) = ("a".to_owned(), "begun".to_owned());
    sim.fault(Fault::new(Trigger::After { process, point, nth: 1, plus: Span::ZERO }, pause));
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn real_files_are_refused() {
    let error = run(|| async {
        let file = File::create("/tmp/a").await.unwrap();
        assert!(file.try_into_std().is_err());
        tokio::task::yield_now().await;
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("tokio::fs::File::try_into_std"), "{error}");
    assert!(error.contains("tests/all/files.rs"), "{error}");
}

#[test]
fn a_run_with_files_repeats() {
    let traces = [0, 1].map(|_| {
        let before = || async {
            let tasks = (0..5).map(|n| async move {
                for round in 0..5 {
                    fs::write(format!("/tmp/{}", (n + round) % 3), vec![n; 9000]).await.unwrap();
                }
            });
            let tasks: tokio::task::JoinSet<()> = tasks.collect();
            tasks.join_all().await;
        };
        let after = || async {
            for n in 0..3 {
                let read = fs::read(format!("/tmp/{n}")).await.unwrap_or_default();
                sim::point(&format!("{} {:?}", read.len(), read.first()));
            }
        };
        crashed(3, true, before, after).trace()
    });
    assert_eq!(traces[0], traces[1]);
}
