//! UDP over the links of a world: datagrams are lost, doubled and overtaken, and those that arrive are whole.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sim::faults::{Crash, Cut, Delay, Fault, Pause, Trigger};
use sim::{Sim, Span};
use tokio::io::{Interest, ReadBuf};
use tokio::net::UdpSocket;
use tokio::time::{Instant, interval, sleep, timeout};

/// Answers each datagram on port 53 with its bytes, for ever.
async fn echo() {
    let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
    let mut bytes = vec![0; 70_000];
    loop {
        let (length, sender) = socket.recv_from(&mut bytes).await.unwrap();
        socket.send_to(&bytes[..length], sender).await.unwrap();
    }
}

/// Sends `bytes` until they come back.
async fn ask(socket: &UdpSocket, bytes: &[u8]) {
    let mut answer = [0; 100];
    for _ in 0..20 {
        socket.send(bytes).await.unwrap();
        let wait = Duration::from_millis(200);
        while let Ok(length) = timeout(wait, socket.recv(&mut answer)).await {
            if answer[..length.unwrap()] == *bytes {
                return;
            }
        }
    }
    panic!("20 tries were lost");
}

async fn connected() -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    socket.connect("echo:53").await.unwrap();
    socket
}

/// Returns a world with the echo and a process `a`.
fn world<F: Future<Output = ()> + Send + 'static>(main: impl Fn() -> F + Send + Sync + 'static) -> Sim {
    let mut sim = Sim::new(7);
    sim.service("echo", |_| echo()).process("a", move |_| main());
    sim
}

/// Sends the numbers up to `count`, one in each millisecond, from `a` to `b` under `faults`. Returns them as
/// they arrived, each with the time in milliseconds since the first.
fn received(count: u32, faults: Vec<Fault>) -> Vec<(u32, u64)> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut sim = Sim::new(7);
    let all = Arc::clone(&seen);
    sim.service("b", move |_| {
        let all = Arc::clone(&all);
        async move {
            let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
            let begun = Instant::now();
            let mut bytes = [0; 4];
            while socket.recv(&mut bytes).await.is_ok() {
                let at = begun.elapsed().as_millis() as u64;
                all.lock().unwrap().push((u32::from_be_bytes(bytes), at));
            }
        }
    });
    sim.process("a", move |_| async move {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        sleep(Duration::from_millis(1)).await;
        let mut ticks = interval(Duration::from_millis(1));
        for number in 0..count {
            ticks.tick().await;
            socket.send_to(&number.to_be_bytes(), "b:9").await.unwrap();
        }
        sleep(Duration::from_secs(10)).await;
    });
    for fault in faults {
        sim.fault(fault);
    }
    sim.run().unwrap();
    let seen = seen.lock().unwrap().clone();
    let first = seen.first().map_or(0, |(_, at)| *at);
    seen.into_iter().map(|(number, at)| (number, at - first)).collect()
}

