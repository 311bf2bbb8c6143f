//! The clients of one server: they send requests, and collect the frames that they receive.

use std::net::SocketAddr;

use bytes::Bytes;
use dlock_zookeeper::wire::{
    ConnectRequest, ConnectResponse, PASSWORD_BYTES, Reader, Reply, ReplyHeader, Request, Writer, code, xid,
};

use super::ask::Ask;
use super::op::{CLIENTS, Login, Op};
use super::show::Origin;
use super::wire::Connection;

/// A timeout that outlasts every run, even one in a debugger: an hour, in milliseconds.
const FOREVER: i32 = 3_600_000;
/// Shown where the server closes the connection.
pub(crate) const HUNG_UP: &str = "(hung up)";
/// Shown for a request of a client without a connection.
const ABSENT: &str = "(has no connection)";
/// The id of a session that never existed.
const UNKNOWN: i64 = 0x77;

/// One server, and the client that clears it before each script.
pub(crate) struct Side {
    address: SocketAddr,
    cleaner: Connection,
}

/// A script's clients.
pub(crate) struct Clients<'a> {
    side: &'a mut Side,
    origin: Origin,
    /// The passwords of the sessions, in the order of [`Origin::sessions`].
    passwords: Vec<[u8; PASSWORD_BYTES]>,
    clients: [Client; CLIENTS],
    /// The kinds of all frames so far.
    kinds: Vec<String>,
}

#[derive(Default)]
struct Client {
    connection: Option<Connection>,
    /// Its latest session, an index of [`Origin::sessions`].
    session: Option<usize>,
    /// True if its latest login was refused.
    is_refused: bool,
}

impl Side {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let mut cleaner = Connection::open(address);
        cleaner.log_in(&login(0, [0; PASSWORD_BYTES], FOREVER, 0)).unwrap();
        Self { address, cleaner }
    }

    /// Clears the server and returns the clients of a script.
    pub(crate) fn begin(&mut self) -> Clients<'_> {
        self.clear("/");
        self.ask(&Request::SetData { path: "/".to_owned(), data: Vec::new(), version: -1 });
        let (zxid, reply) = self.ask(&Request::Exists { path: "/".to_owned(), watch: false });
        let Some(Reply::Stat(root)) = reply else { panic!("the root has no stat: {reply:?}") };
        let origin = Origin { zxid, root, sessions: Vec::new() };
        Clients { side: self, origin, passwords: Vec::new(), clients: Default::default(), kinds: Vec::new() }
    }

    /// Deletes the nodes below `path`.
    fn clear(&mut self, path: &str) {
        let children = Request::Children { path: path.to_owned(), watch: false, with_stat: false };
        let (_, reply) = self.ask(&children);
        let Some(Reply::Children { names, .. }) = reply else { return };
        for name in names.iter().filter(|name| path != "/" || *name != "zookeeper") {
            let child = format!("{}/{name}", path.trim_end_matches('/'));
            self.clear(&child);
            self.ask(&Request::Delete { path: child, version: -1 });
        }
    }

    fn ask(&mut self, request: &Request) -> (i64, Option<Reply>) {
        let number = self.cleaner.next_xid();
        self.cleaner.send(&request.encode(number));
        let frame = self.cleaner.frame().unwrap();
        let mut reader = Reader::new(&frame);
        let header = ReplyHeader::read(&mut reader).unwrap();
        (header.zxid, (header.err == code::OK).then(|| Reply::read(request.op(), &mut reader).unwrap()))
    }
}

