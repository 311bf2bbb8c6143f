//! ZooKeeper's frames, both ends: the simulated server's reading of requests (`sim serve-zookeeper`), and the
//! client's reading of replies and events.
//!
//! Input: a byte of flags, a byte that picks the cuts of the stream, then the stream.
//!
//! | flag | |
//! |---|---|
//! | 1 | the stream goes to a client, else to the server |
//! | 2 | the stream is a list of frames, each with one byte for its length, else bytes as they are |
//! | 4 | a valid login comes first |

use std::fmt::Debug;
use std::time::Duration;

use dlock_zookeeper::wire::{
    ConnectRequest, ConnectResponse, Op, Reader, Reply, Request, WatcherEvent, WireError, Writer,
};
use sim::servers::zookeeper::{EnsembleOptions, PORT, ZooKeeperHost};

use crate::client;
use crate::machine::Local;
use crate::messages;
use crate::server::{Server, cut};

const TO_CLIENT: u8 = 1;
const FRAMED: u8 = 2;
const LOGGED_IN: u8 = 4;

const OPS: [Op; 12] = [
    Op::Create,
    Op::Delete,
    Op::Exists,
    Op::Data,
    Op::SetData,
    Op::Children,
    Op::Sync,
    Op::Ping,
    Op::ChildrenStat,
    Op::CreateStat,
    Op::SetWatches,
    Op::Close,
];

/// Asserts that records are read back as they were written, that the server's answers don't depend on how the
/// requests arrive, that it still serves, and that the calls of a client end.
pub fn run(data: &[u8]) {
    let Some((&[flags, cuts], bytes)) = data.split_first_chunk() else { return };
    let frames: Vec<&[u8]> = if flags & FRAMED != 0 { records(bytes) } else { Vec::new() };
    frames.iter().for_each(|frame| round_trips(frame));
    let mut stream = if flags & LOGGED_IN != 0 { login(flags & TO_CLIENT != 0) } else { Vec::new() };
    match flags & FRAMED != 0 {
        true => frames.iter().for_each(|frame| stream.extend(framed(frame))),
        false => stream.extend(bytes),
    }
    if flags & TO_CLIENT != 0 {
        messages::read(PORT, &login(false), &stream);
        return client::lock("zookeeper://server", cut(&stream, cuts.into()));
    }
    let answer = answered([&stream[..]]);
    let of_pieces = answered(cut(&stream, cuts.into()));
    assert_eq!(answer, of_pieces, "the answers depend on how the requests arrive");
    messages::read(PORT, &stream, &answer);
}

/// Returns what a new server answers to `segments` within ten seconds.
fn answered<'a>(segments: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut server = Server::start(&ZooKeeperHost::<Local>::first(EnsembleOptions::new(["server"])));
    let client = server.open();
    let mut answer = server.send(&client, segments);
    server.wait(Duration::from_secs(10));
    answer.extend(client.take());
    assert_eq!(server.ask(b"ruok"), b"imok");
    answer
}

/// Returns the first frame of a client, or of a server.
fn login(of_server: bool) -> Vec<u8> {
    let (timeout_millis, password, read_only) = (4000, [0; 16], Some(false));
    match of_server {
        true => ConnectResponse { timeout_millis, session_id: 7, password, read_only }.encode(),
        false => {
            let (last_zxid_seen, session_id) = (0, 0);
            ConnectRequest { last_zxid_seen, timeout_millis, session_id, password, read_only }.encode()
        }
    }
}

/// Splits `bytes` into records, each after one byte for its length. The last one may be shorter.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (record, after) = rest.split_at(usize::from(*length).min(rest.len()));
        records.push(record);
        bytes = after;
    }
    records
}

fn framed(frame: &[u8]) -> Vec<u8> {
    let length = i32::try_from(frame.len()).unwrap_or(i32::MAX);
    [&length.to_be_bytes(), frame].concat()
}

/// Reads `frame` as each kind of record. One that can be read must be written as one that reads the same.
fn round_trips(frame: &[u8]) {
    same(ConnectRequest::decode(frame), |read| ConnectRequest::decode(&read.encode()[4..]));
    same(ConnectResponse::decode(frame), |read| ConnectResponse::decode(&read.encode()[4..]));
    same(WatcherEvent::read(&mut Reader::new(frame)), |read| {
        // Its header has 16 bytes.
        WatcherEvent::read(&mut Reader::new(&read.encode()[4 + 16..]))
    });
    for op in OPS {
        same(Request::read(op, &mut Reader::new(frame)), |read| {
            // The xid and the number of the operation.
            Request::read(op, &mut Reader::new(&read.encode(1)[4 + 8..]))
        });
        same(Reply::read(op, &mut Reader::new(frame)), |read| {
            let mut writer = Writer::default();
            read.write(&mut writer);
            Reply::read(op, &mut Reader::new(&writer.finish()[4..]))
        });
    }
}

fn same<T: PartialEq + Debug>(read: Result<T, WireError>, again: impl FnOnce(&T) -> Result<T, WireError>) {
    if let Ok(read) = read {
        assert_eq!(again(&read).as_ref(), Ok(&read));
    }
}
