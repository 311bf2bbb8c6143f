//! The wire protocol of the simulated ZooKeeper, byte by byte: cases that no well-behaved client would show.

use super::support::{Zoo, in_zoo};
use dlock::Runtime;
use dlock_zookeeper::wire::{
    Access, ConnectRequest, ConnectResponse, CreateMode, EventKind, Frames, Reader, ReplyHeader, Request,
    WatcherEvent, Writer, code, xid,
};
use sim::world::stream::SimStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Raw {
    stream: SimStream,
    frames: Frames,
}

impl Raw {
    async fn connect(zoo: &Zoo, server: &str) -> Self {
        let stream = zoo.runtime("a").connect(&format!("{server}:2181")).await.unwrap();
        Self { stream, frames: Frames::default() }
    }

    /// Returns the next frame, or `None` if the server has closed the connection.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(frame) = self.frames.take().unwrap() {
                return Some(frame.to_vec());
            }
            if self.stream.read_buf(self.frames.input()).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn log_in(&mut self, request: &ConnectRequest) -> Option<ConnectResponse> {
        self.stream.write_all(&request.encode()).await.unwrap();
        Some(ConnectResponse::decode(&self.frame().await?).unwrap())
    }

    async fn ask(&mut self, xid: i32, request: &Request) -> ReplyHeader {
        self.stream.write_all(&request.encode(xid)).await.unwrap();
        self.header().await
    }

    async fn header(&mut self) -> ReplyHeader {
        ReplyHeader::read(&mut Reader::new(&self.frame().await.unwrap())).unwrap()
    }

    async fn event(&mut self) -> (EventKind, String) {
        let frame = self.frame().await.unwrap();
        let mut reader = Reader::new(&frame);
        assert_eq!(ReplyHeader::read(&mut reader).unwrap().xid, xid::NOTIFICATION);
        let event = WatcherEvent::read(&mut reader).unwrap();
        (event.kind, event.path)
    }
}

fn new_session() -> ConnectRequest {
    ConnectRequest {
        last_zxid_seen: 0,
        timeout_millis: 1000,
        session_id: 0,
        password: [0; 16],
        read_only: Some(false),
    }
}

fn create(path: &str) -> Request {
    let mode = CreateMode { ephemeral: true, sequential: false };
    Request::Create {
        path: path.to_owned(),
        data: Vec::new(),
        mode,
        access: Access::Everybody,
        with_stat: false,
    }
}

/// Waits until the members have a leader.
async fn settled(zoo: &Zoo) {
    zoo.pass(200).await;
}

#[test]
fn a_moved_session_can_not_write_on_its_old_connection() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut old = Raw::connect(&zoo, "zk-1").await;
        let session = old.log_in(&new_session()).await.unwrap();
        let again =
            ConnectRequest { session_id: session.session_id, password: session.password, ..new_session() };
        let mut new = Raw::connect(&zoo, "zk-2").await;
        assert_eq!(new.log_in(&again).await, Some(session.clone()));
        assert_eq!(old.ask(1, &create("/late")).await.err, code::SESSION_MOVED);
        assert_eq!(new.ask(1, &create("/now")).await.err, code::OK);
        // At the same member the former connection is closed, and requests still in flight on it are lost.
        let mut newer = Raw::connect(&zoo, "zk-2").await;
        newer.log_in(&again).await.unwrap();
        new.stream.write_all(&create("/too-late").encode(2)).await.unwrap();
        assert_eq!(new.frame().await, None);
        let exists = Request::Exists { path: "/too-late".to_owned(), watch: false };
        assert_eq!(newer.ask(1, &exists).await.err, code::NO_NODE);
    });
}

#[test]
fn a_moved_session_can_be_closed_on_its_old_connection() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut old = Raw::connect(&zoo, "zk-1").await;
        let session = old.log_in(&new_session()).await.unwrap();
        let again =
            ConnectRequest { session_id: session.session_id, password: session.password, ..new_session() };
        let mut new = Raw::connect(&zoo, "zk-2").await;
        assert_eq!(new.log_in(&again).await, Some(session));
        assert_eq!(new.ask(1, &create("/mine")).await.err, code::OK);
        assert_eq!(old.ask(1, &Request::Close).await.err, code::OK);
        assert_eq!(zoo.ensemble.sessions(), 0);
        assert_eq!(old.frame().await, None);
        assert_eq!(new.frame().await, None, "the session's other connection is closed as well");
        let mut other = Raw::connect(&zoo, "zk-3").await;
        other.log_in(&new_session()).await.unwrap();
        let exists = Request::Exists { path: "/mine".to_owned(), watch: false };
        assert_eq!(other.ask(1, &exists).await.err, code::NO_NODE);
    });
}

