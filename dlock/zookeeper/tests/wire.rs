//! ZooKeeper's wire format: the bytes of a real 3.8 server, and round trips over streams cut anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use dlock_zookeeper::wire::{
    Access, ConnectRequest, ConnectResponse, CreateMode, EventKind, FRAME_BYTES_MAX, Frames, Op, Reader,
    Reply, ReplyHeader, Request, Stat, WatcherEvent, WireError, Writer, code, xid,
};
use dlock_zookeeper::{Error, path};
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Returns a frame without its length, which must be right.
fn body(frame: Vec<u8>) -> Vec<u8> {
    let length = u32::from_be_bytes(frame[..4].try_into().unwrap());
    assert_eq!(length as usize, frame.len() - 4);
    frame[4..].to_vec()
}

fn reply(op: Op, hex: &str) -> (ReplyHeader, Reply) {
    let frame = bytes(hex);
    let mut reader = Reader::new(&frame);
    let header = ReplyHeader::read(&mut reader).unwrap();
    let reply = Reply::read(op, &mut reader).unwrap();
    assert!(reader.is_empty());
    (header, reply)
}

const SESSION: i64 = 0x0100_0054_bc62_0008;
const NODE: &str = "/g-0000000002";

fn node() -> Stat {
    Stat {
        czxid: 0x73,
        mzxid: 0x73,
        ctime: 0x01a1_f8a0_1291,
        mtime: 0x01a1_f8a0_1291,
        ephemeral_owner: SESSION,
        data_length: 2,
        pzxid: 0x73,
        ..Stat::default()
    }
}

#[test]
fn a_login_has_the_bytes_of_the_real_server() {
    let request = ConnectRequest {
        last_zxid_seen: 5,
        timeout_millis: 6000,
        session_id: SESSION,
        password: [7; 16],
        read_only: Some(false),
    };
    let expected =
        "0000000000000000000000050000177001000054bc620008000000100707070707070707070707070707070700";
    assert_eq!(body(request.encode()), bytes(expected));
    assert_eq!(ConnectRequest::decode(&bytes(expected)), Ok(request));

    let captured = "000000000000177001000054bc62000800000010056273d889a99624d48fd6c71775930300";
    let response = ConnectResponse::decode(&bytes(captured)).unwrap();
    assert_eq!((response.timeout_millis, response.session_id), (6000, SESSION));
    assert_eq!(body(response.encode()), bytes(captured));
}

#[test]
fn an_old_client_leaves_out_the_last_field() {
    let frame = bytes("000000000000000000000000000017700000000000000000ffffffff");
    let request = ConnectRequest::decode(&frame).unwrap();
    assert_eq!((request.session_id, request.password, request.read_only), (0, [0; 16], None));
}

#[test]
fn requests_have_the_bytes_that_the_real_server_took() {
    let create = Request::Create {
        path: "/g-".to_owned(),
        data: b"hi".to_vec(),
        mode: CreateMode::EPHEMERAL_SEQUENTIAL,
        access: Access::Everybody,
        with_stat: true,
    };
    let expected = "000000010000000f000000032f672d000000026869\
                    000000010000001f00000005776f726c6400000006616e796f6e6500000003";
    assert_eq!(body(create.encode(1)), bytes(expected));
    assert_eq!(body(Request::Ping.encode(xid::PING)), bytes("fffffffe0000000b"));
    assert_eq!(body(Request::Close.encode(6)), bytes("00000006fffffff5"));
    let data = Request::Data { path: NODE.to_owned(), watch: true };
    assert_eq!(body(data.encode(2)), bytes("00000002000000040000000d2f672d3030303030303030303201"));
}

#[test]
fn replies_of_the_real_server_are_understood() {
    let stat = "00000000000000730000000000000073000001a1f8a01291000001a1f8a01291\
                00000000000000000000000001000054bc62000800000002000000000000000000000073";
    let created = format!("000000010000000000000073000000000000000d2f672d30303030303030303032{stat}");
    let (header, reply_to_create) = reply(Op::CreateStat, &created);
    assert_eq!(header, ReplyHeader { xid: 1, zxid: 0x73, err: code::OK });
    assert_eq!(reply_to_create, Reply::Created { path: NODE.to_owned(), stat: node() });

    let (_, data) = reply(Op::Data, &format!("00000002000000000000007300000000000000026869{stat}"));
    assert_eq!(data, Reply::Data { data: b"hi".to_vec(), stat: node() });

    let children = "000000030000000000000073000000000000000200000006636f6e6669670000000571756f7461\
                    0000000000000000000000000000000000000000000000000000000000000000\
                    00000000fffffffe00000000000000000000000000000000000000020000000000000000";
    let parent = Stat { cversion: -2, num_children: 2, ..Stat::default() };
    let names = vec!["config".to_owned(), "quota".to_owned()];
    assert_eq!(reply(Op::ChildrenStat, children).1, Reply::Children { names, stat: Some(parent) });

    assert_eq!(reply(Op::Ping, "fffffffe000000000000007300000000").0.xid, xid::PING);
    assert_eq!(reply(Op::Close, "00000006000000000000007500000000").1, Reply::Nothing);
    let frame = bytes("000000050000000000000074ffffff9b");
    assert_eq!(ReplyHeader::read(&mut Reader::new(&frame)).unwrap().err, code::NO_NODE);
}