#[test]
fn datagrams_are_answered() {
    let mut sim = world(|| async {
        let socket = connected().await;
        assert_eq!(socket.peer_addr().unwrap().to_string(), "10.0.0.1:53");
        assert_eq!(socket.local_addr().unwrap().to_string(), "10.0.0.2:32768");
        ask(&socket, b"hello").await;
        sim::point("answered");
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("answered"), "{trace}");
}

#[test]
fn some_datagrams_are_lost_doubled_and_overtaken() {
    let seen: Vec<u32> = received(4_000, Vec::new()).into_iter().map(|(number, _)| number).collect();
    let mut counts = BTreeMap::new();
    seen.iter().for_each(|number| *counts.entry(*number).or_insert(0) += 1);
    let lost = 4_000 - counts.len();
    let doubled = counts.values().filter(|count| **count == 2).count();
    let overtaken = seen.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((15..80).contains(&lost), "{lost} lost");
    assert!((5..45).contains(&doubled), "{doubled} doubled");
    assert!((10..100).contains(&overtaken), "{overtaken} overtaken");
    assert!(counts.values().all(|count| *count <= 2));
}

#[test]
fn datagrams_of_a_run_repeat() {
    assert_eq!(received(500, Vec::new()), received(500, Vec::new()));
}

#[test]
fn a_cut_link_loses_datagrams() {
    let cut = Cut { lasts: Some(Span::from_millis(400)), ..Cut::one_way("a", "b") };
    let seen = received(1_000, vec![Fault::new(Trigger::At(Span::from_millis(300)), cut)]);
    let between = seen.iter().filter(|(number, _)| (310..690).contains(number)).count();
    assert_eq!(between, 0);
    assert!(seen.iter().any(|(number, _)| *number > 710));
    // The draws are the same with the cut and without.
    let whole = received(1_000, Vec::new());
    let late = |seen: &[(u32, u64)]| -> Vec<u32> {
        seen.iter().map(|(number, _)| *number).filter(|number| *number > 750).collect()
    };
    assert_eq!(late(&seen), late(&whole));
}

#[test]
fn datagrams_overtake_those_that_a_fault_delays() {
    let delay = Delay { lasts: Some(Span::from_millis(100)), ..Delay::one_way("a", "b", Span::from_secs(2)) };
    let seen = received(600, vec![Fault::new(Trigger::At(Span::from_millis(300)), delay)]);
    let (number, _) = seen.last().unwrap();
    assert!((350..405).contains(number), "{number} came last");
}

#[test]
fn a_paused_process_finds_its_datagrams_in_the_buffer() {
    let pause = Pause { process: "b".to_owned(), lasts: Some(Span::from_secs(2)) };
    let seen = received(2_000, vec![Fault::new(Trigger::At(Span::from_millis(100)), pause)]);
    let buffered = seen.iter().filter(|(number, at)| *number < 400 && *at >= 2_000).count();
    // 212,992 bytes at 772 for each.
    assert_eq!(buffered, 275);
    assert!(seen.iter().all(|(_, at)| !(110..1_990).contains(at)));
}

#[test]
fn a_crash_closes_a_socket_and_loses_its_buffer() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
        sleep(Duration::from_millis(500)).await;
        let mut byte = [0];
        while socket.recv(&mut byte).await.is_ok() {
            sim::point(&format!("got {}", byte[0]));
        }
    });
    sim.process("a", |_| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        sleep(Duration::from_millis(100)).await;
        for number in 0..8 {
            // Three of each, since some are lost.
            for _ in 0..3 {
                socket.send_to(&[number], "b:9").await.unwrap();
            }
            sleep(Duration::from_millis(200)).await;
        }
        sleep(Duration::from_secs(2)).await;
    });
    let crash = Crash { restart_after: Some(Span::from_millis(300)), ..Crash::of("b") };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(450)), crash));
    let trace = sim.run().unwrap().trace();
    // 0 and 1 were in the buffer, 2 and 3 came while it was dead; it binds again after 750 ms.
    let got: Vec<bool> = (0..8).map(|number| trace.contains(&format!("got {number}"))).collect();
    assert_eq!(got, [false, false, false, false, true, true, true, true], "{trace}");
}

#[test]
fn a_port_is_free_once_its_socket_is_dropped() {
    let mut sim = world(|| async {
        let one = UdpSocket::bind("0.0.0.0:9").await.unwrap();
        let taken = UdpSocket::bind("0.0.0.0:9").await.unwrap_err();
        drop(one);
        UdpSocket::bind("0.0.0.0:9").await.unwrap();
        let foreign = UdpSocket::bind("10.0.0.1:9").await.unwrap_err();
        sim::point(&format!("{:?} {:?}", taken.kind(), foreign.kind()));
    });
    assert!(sim.run().unwrap().trace().contains("AddrInUse AddrNotAvailable"));
}

