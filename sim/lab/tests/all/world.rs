//! The world: clocks, links, pauses and crashes, as two processes that talk to each other see them.
//!
//! These tests call the layer below `sim::Sim`. The faults that change a world have their own tests.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::Runtime;
use history::TRUE_RATE;
use sim::entropy::Entropy;
use sim::world::World;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;
use sim::world::stream::SimStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MS: u64 = 1_000_000;
const SERVER: &str = "server:80";

/// Runs `test` in a world of a client, a server and a stranger; each segment takes 2 ms.
fn in_world<F: Future>(test: impl FnOnce(Two) -> F) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let latency = Duration::from_millis(2);
        let world = World::new(Entropy::new(1), &["client", "server", "stranger"], (latency, latency));
        let result = test(Two {
            client: ProcessId::find(&world, "client"),
            server: ProcessId::find(&world, "server"),
            world: world.clone(),
        })
        .await;
        world.end().await;
        result
    })
}

trait Find {
    fn find(world: &World, name: &str) -> ProcessId;
}

impl Find for ProcessId {
    fn find(world: &World, name: &str) -> ProcessId {
        world.find(name).unwrap()
    }
}

struct Two {
    world: World,
    client: ProcessId,
    server: ProcessId,
}

impl Two {
    /// Starts the server, which answers everything that it reads with `ok`. Returns its log: each piece that
    /// it reads, with the true time in milliseconds.
    fn serve(&self) -> Arc<Mutex<Vec<(u64, String)>>> {
        let log = Arc::new(Mutex::new(Vec::new()));
        self.world.spawn(self.server, serve(self.world.clone(), self.server, Arc::clone(&log)));
        log
    }

    async fn connect(&self) -> SimStream {
        SimRuntime::new(&self.world, self.client).connect(SERVER).await.unwrap()
    }

    async fn at(&self, millis: u64) {
        self.world.sleep_until(millis * MS).await;
    }
}

async fn serve(world: World, server: ProcessId, log: Arc<Mutex<Vec<(u64, String)>>>) {
    let mut listener = world.listen(server, SERVER).unwrap();
    loop {
        let (mut stream, _) = listener.accept().await;
        let (world, log, inner) = (world.clone(), Arc::clone(&log), world.clone());
        inner.spawn(server, async move {
            let mut buffer = [0; 64];
            loop {
                let read = stream.read(&mut buffer).await;
                let text = match &read {
                    Ok(0) => "(closed)".to_owned(),
                    Ok(length) => String::from_utf8_lossy(&buffer[..*length]).into_owned(),
                    Err(error) => error.kind().to_string(),
                };
                log.lock().unwrap().push((world.now() / MS, text));
                if !matches!(read, Ok(1..)) || stream.write_all(b"ok").await.is_err() {
                    return;
                }
            }
        });
    }
}

fn texts(log: &Mutex<Vec<(u64, String)>>) -> Vec<(u64, String)> {
    log.lock().unwrap().clone()
}

async fn answer(stream: &mut SimStream) -> Result<String, ErrorKind> {
    let mut buffer = [0; 64];
    match stream.read(&mut buffer).await {
        Ok(length) => Ok(String::from_utf8_lossy(&buffer[..length]).into_owned()),
        Err(error) => Err(error.kind()),
    }
}

#[test]
fn a_segment_takes_the_latency_of_its_link() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        stream.write_all(b"hello").await.unwrap();
        assert_eq!(answer(&mut stream).await, Ok("ok".to_owned()));
        assert_eq!(two.world.now() / MS, 8, "two segments to connect, two to ask");
        drop(stream);
        two.at(20).await;
        assert_eq!(texts(&log), [(6, "hello".to_owned()), (10, "(closed)".to_owned())]);
    });
}

#[test]
fn a_cut_link_holds_segments_until_it_heals() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        stream.write_all(b"before").await.unwrap();
        two.world.cut(two.client, two.server);
        stream.write_all(b"during").await.unwrap();
        two.at(100).await;
        assert_eq!(texts(&log), [(6, "before".to_owned())], "segments in flight arrive, later ones are held");
        two.world.heal(two.client, two.server);
        two.at(200).await;
        assert_eq!(texts(&log)[1..], [(102, "during".to_owned())]);
    });
}

#[test]
fn a_cut_in_one_direction_holds_only_the_replies() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        two.world.cut(two.server, two.client);
        stream.write_all(b"hello").await.unwrap();
        two.at(100).await;
        assert_eq!(texts(&log), [(6, "hello".to_owned())]);
        two.world.heal(two.server, two.client);
        assert_eq!(answer(&mut stream).await, Ok("ok".to_owned()));
        assert_eq!(two.world.now() / MS, 102);
    });
}

#[test]
fn a_connection_over_a_cut_link_opens_once_it_heals() {
    in_world(|two| async move {
        two.serve();
        two.world.cut(two.client, two.server);
        let world = two.world.clone();
        let (client, server) = (two.client, two.server);
        two.world.spawn(two.server, async move {
            world.sleep_until(50 * MS).await;
            world.heal(client, server);
        });
        two.connect().await;
        assert_eq!(two.world.now() / MS, 54);
    });
}

#[test]
fn delays_add_to_the_latency_and_keep_the_order() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        two.world.delay(two.client, two.server, Duration::from_millis(30));
        stream.write_all(b"slow").await.unwrap();
        two.world.undelay(two.client, two.server, Duration::from_millis(30));
        stream.write_all(b"+behind").await.unwrap();
        two.at(100).await;
        assert_eq!(texts(&log), [(36, "slow+behind".to_owned())]);
    });
}