impl Clients<'_> {
    /// Returns the kinds of all frames so far.
    pub(crate) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Runs a step, and returns the frames that all clients receive.
    pub(crate) fn carry_out(&mut self, op: &Op) -> Vec<String> {
        let mut received = match op {
            Op::Connect { client, login, timeout } => self.connect(*client, *login, *timeout),
            Op::Ask { client, ask } => self.ask(*client, ask),
            Op::Burst { client, requests } => self.burst(*client, requests),
            Op::Cut(client) => {
                self.clients[*client].connection = None;
                Vec::new()
            }
            Op::Wait => Vec::new(),
        };
        let is_unordered = matches!(op, Op::Wait) || matches!(op, Op::Ask { ask, .. } if ask.is_close());
        if is_unordered {
            received.sort();
        }
        for client in 0..CLIENTS {
            received.extend(self.ping(client, is_unordered));
        }
        received
    }

    fn connect(&mut self, client: usize, how: Login, timeout: i32) -> Vec<String> {
        let mut connection = Connection::open(self.side.address);
        self.clients[client].connection = None;
        if let Login::Text(text) = how {
            connection.send(text.as_bytes());
            return vec![format!("{:?}", connection.rest())];
        }
        let theirs = self.clients[(client + 1) % CLIENTS].session;
        let named = match how {
            Login::Again => self.clients[client].session,
            Login::Take | Login::Steal | Login::Short => theirs,
            _ => None,
        };
        let id =
            named.map_or(if let Login::Unknown = how { UNKNOWN } else { 0 }, |at| self.origin.sessions[at]);
        let password = named.map_or([0; PASSWORD_BYTES], |at| self.passwords[at]);
        let mut request = login(
            id,
            password,
            timeout,
            if let Login::Seen(seen) = how { self.origin.zxid + seen } else { 0 },
        );
        if let Login::Steal = how {
            request.password[3] ^= 1;
        }
        connection.send(&encoded(&request, how));
        let Some(answer) = connection.frame() else { return vec![String::from(HUNG_UP)] };
        let mut received = vec![self.logged_in(client, how, &answer)];
        if self.clients[client].is_refused {
            received.push(shown_end(&mut connection));
            return received;
        }
        self.clients[client].connection = Some(connection);
        if let Login::Brief = how {
            received.extend(self.ask(client, &Ask::Plain(Request::Close)));
        }
        received
    }

    /// Records the client's new session, and shows the answer to its login.
    fn logged_in(&mut self, client: usize, how: Login, answer: &Bytes) -> String {
        let response = ConnectResponse::decode(answer).unwrap();
        let id = response.session_id;
        let known = self.origin.sessions.iter().position(|&session| session == id);
        if id != 0 && known.is_none() {
            self.origin.sessions.push(id);
            self.passwords.push(response.password);
        }
        let place = self.origin.sessions.iter().position(|&session| session == id);
        let password = match place {
            Some(place) if self.passwords[place] == response.password => "its own",
            _ if response.password == [0; PASSWORD_BYTES] => "zeros",
            _ => "another",
        };
        self.kinds.push(match (place, known) {
            (None, _) => String::from("session refused"),
            (Some(_), None) => String::from("session"),
            (Some(_), Some(_)) => format!("session by {how:?}"),
        });
        if place.is_some() {
            self.clients[client].session = place;
        }
        self.clients[client].is_refused = place.is_none();
        format!(
            "{} for {} ms, password {password}, read-only {:?}",
            self.origin.session(id),
            response.timeout_millis,
            response.read_only
        )
    }

    fn ask(&mut self, client: usize, ask: &Ask) -> Vec<String> {
        let Some(mut connection) = self.clients[client].connection.take() else {
            return vec![String::from(ABSENT)];
        };
        let number = connection.next_xid();
        connection.send(&ask.encode(number, self.origin.zxid));
        let mut received = Vec::new();
        if !self.receive(&mut connection, ask.request().as_ref(), &mut received) {
            return received;
        }
        if ask.ends_connection() {
            received.push(shown_end(&mut connection));
        } else {
            self.clients[client].connection = Some(connection);
        }
        received
    }

    fn burst(&mut self, client: usize, requests: &[Request]) -> Vec<String> {
        let Some(mut connection) = self.clients[client].connection.take() else {
            return vec![String::from(ABSENT)];
        };
        let encode =
            |request: &Request| Ask::Plain(request.clone()).encode(connection.next_xid(), self.origin.zxid);
        let bytes: Vec<u8> = requests.iter().flat_map(encode).collect();
        connection.send(&bytes);
        let mut received = Vec::new();
        if requests.iter().all(|request| self.receive(&mut connection, Some(request), &mut received)) {
            self.clients[client].connection = Some(connection);
        }
        received
    }

    /// Returns the frames on their way to a client: all have arrived when a later ping is answered.
    fn ping(&mut self, client: usize, is_unordered: bool) -> Vec<String> {
        let Some(mut connection) = self.clients[client].connection.take() else { return Vec::new() };
        connection.send(&Request::Ping.encode(xid::PING));
        let mut received = Vec::new();
        if self.receive(&mut connection, Some(&Request::Ping), &mut received) {
            self.clients[client].connection = Some(connection);
        }
        if is_unordered {
            received.sort();
        }
        received.iter().map(|text| format!("client {client}: {text}")).collect()
    }

    /// Collects the frames up to the reply to `request`; returns false if the server closes the connection.
    fn receive(
        &mut self,
        connection: &mut Connection,
        request: Option<&Request>,
        received: &mut Vec<String>,
    ) -> bool {
        while let Some(frame) = connection.frame() {
            let shown = self.origin.show(&frame, request);
            received.push(shown.text);
            self.kinds.push(shown.kind);
            if !shown.is_event {
                return true;
            }
        }
        received.push(String::from(HUNG_UP));
        self.kinds.push(String::from("hung up"));
        false
    }

    /// Closes the sessions that the script has left open.
    pub(crate) fn end(self) {
        for (id, password) in self.origin.sessions.iter().zip(self.passwords) {
            let mut connection = Connection::open(self.side.address);
            let answer = connection.log_in(&login(*id, password, FOREVER, 0));
            let is_there =
                answer.is_some_and(|answer| ConnectResponse::decode(&answer).unwrap().session_id != 0);
            if is_there {
                connection.send(&Request::Close.encode(1));
                connection.frame();
            }
        }
    }
}

fn login(
    session_id: i64,
    password: [u8; PASSWORD_BYTES],
    timeout_millis: i32,
    last_zxid_seen: i64,
) -> ConnectRequest {
    ConnectRequest { last_zxid_seen, timeout_millis, session_id, password, read_only: Some(false) }
}

/// Waits until the server closes the connection, since it may answer until then; shows whether it does.
fn shown_end(connection: &mut Connection) -> String {
    String::from(if connection.is_closed() { HUNG_UP } else { "(stays)" })
}

fn encoded(request: &ConnectRequest, how: Login) -> Vec<u8> {
    match how {
        Login::Old => ConnectRequest { read_only: None, ..request.clone() }.encode(),
        Login::Short => {
            let mut writer = Writer::default();
            writer.int(0).long(request.last_zxid_seen).int(request.timeout_millis).long(request.session_id);
            writer.buffer(&request.password[..5]).boolean(false);
            writer.finish()
        }
        _ => request.encode(),
    }
}
