//! ZooKeeper: `create …/orders:42/7f3c- ephemeral sequential` is answered by the path of the new node.
//!
//! A reply names its request by number only, so the client's bytes are read first.

use std::collections::BTreeMap;

use dlock_zookeeper::path::ROOT;
use dlock_zookeeper::wire::{
    ConnectRequest, ConnectResponse, EventKind, Op, REQUEST_BYTES_MAX, Reader, Reply, ReplyHeader, Request,
    Stat, WatcherEvent, WireError, code, xid,
};

use super::flow::Flow;
use super::words::{joined, text};
use super::{Parts, Protocol};
use crate::servers::zookeeper::PORT;

/// The row of this protocol in the table. The first bytes of a client, a length, tell it from no other.
pub(super) static PROTOCOL: Protocol = Protocol { port: PORT, is_opening: |_| false, decode };

/// The operation of each request, by its number.
type Ops = BTreeMap<i32, Op>;

/// Splits the bytes of a client and of a server.
fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    let mut ops = Ops::new();
    let requests = frames(client.bytes(), |number, frame| match number {
        0 => login(frame).map(|words| (false, words)),
        _ => request(frame, &mut ops).map(|words| (false, words)),
    });
    let replies = frames(server.bytes(), |number, frame| match number {
        0 => welcome(frame).map(|words| (true, words)),
        _ => reply(frame, &ops),
    });
    [requests, replies]
}

/// Makes a message of each frame, as far as they are valid; `describe` says whether it is a reply, and its
/// words.
fn frames(
    bytes: &[u8],
    mut describe: impl FnMut(usize, &[u8]) -> Result<(bool, String), WireError>,
) -> Parts {
    let mut parts = Parts::default();
    while let Some((frame, end)) = frame(bytes, parts.read) {
        let Ok((is_reply, words)) = describe(parts.parts.len(), frame) else { break };
        parts.push(end, is_reply, words);
    }
    parts
}

/// Returns the frame at `start`, without its length, and its end. `None` if it is invalid or incomplete.
fn frame(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(start..)?;
    let length = usize::try_from(i32::from_be_bytes(*rest.first_chunk()?)).ok()?;
    // Replies may be a little longer than requests.
    let frame = rest.get(4..4 + length).filter(|_| length <= 2 * REQUEST_BYTES_MAX)?;
    Some((frame, start + 4 + length))
}

fn login(frame: &[u8]) -> Result<String, WireError> {
    let login = ConnectRequest::decode(frame)?;
    let timeout = format!("timeout {} ms", login.timeout_millis);
    Ok(match login.session_id {
        0 => format!("connect, new session, {timeout}"),
        number => format!("connect, {}, {timeout}", session(number)),
    })
}

fn welcome(frame: &[u8]) -> Result<String, WireError> {
    let welcome = ConnectResponse::decode(frame)?;
    Ok(match welcome.timeout_millis {
        ..=0 => "the session is over".to_owned(),
        timeout => format!("{}, timeout {timeout} ms", session(welcome.session_id)),
    })
}

fn session(number: i64) -> String {
    format!("session {number:x}")
}

fn request(frame: &[u8], ops: &mut Ops) -> Result<String, WireError> {
    let mut reader = Reader::new(frame);
    let (number, op) = (reader.int()?, reader.int()?);
    let Some(op) = Op::from_number(op) else { return Ok(format!("operation {op}")) };
    // Pings share a number, and have no body.
    if number != xid::PING {
        ops.insert(number, op);
    }
    let Ok(request) = Request::read(op, &mut reader) else { return Ok(op.name().to_owned()) };
    let mut words = vec![op.name().to_owned()];
    if !matches!(request, Request::Ping | Request::SetWatches { .. } | Request::Close) {
        words.push(path(request.path()));
    }
    words.extend(details(&request));
    Ok(joined(words))
}