#[test]
fn every_field_of_a_stat_is_in_its_place() {
    let captured = "00000007000000000000000700000000\
                    00000000000000020000000000000004000001a1f8b32255000001a1f8b3229e\
                    000000020000000300000000000000000000000000000003000000030000000000000007";
    let stat = Stat {
        czxid: 2,
        mzxid: 4,
        ctime: 0x01a1_f8b3_2255,
        mtime: 0x01a1_f8b3_229e,
        version: 2,
        cversion: 3,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 3,
        num_children: 3,
        pzxid: 7,
    };
    assert_eq!(reply(Op::Exists, captured).1, Reply::Stat(stat));
}

#[test]
fn an_event_has_the_bytes_of_the_real_server() {
    let captured = "ffffffffffffffffffffffff0000000000000002000000030000000d2f672d30303030303030303032";
    let event = WatcherEvent { kind: EventKind::Deleted, path: NODE.to_owned() };
    assert_eq!(body(event.encode()), bytes(captured));
    let frame = bytes(captured);
    let mut reader = Reader::new(&frame);
    assert_eq!(ReplyHeader::read(&mut reader).unwrap().xid, xid::NOTIFICATION);
    assert_eq!(WatcherEvent::read(&mut reader), Ok(event));
}

#[test]
fn an_excessive_length_is_refused_at_once() {
    for length in [-1, i32::try_from(FRAME_BYTES_MAX).unwrap() + 1, i32::from_be_bytes(*b"HTTP")] {
        let mut frames = Frames::default();
        frames.input().extend_from_slice(&length.to_be_bytes());
        assert_eq!(frames.take(), Err(WireError::Length { length }));
    }
}

#[test]
fn errors_are_classified_as_unknown_passing_or_final() {
    for (error, unknown, passing, over) in [
        (Error::NotSent { reason: String::new() }, false, true, false),
        (Error::NoAnswer, true, true, false),
        (Error::ConnectionLoss, true, true, false),
        (Error::SessionMoved, false, true, false),
        (Error::SessionExpired, false, false, true),
        (Error::Closed, false, false, true),
        (Error::NoNode { path: String::new() }, false, false, false),
    ] {
        let found = (error.is_unknown(), error.is_passing(), error.is_session_over());
        assert_eq!(found, (unknown, passing, over), "{error:?}");
    }
}

#[test]
fn entries_are_ordered_by_the_digits_that_the_server_appends() {
    let entry = format!("{}0000000042", path::entry_prefix("7f3c9e12"));
    assert_eq!(entry, "_c_7f3c9e12-lock-0000000042");
    assert_eq!(path::entry_number(&entry), Some(42));
    for none in ["", "config", "0000000042", "_c_7f3c9e12-lock-00000000x2", "_c_7f3c9e12-lock-"] {
        assert_eq!(path::entry_number(none), None, "{none}");
    }
}

#[test]
fn a_tenant_and_a_slash_give_different_queues() {
    // The names that a lock key has for a tenant, and for a slash in the resource type.
    let (tenant, slash) = ("acme/orders:42", "acme%2Forders:42");
    assert_eq!(path::queue(tenant), "/locks/acme%2Forders:42");
    assert_eq!(path::queue(slash), "/locks/acme%252Forders:42");
    assert_eq!(path::lock_name(&path::queue(tenant)).as_deref(), Some(tenant));
    assert_eq!(path::lock_name("/locks/a/b"), None);
    assert_eq!(path::lock_name("/other/a"), None);
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("/[a-zé]{0,8}", 0..4)
}