#[test]
fn a_wrong_password_is_answered_as_an_expired_session() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut first = Raw::connect(&zoo, "zk-1").await;
        let session = first.log_in(&new_session()).await.unwrap();
        let mut thief = Raw::connect(&zoo, "zk-1").await;
        let request = ConnectRequest { session_id: session.session_id, ..new_session() };
        let answer = thief.log_in(&request).await.unwrap();
        assert_eq!((answer.timeout_millis, answer.session_id, answer.password), (0, 0, [0; 16]));
        assert_eq!(thief.frame().await, None);
        // The connection of the session is closed before the password is checked; the session goes on.
        assert_eq!(first.frame().await, None);
        let again = ConnectRequest { password: session.password, ..request };
        let mut second = Raw::connect(&zoo, "zk-1").await;
        assert_eq!(second.log_in(&again).await, Some(session));
        assert_eq!(second.ask(1, &create("/mine")).await.err, code::OK);
    });
}

#[test]
fn a_session_resumed_with_a_shorter_timeout_expires_by_it() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let long = ConnectRequest { timeout_millis: 2000, ..new_session() };
        let session = Raw::connect(&zoo, "zk-1").await.log_in(&long).await.unwrap();
        let again = ConnectRequest {
            timeout_millis: 300,
            session_id: session.session_id,
            password: session.password,
            ..new_session()
        };
        let mut back = Raw::connect(&zoo, "zk-1").await;
        assert_eq!(back.log_in(&again).await.unwrap().timeout_millis, 300);
        zoo.pass(600).await;
        assert_eq!(zoo.ensemble.sessions(), 0);
    });
}

#[test]
fn an_old_client_gets_an_old_answer() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        let answer = raw.log_in(&ConnectRequest { read_only: None, ..new_session() }).await.unwrap();
        assert_eq!((answer.read_only, answer.timeout_millis), (None, 1000));
    });
}

#[test]
fn a_client_that_has_seen_more_is_turned_away() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        let ahead = ConnectRequest { last_zxid_seen: 2 << 32, ..new_session() };
        assert_eq!(raw.log_in(&ahead).await, None);
    });
}

#[test]
fn watches_set_again_report_missed_changes() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        let seen = raw.ask(1, &create("/old")).await.zxid;
        raw.ask(2, &create("/new")).await;
        raw.ask(3, &Request::SetData { path: "/old".to_owned(), data: vec![1], version: -1 }).await;
        let list = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
        let set = Request::SetWatches {
            seen,
            data: list(&["/old", "/new", "/gone"]),
            exist: list(&["/new", "/to-come"]),
            child: list(&["/", "/old"]),
        };
        raw.stream.write_all(&set.encode(xid::SET_WATCHES)).await.unwrap();
        let mut events = Vec::new();
        for _ in 0..5 {
            events.push(raw.event().await);
        }
        let expected = [
            (EventKind::DataChanged, "/old"),
            (EventKind::DataChanged, "/new"),
            (EventKind::Deleted, "/gone"),
            (EventKind::Created, "/new"),
            (EventKind::ChildrenChanged, "/"),
        ];
        assert_eq!(events, expected.map(|(kind, path)| (kind, path.to_owned())));
        assert_eq!(raw.header().await.xid, xid::SET_WATCHES);
        raw.stream.write_all(&create("/to-come").encode(4)).await.unwrap();
        assert_eq!(raw.event().await, (EventKind::Created, "/to-come".to_owned()), "before the reply");
        assert_eq!(raw.header().await.xid, 4);
    });
}

