//! Programs on tokio's interface run in the processes of a world: their tasks, timers and connections are the
//! world's, with its faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use sim::faults::{Crash, Fault, Pause, Trigger};
use sim::{Process, Report, RunError, Sim, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Answers each line on port 7000 with its length, for ever.
async fn serve() {
    let listener = TcpListener::bind("0.0.0.0:7000").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let mut bytes = [0; 64];
            while let Ok(length @ 1..) = read.read(&mut bytes).await {
                write.write_all(length.to_string().as_bytes()).await.unwrap();
            }
        });
    }
}

/// Sends `words` to the server, and returns its answer.
async fn ask(words: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect("answers:7000").await?;
    stream.write_all(words.as_bytes()).await?;
    let mut bytes = [0; 64];
    let length = stream.read(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Runs a process `a` beside the server.
fn run<F: Future<Output = ()> + Send + 'static>(
    main: impl Fn() -> F + Send + Sync + 'static,
) -> Result<Report, RunError> {
    world(main).run()
}

fn world<F: Future<Output = ()> + Send + 'static>(main: impl Fn() -> F + Send + Sync + 'static) -> Sim {
    let mut sim = Sim::new(7);
    sim.service("answers", |_| serve()).process("a", move |_| main());
    sim
}

#[test]
fn a_client_and_a_server_talk() {
    let report = run(|| async {
        sim::point(&format!("got {}", ask("hello").await.unwrap()));
    });
    assert!(report.unwrap().trace().contains("got 5"));
}

#[test]
fn a_client_gets_errors_of_the_network() {
    let report = run(|| async {
        let nobody = TcpStream::connect("nobody:7000").await.unwrap_err();
        let refused = TcpStream::connect(("answers", 1)).await.unwrap_err();
        let nowhere = TcpStream::connect("192.0.2.1:80").await.unwrap_err();
        sim::point(&format!("{:?} {:?} {:?}", nobody.kind(), refused.kind(), nowhere.kind()));
    });
    assert!(report.unwrap().trace().contains("NotFound ConnectionRefused HostUnreachable"));
}

#[test]
fn both_ends_know_their_addresses() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(port, 20_000);
        let (stream, peer) = listener.accept().await.unwrap();
        sim::point(&format!("{peer} reaches {}", stream.local_addr().unwrap()));
    });
    sim.process("a", |_| async {
        let stream = TcpStream::connect("b:20000").await.unwrap();
        sim::point(&format!("{} reaches {}", stream.local_addr().unwrap(), stream.peer_addr().unwrap()));
    });
    let trace = sim.run().unwrap().trace();
    assert_eq!(trace.matches("10.0.0.2:32768 reaches 10.0.0.1:20000").count(), 2, "{trace}");
}