#[test]
fn errors_name_what_can_not_be_sent() {
    let mut sim = world(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let long = socket.send_to(&[0; 65_508], "echo:53").await.unwrap_err();
        let nowhere = socket.send_to(&[0], "192.0.2.1:53").await.unwrap_err();
        let nobody = socket.send_to(&[0], "nobody:53").await.unwrap_err();
        let without = socket.send(&[0]).await.unwrap_err();
        let local = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let outside = local.send_to(&[0], "echo:53").await.unwrap_err();
        assert!(long.to_string().contains("65508 bytes"), "{long}");
        let kinds = [long, nowhere, nobody, without, outside].map(|error| error.kind());
        sim::point(&format!("{kinds:?}"));
        socket.send_to(&[0; 65_507], "echo:53").await.unwrap();
    });
    let trace = sim.run().unwrap().trace();
    let kinds = "[InvalidInput, HostUnreachable, NotFound, NotConnected, InvalidInput]";
    assert!(trace.contains(kinds), "{trace}");
}

#[test]
fn a_connected_socket_hears_its_peer_only() {
    let mut sim = world(|| async {
        let socket = connected().await;
        let own = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        for _ in 0..5 {
            own.send_to(b"other", socket.local_addr().unwrap()).await.unwrap();
        }
        let mut bytes = [0; 16];
        assert!(timeout(Duration::from_secs(1), socket.recv(&mut bytes)).await.is_err());
        ask(&socket, b"peer").await;
        sim::point("done");
    });
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn a_short_buffer_cuts_a_datagram() {
    let mut sim = world(|| async {
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:1").await.unwrap(), UdpSocket::bind("127.0.0.1:2").await.unwrap());
        for bytes in ["first", "second", ""] {
            one.send_to(bytes.as_bytes(), "127.0.0.1:2").await.unwrap();
        }
        let mut bytes = [0; 3];
        assert_eq!(other.peek_from(&mut bytes).await.unwrap(), (3, "127.0.0.1:1".parse().unwrap()));
        assert_eq!(other.recv(&mut bytes).await.unwrap(), 3);
        assert_eq!(&bytes, b"fir");
        assert_eq!(other.peek_sender().await.unwrap().port(), 1);
        let mut grown = Vec::new();
        assert_eq!(other.recv_buf(&mut grown).await.unwrap(), 6);
        assert_eq!(grown, b"second");
        assert_eq!(other.recv(&mut bytes).await.unwrap(), 0);
        sim::point("done");
    });
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn calls_that_try_do_not_wait() {
    let mut sim = world(|| async {
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:1").await.unwrap(), UdpSocket::bind("127.0.0.1:2").await.unwrap());
        assert_eq!(other.try_recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(other.try_peek_sender().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(other.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap().is_writable());
        one.try_send_to(b"x", other.local_addr().unwrap()).unwrap();
        other.readable().await.unwrap();
        assert!(other.ready(Interest::READABLE).await.unwrap().is_readable());
        let mut bytes = [0; 4];
        let mut buf = ReadBuf::new(&mut bytes);
        std::future::poll_fn(|cx| other.poll_recv_from(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"x");
        sim::point("done");
    });
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn several_tasks_receive_from_one_socket() {
    let mut sim = world(|| async {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:1").await.unwrap());
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let socket = Arc::clone(&socket);
                tokio::spawn(async move { socket.recv(&mut [0]).await.unwrap() })
            })
            .collect();
        sleep(Duration::from_millis(10)).await;
        for _ in 0..3 {
            socket.send_to(b"x", "127.0.0.1:1").await.unwrap();
        }
        for task in tasks {
            task.await.unwrap();
        }
        sim::point("done");
    });
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn options_are_set_on_a_placeholder() {
    let mut sim = world(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.set_ttl(3).unwrap();
        assert_eq!(socket.ttl().unwrap(), 3);
        socket.set_multicast_ttl_v4(4).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 4);
        socket.set_broadcast(false).unwrap();
        assert!(socket.as_raw_fd() > 2);
        sim::point("done");
    });
    assert!(sim.run().unwrap().trace().contains("done"));
}

#[test]
fn multicast_is_refused_by_name() {
    let mut sim = world(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let _ = socket.join_multicast_v4([224, 0, 0, 1].into(), [0, 0, 0, 0].into());
    });
    let error = sim.run().unwrap_err().to_string();
    assert!(error.contains("tokio::net::UdpSocket::join_multicast_v4"), "{error}");
    assert!(error.contains("tests/all/udp.rs"), "{error}");
}