#[test]
fn an_unknown_operation_is_refused_and_nonsense_disconnects() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        // Operation 107, whoAmI, which the simulation lacks.
        raw.stream.write_all(&[0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 107]).await.unwrap();
        let header = raw.header().await;
        assert_eq!((header.xid, header.zxid, header.err), (9, -1, code::UNIMPLEMENTED));
        assert_eq!(raw.frame().await, None, "the connection is closed");
        for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 9], &[0, 16, 0, 0]] {
            let mut raw = Raw::connect(&zoo, "zk-1").await;
            raw.log_in(&new_session()).await.unwrap();
            raw.stream.write_all(nonsense).await.unwrap();
            assert_eq!(raw.frame().await, None, "{nonsense:?}");
        }
    });
}

#[test]
fn a_truncated_request_is_refused_and_uses_up_a_zxid() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        let before = raw.ask(1, &Request::Ping).await.zxid;
        let delete = Request::Delete { path: "/t".to_owned(), version: -1 };
        let read = Request::Exists { path: "/t".to_owned(), watch: true };
        for (request, transactions) in [(delete, 1), (read, 1)] {
            let mut frame = request.encode(2);
            frame.pop();
            frame[3] -= 1;
            raw.stream.write_all(&frame).await.unwrap();
            let header = raw.header().await;
            assert_eq!((header.err, header.zxid - before), (code::MARSHALLING_ERROR, transactions));
        }
    });
}

#[test]
fn container_nodes_are_created_and_ttl_nodes_refused() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        let answers =
            [(4, code::OK), (5, code::UNIMPLEMENTED), (6, code::UNIMPLEMENTED), (7, code::BAD_ARGUMENTS)];
        for (flags, err) in answers {
            let mut frame = create("/t").encode(flags);
            let at = frame.len() - 4;
            frame[at..].copy_from_slice(&flags.to_be_bytes());
            raw.stream.write_all(&frame).await.unwrap();
            assert_eq!(raw.header().await.err, err, "{flags}");
        }
    });
}

#[test]
fn known_auth_schemes_are_accepted_and_others_disconnect() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        for (scheme, err) in [("digest", code::OK), ("ip", code::OK), ("none", code::AUTH_FAILED)] {
            let mut login = Writer::default();
            login.int(xid::AUTH).int(100).int(0).text(scheme).buffer(b"user:password");
            raw.stream.write_all(&login.finish()).await.unwrap();
            let header = raw.header().await;
            assert_eq!((header.xid, header.zxid, header.err), (xid::AUTH, 0, err), "{scheme}");
        }
        assert_eq!(raw.frame().await, None);
    });
}

#[test]
fn four_letter_words_get_plain_text() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let zoo = &zoo;
        let ask = |server, word: &'static [u8]| async move {
            let mut stream = zoo.runtime("a").connect(&format!("{server}:2181")).await.unwrap();
            stream.write_all(word).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        assert_eq!(ask("zk-1", b"ruok").await, "imok");
        assert!(ask("zk-1", b"srvr").await.contains("\nMode: follower\n"));
        assert!(ask("zk-3", b"srvr").await.contains("\nMode: leader\n"));
        assert!(ask("zk-3", b"mntr").await.contains("\nzk_server_state\tleader\n"));
        for other in ["zk-1", "zk-2"] {
            zoo.part("zk-3", other);
        }
        zoo.pass(800).await;
        assert_eq!(ask("zk-3", b"srvr").await, "This ZooKeeper instance is not currently serving requests\n");
    });
}

#[test]
fn a_watch_fires_once_at_the_server() {
    in_zoo(|zoo| async move {
        settled(&zoo).await;
        let mut raw = Raw::connect(&zoo, "zk-1").await;
        raw.log_in(&new_session()).await.unwrap();
        raw.ask(1, &create("/t")).await;
        // Two watches on one node are one at the server.
        for number in [2, 3] {
            raw.ask(number, &Request::Data { path: "/t".to_owned(), watch: true }).await;
        }
        let set = Request::SetData { path: "/t".to_owned(), data: vec![1], version: -1 };
        raw.stream.write_all(&set.encode(4)).await.unwrap();
        assert_eq!(raw.event().await, (EventKind::DataChanged, "/t".to_owned()));
        assert_eq!(raw.header().await.xid, 4);
        assert_eq!(raw.ask(5, &set).await.xid, 5, "no second event");
    });
}
