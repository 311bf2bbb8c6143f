//! TCP sockets that get options before they listen or connect.

use sim::Sim;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

/// A socket is the first thing of tokio that each process uses.
#[test]
fn a_listener_and_a_client_begin_as_sockets() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind("0.0.0.0:7000".parse().unwrap()).unwrap();
        let (mut stream, _) = socket.listen(16).unwrap().accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
    });
    sim.process("a", |_| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_tos_v4(16).unwrap();
        assert_eq!(socket.tos_v4().unwrap(), 16);
        assert_eq!(socket.device().unwrap(), None);
        socket.bind_device(None).unwrap();
        let mut stream = socket.connect("10.0.0.1:7000".parse().unwrap()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        sim::point(&format!("got {text}"));
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("got hello"), "{trace}");
}

#[test]
fn options_of_version_6_are_kept() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        let socket = TcpSocket::new_v6().unwrap();
        socket.set_tclass_v6(32).unwrap();
        sim::point(&format!("class {}", socket.tclass_v6().unwrap()));
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("class 32"), "{trace}");
}

#[test]
fn an_interface_is_refused_by_name() {
    let mut sim = Sim::new(7);
    sim.process("a", |_| async {
        drop(TcpSocket::new_v4().unwrap().bind_device(Some(b"eth0")));
    });
    let error = sim.run().unwrap_err().to_string();
    assert!(error.contains("tokio::net::TcpSocket::bind_device"), "{error}");
    assert!(error.contains("tests/all/tcp_sockets.rs"), "{error}");
}