#[test]
fn timers_use_the_clock_of_the_process() {
    let report = run(|| async {
        let begun = Instant::now();
        sleep(Duration::from_millis(250)).await;
        let slept = begun.elapsed();
        assert!((250..252).contains(&slept.as_millis()), "{slept:?}");
        let late = timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
        assert_eq!(late.unwrap_err().to_string(), "deadline has elapsed");
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        let first = ticks.tick().await;
        ticks.tick().await;
        assert_eq!(ticks.tick().await - first, Duration::from_millis(200));
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn tasks_are_joined_and_aborted_and_their_panics_are_caught() {
    let report = run(|| async {
        assert_eq!(tokio::spawn(async { 4 }).await.unwrap(), 4);
        let panicked = tokio::spawn(async { panic!("lost") }).await.unwrap_err();
        assert!(panicked.is_panic());
        let stuck = tokio::spawn(std::future::pending::<()>());
        stuck.abort();
        assert!(stuck.await.unwrap_err().is_cancelled());
        let mut set: JoinSet<u64> = (1..=3)
            .map(|n| async move {
                sleep(Duration::from_millis(10 * (4 - n))).await;
                n
            })
            .collect();
        let mut ended = Vec::new();
        while let Some(joined) = set.join_next().await {
            ended.push(joined.unwrap());
        }
        assert_eq!(ended, [3, 2, 1]);
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn code_that_blocks_waits_while_others_run() {
    let report = Sim::new(7)
        .service("answers", |_| serve())
        .process("a", |process: Process| async move {
            process
                .blocking(|| {
                    let runtime = tokio::runtime::Runtime::new().unwrap();
                    let answer = runtime.block_on(async {
                        let inner = tokio::task::spawn_blocking(|| {
                            tokio::runtime::Handle::current().block_on(ask("blocked"))
                        });
                        inner.await.unwrap()
                    });
                    sim::point(&format!("got {}", answer.unwrap()));
                })
                .await;
        })
        .run();
    assert!(report.unwrap().trace().contains("got 7"));
}

#[test]
fn a_task_that_blocks_is_refused() {
    let error = run(|| async {
        tokio::runtime::Runtime::new().unwrap().block_on(async {});
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("Cannot start a runtime from within a runtime"), "{error}");
    assert!(error.contains("tests/all/processes.rs"), "{error}");
}

/// A value that notes when it is dropped.
struct Told(Arc<AtomicBool>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_crash_drops_all_tasks_and_blocked_stacks() {
    let (tasks, stacks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let lives = Arc::new(AtomicU32::new(0));
    let (task, stack, life) = (Arc::clone(&tasks), Arc::clone(&stacks), Arc::clone(&lives));
    let mut sim = Sim::new(7);
    sim.process("a", move |process: Process| {
        let (task, stack) = (Told(Arc::clone(&task)), Told(Arc::clone(&stack)));
        let is_first = life.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if !is_first {
                return;
            }
            tokio::spawn(async move {
                let _told = task;
                std::future::pending::<()>().await;
            });
            sleep(Duration::from_millis(1)).await;
            process.point("both wait");
            process
                .blocking(move || {
                    let _told = stack;
                    tokio::runtime::Runtime::new().unwrap().block_on(sleep(Duration::from_secs(5)));
                })
                .await;
        }
    });
    let crash = Crash { restart_after: Some(Span::from_secs(1)), ..Crash::of("a") };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(500)), crash));
    sim.run().unwrap();
    assert_eq!(lives.load(Ordering::Relaxed), 2);
    assert!(tasks.load(Ordering::Relaxed) && stacks.load(Ordering::Relaxed));
}

#[test]
fn a_pause_stops_tasks_that_wake_each_other() {
    let mut sim = world(|| async {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(begun) = receiver.recv().await {
                let gap = Instant::now() - begun;
                assert!(gap < Duration::from_millis(50) || gap >= Duration::from_secs(3), "{gap:?}");
            }
        });
        for _ in 0..100 {
            sender.send(Instant::now()).unwrap();
            tokio::task::yield_now().await;
            sleep(Duration::from_millis(10)).await;
        }
        sim::point("done");
    });
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(3)) };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(505)), pause));
    let report = sim.run().unwrap();
    assert!(report.trace().contains("done"));
}

#[test]
fn a_connection_is_not_writable_during_a_pause() {
    let mut sim = world(|| async {
        let stream = TcpStream::connect("answers:7000").await.unwrap();
        stream.writable().await.unwrap();
        let begun = Instant::now();
        sim::point("connected");
        stream.writable().await.unwrap();
        sim::point(&format!("writable after {} s", begun.elapsed().as_secs()));
    });
    let when =
        Trigger::After { process: "a".to_owned(), point: "connected".to_owned(), nth: 1, plus: Span::ZERO };
    sim.fault(Fault::new(when, Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(3)) }));
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("writable after 3 s"), "{trace}");
}

#[test]
fn a_connection_passes_through_the_type_of_the_standard_library() {
    let report = run(|| async {
        let stream = TcpStream::connect("answers:7000").await.unwrap();
        let stream = stream.into_std().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = TcpStream::from_std(stream).unwrap();
        assert!(stream.nodelay().unwrap());
        stream.write_all(b"four").await.unwrap();
        let mut bytes = [0; 1];
        assert_eq!(stream.peek(&mut bytes).await.unwrap(), 1);
        stream.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"4");
        sim::point("done");
    });
    assert!(report.unwrap().trace().contains("done"));
}

#[test]
fn a_run_repeats() {
    let traces = [0, 1].map(|_| {
        let mut sim = world(|| async {
            let mut set: JoinSet<()> = (0..20)
                .map(|n| async move {
                    let answer = ask(&"x".repeat(n + 1)).await.unwrap();
                    sim::point(&format!("task {n} got {answer}"));
                })
                .collect();
            while set.join_next().await.is_some() {}
        });
        sim.run().unwrap().trace()
    });
    assert_eq!(traces[0], traces[1]);
    assert!(traces[0].contains("task 19 got 20"));
}

#[test]
fn a_process_ends_with_its_main() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        let listener = TcpListener::bind("0.0.0.0:7000").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        sim::point(&format!("heard {} and the end", String::from_utf8_lossy(&bytes)));
    });
    sim.process("a", |_| async {
        let mut stream = TcpStream::connect("b:7000").await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            drop(stream.write_all(b"never").await);
        });
        tokio::task::yield_now().await;
    });
    sim.process("c", |_| async { sleep(Duration::from_secs(3)).await });
    assert!(sim.run().unwrap().trace().contains("heard hello and the end"));
}