/// Formats the fields of a request beside its path.
fn details(request: &Request) -> Vec<String> {
    let watching = |watch: bool| if watch { vec!["watch".to_owned()] } else { Vec::new() };
    let of_version = |version: i32| if version < 0 { Vec::new() } else { vec![format!("version {version}")] };
    match request {
        Request::Create { data, mode, .. } => {
            let data = (!data.is_empty()).then(|| text(data));
            let kinds = [(mode.ephemeral, "ephemeral"), (mode.sequential, "sequential")];
            let kinds = kinds.into_iter().filter(|(is_of, _)| *is_of).map(|(_, kind)| kind.to_owned());
            data.into_iter().chain(kinds).collect()
        }
        Request::Exists { watch, .. } | Request::Data { watch, .. } | Request::Children { watch, .. } => {
            watching(*watch)
        }
        Request::Delete { version, .. } => of_version(*version),
        Request::SetData { data, version, .. } => [vec![text(data)], of_version(*version)].concat(),
        Request::SetWatches { data, exist, child, .. } => {
            [data, exist, child].into_iter().flatten().map(|watched| path(watched)).collect()
        }
        Request::Sync { .. } | Request::Ping | Request::Close => Vec::new(),
    }
}

/// Formats a reply or an event; returns whether it is a reply.
fn reply(frame: &[u8], ops: &Ops) -> Result<(bool, String), WireError> {
    let mut reader = Reader::new(frame);
    let header = ReplyHeader::read(&mut reader)?;
    match header.xid {
        xid::NOTIFICATION => {
            let event = WatcherEvent::read(&mut reader)?;
            return Ok((false, joined(["event:", &path(&event.path), happened(event.kind)])));
        }
        xid::PING => return Ok((true, "ping".to_owned())),
        _ => {}
    }
    let op = ops.get(&header.xid);
    let name = op.map_or("reply", |op| op.name());
    let words = match (header.err, op) {
        (code::OK, Some(op)) => match Reply::read(*op, &mut reader) {
            Ok(body) => joined([name, "→", &answer(&body, header.zxid)]),
            Err(_) => name.to_owned(),
        },
        (code::OK, None) => name.to_owned(),
        (error, _) => joined([name, "→", &refusal(error)]),
    };
    Ok((true, words))
}

/// Formats the body of a reply. `zxid` is the number of its transaction.
fn answer(body: &Reply, zxid: i64) -> String {
    match body {
        Reply::Nothing => "done".to_owned(),
        Reply::Path(created) => format!("{} zxid {zxid}", path(created)),
        Reply::Created { path: created, stat } => format!("{} zxid {}", path(created), stat.czxid),
        Reply::Stat(stat) => existing(stat),
        Reply::Data { data, stat } => format!("{}, {}", text(data), existing(stat)),
        Reply::Children { names, .. } if names.is_empty() => "no children".to_owned(),
        Reply::Children { names, .. } => joined(names.iter().map(|name| text(name.as_bytes()))),
    }
}

fn existing(stat: &Stat) -> String {
    match stat.ephemeral_owner {
        0 => format!("created by zxid {}", stat.czxid),
        owner => format!("created by zxid {} of {}", stat.czxid, session(owner)),
    }
}

/// Formats a path: of a lock of the library without the prefix that all of them share.
fn path(path: &str) -> String {
    let below = path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/'));
    text(below.filter(|rest| !rest.is_empty()).unwrap_or(path).as_bytes())
}

const fn happened(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Created => "created",
        EventKind::Deleted => "deleted",
        EventKind::DataChanged => "changed",
        EventKind::ChildrenChanged => "has other children",
    }
}

fn refusal(error: i32) -> String {
    let name = match error {
        code::MARSHALLING_ERROR => "malformed request",
        code::UNIMPLEMENTED => "unimplemented",
        code::BAD_ARGUMENTS => "bad arguments",
        code::NO_NODE => "no node",
        code::NO_AUTH => "not authorised",
        code::BAD_VERSION => "other version",
        code::NO_CHILDREN_FOR_EPHEMERALS => "no children for ephemerals",
        code::NODE_EXISTS => "node exists",
        code::NOT_EMPTY => "not empty",
        code::SESSION_EXPIRED => "session expired",
        code::SESSION_MOVED => "session moved",
        code::AUTH_FAILED => "authentication failed",
        other => return format!("error {other}"),
    };
    name.to_owned()
}