#[test]
fn a_reset_loses_the_reply_after_the_command_ran() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        stream.write_all(b"hello").await.unwrap();
        two.at(7).await;
        assert_eq!(texts(&log).len(), 1);
        two.world.reset(two.client, two.server);
        assert_eq!(answer(&mut stream).await, Err(ErrorKind::ConnectionReset));
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_paused_process_reads_buffered_bytes_when_it_resumes() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        two.world.pause(two.server);
        stream.write_all(b"hello").await.unwrap();
        two.at(500).await;
        assert_eq!(texts(&log), []);
        two.world.resume(two.server);
        two.at(600).await;
        assert_eq!(texts(&log), [(500, "hello".to_owned())]);
    });
}

#[test]
fn a_paused_process_oversleeps_while_its_clock_goes_on() {
    in_world(|two| async move {
        let runtime = SimRuntime::new(&two.world, two.client);
        let began = runtime.now();
        let woken = Arc::new(Mutex::new(0));
        let (sleeper, note, world) = (runtime.clone(), Arc::clone(&woken), two.world.clone());
        two.world.spawn(two.client, async move {
            sleeper.sleep_until(began + Duration::from_millis(10)).await;
            *note.lock().unwrap() = world.now() / MS;
        });
        two.world.pause(two.client);
        two.at(100).await;
        assert_eq!(*woken.lock().unwrap(), 0);
        two.world.resume(two.client);
        two.at(101).await;
        assert_eq!(*woken.lock().unwrap(), 100);
        assert!(runtime.now().saturating_since(began) >= Duration::from_millis(100));
    });
}

#[test]
fn a_crash_resets_connections_and_refuses_new_ones() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        two.world.crash(two.server, false);
        assert_eq!(answer(&mut stream).await, Err(ErrorKind::ConnectionReset));
        let runtime = SimRuntime::new(&two.world, two.client);
        let refused = runtime.connect(SERVER).await.map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        two.world.restart(two.server, serve(two.world.clone(), two.server, Arc::clone(&log)));
        two.at(50).await;
        let mut stream = two.connect().await;
        stream.write_all(b"again").await.unwrap();
        assert_eq!(answer(&mut stream).await, Ok("ok".to_owned()));
    });
}

#[test]
fn a_crashed_process_listens_only_after_its_restart() {
    in_world(|two| async move {
        two.world.crash(two.server, false);
        let refused = two.world.listen(two.server, SERVER).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotConnected);
        two.world.restart(two.server, async {});
        let listener = two.world.listen(two.server, SERVER).unwrap();
        let taken = two.world.listen(two.server, SERVER).map(drop).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        drop(listener);
        two.world.listen(two.server, SERVER).unwrap();
    });
}

#[test]
fn a_late_drop_of_a_listener_keeps_the_new_one_open() {
    in_world(|two| async move {
        let dead = two.world.listen(two.server, SERVER).unwrap();
        two.world.crash(two.server, false);
        let log = Arc::default();
        two.world.restart(two.server, serve(two.world.clone(), two.server, log));
        two.at(10).await;
        // The tasks of a killed process are dropped in any order, some of them after the restart.
        drop(dead);
        two.connect().await;
    });
}

#[test]
fn a_power_loss_is_silent_until_the_restart() {
    in_world(|two| async move {
        let log = two.serve();
        let mut stream = two.connect().await;
        two.world.crash(two.server, true);
        stream.write_all(b"anybody?").await.unwrap();
        let world = two.world.clone();
        let server = two.server;
        let main = serve(two.world.clone(), two.server, log);
        two.world.spawn(two.client, async move {
            world.sleep_until(300 * MS).await;
            world.restart(server, main);
        });
        assert_eq!(answer(&mut stream).await, Err(ErrorKind::ConnectionReset));
        assert_eq!(two.world.now() / MS, 302);
    });
}

#[test]
fn a_change_of_the_clock_rate_moves_a_wake_up() {
    in_world(|two| async move {
        let runtime = SimRuntime::new(&two.world, two.client);
        let world = two.world.clone();
        let client = two.client;
        two.world.spawn(two.server, async move {
            world.sleep_until(100 * MS).await;
            world.set_clock_rate(client, 2 * TRUE_RATE);
        });
        let began = runtime.now();
        runtime.sleep_until(began + Duration::from_millis(300)).await;
        assert_eq!(two.world.now() / MS, 200, "100 ms at rate 1, then 200 ms at rate 2");
    });
}

#[test]
fn two_processes_have_different_clock_origins() {
    in_world(|two| async move {
        let client = SimRuntime::new(&two.world, two.client).now();
        let server = SimRuntime::new(&two.world, two.server).now();
        assert_ne!(client, server);
    });
}

#[test]
fn an_alias_moves_and_open_connections_stay() {
    in_world(|two| async move {
        let log = two.serve();
        two.world.alias("primary", two.server);
        let runtime = SimRuntime::new(&two.world, two.client);
        let mut stream = runtime.connect("primary:80").await.unwrap();
        two.world.alias("primary", ProcessId::find(&two.world, "stranger"));
        stream.write_all(b"still").await.unwrap();
        assert_eq!(answer(&mut stream).await, Ok("ok".to_owned()));
        assert_eq!(texts(&log).len(), 1);
        let refused = runtime.connect("primary:80").await.map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}
