//! etcd's HTTP/2, as far as it is ours. hyper and tonic read frames and gRPC messages on both ends; they have
//! fuzz targets of their own. Ours are the streams and executors under them (`dlock/src/etcd/stream.rs`,
//! `sim/src/servers/etcd/service/`), the choice of the service by the path, everything that the simulated
//! etcd does with a decoded message (`sim serve-etcd`), everything that the client does with an answer, and
//! the reader of frames, headers and messages for traces (`sim/src/trace/messages/grpc/`).
//!
//! Input: a byte of flags, then records, each after one byte for its length.
//!
//! | flag | |
//! |---|---|
//! | 1 | the records are answers to a client, else requests to the server |
//! | 2 | each record is a piece of the stream as it is, else a message |
//!
//! A message to the server begins with a byte for the procedure: its lower 6 bits are an index in
//! `PROCEDURES`, 64 ends the stream of the call, 128 sends the message on the stream of the call before. A
//! message to the client begins with a byte for its stream: its lower 6 bits are the number of the call, 64
//! adds a status to end the stream, 128 leaves out the headers.

use std::time::Duration;

use sim::servers::etcd::{EtcdHost, PORT};

use crate::client;
use crate::machine::Local;
use crate::messages;
use crate::server::Server;
use crate::zookeeper::records;

const TO_CLIENT: u8 = 1;
const RAW: u8 = 2;

/// The bits of the first byte of a message.
const INDEX: u8 = 63;
const ENDS: u8 = 64;
const CONTINUES: u8 = 128;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames, and their flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The paths of the procedures, and some that don't exist.
const PROCEDURES: [&str; 34] = [
    "/etcdserverpb.KV/Range",
    "/etcdserverpb.KV/Put",
    "/etcdserverpb.KV/DeleteRange",
    "/etcdserverpb.KV/Txn",
    "/etcdserverpb.KV/Compact",
    "/etcdserverpb.Lease/LeaseGrant",
    "/etcdserverpb.Lease/LeaseRevoke",
    "/etcdserverpb.Lease/LeaseKeepAlive",
    "/etcdserverpb.Lease/LeaseTimeToLive",
    "/etcdserverpb.Lease/LeaseLeases",
    "/etcdserverpb.Watch/Watch",
    "/v3lockpb.Lock/Lock",
    "/v3lockpb.Lock/Unlock",
    "/etcdserverpb.Cluster/MemberAdd",
    "/etcdserverpb.Cluster/MemberRemove",
    "/etcdserverpb.Cluster/MemberUpdate",
    "/etcdserverpb.Cluster/MemberList",
    "/etcdserverpb.Cluster/MemberPromote",
    "/etcdserverpb.Maintenance/Alarm",
    "/etcdserverpb.Maintenance/Status",
    "/etcdserverpb.Maintenance/Defragment",
    "/etcdserverpb.Maintenance/Hash",
    "/etcdserverpb.Maintenance/HashKV",
    "/etcdserverpb.Maintenance/Snapshot",
    "/etcdserverpb.Maintenance/MoveLeader",
    "/etcdserverpb.Maintenance/Downgrade",
    "/etcdserverpb.Auth/Authenticate",
    "/etcdserverpb.Auth/AuthStatus",
    "/etcdserverpb.Auth/UserList",
    "/etcdserverpb.Auth/UserAdd",
    "/etcdserverpb.KV/Nothing",
    "/etcdserverpb.Nothing/Range",
    "/",
    "",
];

/// Asserts that the server still serves whatever it was sent, and that the calls of a client end whatever it
/// was answered.
pub fn run(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else { return };
    let records = records(bytes);
    if flags & TO_CLIENT != 0 {
        let mut frames = vec![frame(SETTINGS, 0, 0, &[])];
        frames.extend(
            records.iter().map(|record| if flags & RAW != 0 { record.to_vec() } else { answer(record) }),
        );
        messages::read(PORT, &calls(&[&[0][..], &[1], &[5], &[10]]), &frames.concat());
        return client::lock("etcd://server", frames.iter().map(Vec::as_slice));
    }
    let stream = if flags & RAW != 0 { [PREFACE, &records.concat()].concat() } else { calls(&records) };
    let mut server = Server::start(&EtcdHost::<Local>::single("server", "http://server".to_owned()));
    let client = server.open();
    let mut answer = server.send(&client, [&stream[..]]);
    server.wait(Duration::from_secs(10));
    answer.extend(client.take());
    messages::read(PORT, &stream, &answer);
    // A Range of the key `a`.
    let question = calls(&[&[ENDS, 0x0a, 1, b'a']]);
    let answer = server.ask(&question);
    let replies = messages::read(PORT, &question, &answer);
    assert!(replies.len() == 1 && !replies[0].contains("failed"), "after that, a Range gets {replies:?}");
}

/// Returns the stream of a client that makes these calls.
fn calls(records: &[&[u8]]) -> Vec<u8> {
    let mut stream = PREFACE.to_vec();
    stream.extend(frame(SETTINGS, 0, 0, &[]));
    let mut last = 0;
    for record in records {
        let Some((head, message)) = record.split_first() else { continue };
        if head & CONTINUES == 0 || last == 0 {
            last = if last == 0 { 1 } else { last + 2 };
            let path = PROCEDURES[usize::from(head & INDEX) % PROCEDURES.len()];
            stream.extend(frame(HEADERS, END_HEADERS, last, &call_headers(path)));
        }
        let flags = if head & ENDS != 0 { END_STREAM } else { 0 };
        stream.extend(frame(DATA, flags, last, &message_of_grpc(message)));
    }
    stream
}

/// Returns the frames by which a server sends `record`.
fn answer(record: &[u8]) -> Vec<u8> {
    let Some((head, message)) = record.split_first() else { return Vec::new() };
    let stream = 1 + 2 * u32::from(head & INDEX);
    let mut frames = Vec::new();
    if head & CONTINUES == 0 {
        // `:status: 200` is 8 in the static table.
        let headers = [&[0x88][..], &header(b"content-type", b"application/grpc")].concat();
        frames.extend(frame(HEADERS, END_HEADERS, stream, &headers));
    }
    frames.extend(frame(DATA, 0, stream, &message_of_grpc(message)));
    if head & ENDS != 0 {
        frames.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &header(b"grpc-status", b"0")));
    }
    frames
}

/// Encodes the headers of a call. 0x83 is `:method: POST`, 0x86 `:scheme: http`, and 4 the name `:path`, in
/// the static table of RFC 7541.
fn call_headers(path: &str) -> Vec<u8> {
    let mut headers = vec![0x83, 0x86, 4];
    text(&mut headers, path.as_bytes());
    headers.extend(header(b"te", b"trailers"));
    headers.extend(header(b"content-type", b"application/grpc"));
    headers
}

/// Encodes a header as a literal that is not indexed.
fn header(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut header = vec![0];
    text(&mut header, name);
    text(&mut header, value);
    header
}

/// Encodes a text of fewer than 127 bytes, without Huffman's code.
fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(text.len() as u8);
    out.extend(text);
}

fn message_of_grpc(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