fn requests() -> impl Strategy<Value = Request> {
    let path = || "/[a-z/é-]{0,12}";
    let data = || prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        (path(), data(), 0..4, any::<[bool; 2]>()).prop_map(|(path, data, flags, [is_open, with_stat])| {
            let access = if is_open { Access::Everybody } else { Access::Creator };
            Request::Create { path, data, mode: CreateMode::from_flags(flags).unwrap(), access, with_stat }
        }),
        (path(), any::<i32>()).prop_map(|(path, version)| Request::Delete { path, version }),
        (path(), any::<bool>()).prop_map(|(path, watch)| Request::Exists { path, watch }),
        (path(), any::<bool>()).prop_map(|(path, watch)| Request::Data { path, watch }),
        (path(), data(), any::<i32>()).prop_map(|(path, data, version)| Request::SetData {
            path,
            data,
            version
        }),
        (path(), any::<bool>(), any::<bool>()).prop_map(|(path, watch, with_stat)| Request::Children {
            path,
            watch,
            with_stat
        }),
        path().prop_map(|path| Request::Sync { path }),
        (any::<i64>(), paths(), paths(), paths())
            .prop_map(|(seen, data, exist, child)| Request::SetWatches { seen, data, exist, child }),
        Just(Request::Ping),
        Just(Request::Close),
    ]
}

fn stats() -> impl Strategy<Value = Stat> {
    (any::<[i64; 6]>(), any::<[i32; 5]>()).prop_map(|(longs, ints)| Stat {
        czxid: longs[0],
        mzxid: longs[1],
        ctime: longs[2],
        mtime: longs[3],
        version: ints[0],
        cversion: ints[1],
        aversion: ints[2],
        ephemeral_owner: longs[4],
        data_length: ints[3],
        num_children: ints[4],
        pzxid: longs[5],
    })
}

fn replies() -> impl Strategy<Value = (Op, Reply)> {
    prop_oneof![
        Just((Op::Delete, Reply::Nothing)),
        "/[a-z]{0,9}".prop_map(|path| (Op::Create, Reply::Path(path))),
        ("/[a-z]{0,9}", stats()).prop_map(|(path, stat)| (Op::CreateStat, Reply::Created { path, stat })),
        stats().prop_map(|stat| (Op::Exists, Reply::Stat(stat))),
        (prop::collection::vec(any::<u8>(), 0..40), stats())
            .prop_map(|(data, stat)| (Op::Data, Reply::Data { data, stat })),
        (paths(), stats())
            .prop_map(|(names, stat)| (Op::ChildrenStat, Reply::Children { names, stat: Some(stat) })),
        paths().prop_map(|names| (Op::Children, Reply::Children { names, stat: None })),
    ]
}

proptest! {
    #[test]
    fn requests_survive_a_stream_cut_anywhere(
        requests in prop::collection::vec(requests(), 1..8),
        cuts in prop::collection::vec(1usize..30, 1..20),
    ) {
        let stream: Vec<u8> =
            (1..).zip(&requests).flat_map(|(xid, request)| request.encode(xid)).collect();
        let (mut frames, mut read, mut rest) = (Frames::default(), Vec::new(), &stream[..]);
        for cut in cuts.into_iter().cycle() {
            let (piece, later) = rest.split_at(cut.min(rest.len()));
            frames.input().extend_from_slice(piece);
            while let Some(frame) = frames.take().unwrap() {
                let mut reader = Reader::new(&frame);
                prop_assert_eq!(reader.int().unwrap(), i32::try_from(read.len()).unwrap() + 1);
                let op = Op::from_number(reader.int().unwrap()).unwrap();
                read.push(Request::read(op, &mut reader).unwrap());
                prop_assert!(reader.is_empty());
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read, requests);
    }

    #[test]
    fn replies_survive_a_round_trip((op, reply) in replies()) {
        let mut writer = Writer::default();
        reply.write(&mut writer);
        let frame = body(writer.finish());
        prop_assert_eq!(Reply::read(op, &mut Reader::new(&frame)), Ok(reply));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_the_reader(
        frame in prop::collection::vec(any::<u8>(), 0..80),
        number in -12..110,
    ) {
        let _ = ConnectRequest::decode(&frame);
        let _ = WatcherEvent::read(&mut Reader::new(&frame));
        if let Some(op) = Op::from_number(number) {
            let _ = Request::read(op, &mut Reader::new(&frame));
            // A reply that can be read can be written again, in no more bytes.
            if let Ok(reply) = Reply::read(op, &mut Reader::new(&frame)) {
                let mut writer = Writer::default();
                reply.write(&mut writer);
                prop_assert!(writer.finish().len() <= frame.len() + 4);
            }
        }
    }

    #[test]
    fn every_name_escapes_to_one_component_and_back(name in any::<String>()) {
        let component = path::escape(&name);
        prop_assert!(component.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
        prop_assert!(component != "." && component != "..");
        prop_assert_eq!(path::unescape(&component), Some(name));
    }
}
