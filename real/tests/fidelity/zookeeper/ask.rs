//! Draws requests, valid and invalid, and encodes them.

use std::fmt;

use dlock_zookeeper::CreateMode;
use dlock_zookeeper::wire::{Access, Request, Writer, xid};
use proptest::collection::vec;
use proptest::prelude::{Just, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Strategy;

/// The parent of all nodes that scripts create.
pub(crate) const TOP: &str = "/r";

/// The longest frame that a server accepts, in bytes: `jute.maxbuffer`, 1 MiB less one.
const FRAME_MAX: i32 = 0xf_ffff;

/// An authentication scheme that no ZooKeeper knows.
const UNKNOWN_SCHEME: &str = "none";

/// A request on a connection with a session, valid or not.
#[derive(Clone)]
pub(crate) enum Ask {
    Plain(Request),
    /// A create with any flags.
    Create {
        path: &'static str,
        flags: i32,
        with_stat: bool,
    },
    /// `seen` counts from the script's first zxid.
    SetWatches {
        seen: i64,
        data: Vec<&'static str>,
        exist: Vec<&'static str>,
        child: Vec<&'static str>,
    },
    Auth(&'static str),
    /// An operation that no ZooKeeper knows.
    Unknown(i32),
    /// A request that lacks its last bytes.
    Short(Request, usize),
    /// A setData in a frame of this length in bytes.
    Long(i32),
    /// The length of a frame, without the frame.
    Length(i32),
}

impl Ask {
    /// Encodes it with xid `number`; `origin` is the zxid at which the script began.
    pub(crate) fn encode(&self, number: i32, origin: i64) -> Vec<u8> {
        let texts = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
        match self {
            Self::Plain(request @ Request::Ping) => request.encode(xid::PING),
            Self::Plain(request) => request.encode(number),
            Self::Create { path, flags, with_stat } => create(path, *flags, *with_stat, number),
            Self::SetWatches { seen, data, exist, child } => {
                let (data, exist, child) = (texts(data), texts(exist), texts(child));
                Request::SetWatches { seen: origin + seen, data, exist, child }.encode(xid::SET_WATCHES)
            }
            Self::Auth(scheme) => {
                let mut writer = Writer::default();
                writer.int(xid::AUTH).int(100).int(0).text(scheme).text("user:password");
                writer.finish()
            }
            Self::Unknown(operation) => {
                let mut writer = Writer::default();
                writer.int(number).int(*operation);
                writer.finish()
            }
            Self::Short(request, by) => shortened(request.encode(number), *by),
            Self::Long(length) => {
                let around = set_data(0).encode(number).len() - 4;
                set_data(usize::try_from(*length).unwrap() - around).encode(number)
            }
            Self::Length(length) => length.to_be_bytes().to_vec(),
        }
    }

    /// Returns a request whose reply has the same form; `None` if no reply to it has a body.
    pub(crate) fn request(&self) -> Option<Request> {
        match self {
            Self::Plain(request) | Self::Short(request, _) => Some(request.clone()),
            Self::Create { path, with_stat, .. } => {
                Some(plain_create((*path).to_owned(), CreateMode::PERSISTENT, *with_stat, ""))
            }
            Self::SetWatches { seen, .. } => {
                let none = Vec::new;
                Some(Request::SetWatches { seen: *seen, data: none(), exist: none(), child: none() })
            }
            Self::Long(_) => Some(set_data(0)),
            Self::Auth(_) | Self::Unknown(_) | Self::Length(_) => None,
        }
    }

    /// Returns true if it ends the session, whose nodes are then deleted in no fixed order.
    pub(crate) fn is_close(&self) -> bool {
        matches!(self, Self::Plain(Request::Close))
    }

    /// Returns true if a server closes the connection after its answer.
    pub(crate) fn ends_connection(&self) -> bool {
        self.is_close() || matches!(self, Self::Unknown(_) | Self::Auth(UNKNOWN_SCHEME))
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(request) => write!(f, "{request:?}"),
            Self::Create { path, flags, with_stat } => {
                write!(f, "create{} {path:?} with flags {flags}", if *with_stat { "2" } else { "" })
            }
            Self::SetWatches { seen, data, exist, child } => {
                write!(f, "setWatches since +{seen}: data {data:?}, exist {exist:?}, child {child:?}")
            }
            Self::Auth(scheme) => write!(f, "auth {scheme:?}"),
            Self::Unknown(operation) => write!(f, "operation {operation}"),
            Self::Short(request, by) => write!(f, "{request:?} without its last {by} bytes"),
            Self::Long(length) => write!(f, "setData {TOP:?} in a frame of {length} bytes"),
            Self::Length(length) => write!(f, "a frame's length, {length}"),
        }
    }
}

fn set_data(size: usize) -> Request {
    Request::SetData { path: TOP.to_owned(), data: vec![b'x'; size], version: -1 }
}

/// Removes the last `by` bytes of a frame, but not its length and xid, and corrects the length.
fn shortened(mut frame: Vec<u8>, by: usize) -> Vec<u8> {
    frame.truncate(frame.len().saturating_sub(by).max(8));
    let length = i32::try_from(frame.len() - 4).unwrap();
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

/// Encodes a create with any flags, which are the frame's last field.
fn create(path: &str, flags: i32, with_stat: bool, number: i32) -> Vec<u8> {
    let mut frame = plain_create(path.to_owned(), CreateMode::PERSISTENT, with_stat, "").encode(number);
    let at = frame.len() - 4;
    frame[at..].copy_from_slice(&flags.to_be_bytes());
    frame
}

fn plain_create(path: String, mode: CreateMode, with_stat: bool, data: &str) -> Request {
    Request::Create { path, data: data.as_bytes().to_vec(), mode, access: Access::Everybody, with_stat }
}

/// Returns a create whose reply contains the stat.
pub(crate) fn created(path: &str, ephemeral: bool, sequential: bool) -> Ask {
    Ask::Plain(plain_create(path.to_owned(), CreateMode { ephemeral, sequential }, true, "data"))
}

/// Draws any request.
pub(crate) fn asks() -> impl Strategy<Value = Ask> {
    let lists = || vec(paths(), 0..3);
    let flags = select(&[4, 5, 6, 7, -1, 1000][..]);
    let lengths = select(&[FRAME_MAX, FRAME_MAX, FRAME_MAX + 1, FRAME_MAX + 1024, FRAME_MAX + 1025][..]);
    prop_oneof![
        60 => requests().prop_map(Ask::Plain),
        2 => Just(Ask::Plain(Request::Close)),
        1 => (paths(), flags, any::<bool>())
            .prop_map(|(path, flags, with_stat)| Ask::Create { path, flags, with_stat }),
        3 => (0..8_i64, lists(), lists(), lists())
            .prop_map(|(seen, data, exist, child)| Ask::SetWatches { seen, data, exist, child }),
        1 => select(&["digest", "ip", UNKNOWN_SCHEME][..]).prop_map(Ask::Auth),
        1 => select(&[10, 99, 200, -2][..]).prop_map(Ask::Unknown),
        1 => (requests(), 1..12_usize).prop_map(|(request, by)| Ask::Short(request, by)),
        1 => prop_oneof![
            3 => lengths.prop_map(Ask::Long),
            1 => select(&[0, -1, i32::MAX, FRAME_MAX + 1][..]).prop_map(Ask::Length),
        ],
    ]
}

/// Draws a valid request that does not end the session.
pub(crate) fn requests() -> impl Strategy<Value = Request> {
    let versions = || select(&[-1, -1, 0, 1, 2, -2][..]);
    let modes = (any::<bool>(), any::<bool>())
        .prop_map(|(ephemeral, sequential)| CreateMode { ephemeral, sequential });
    let data = || select(&["", "x", "data"][..]);
    prop_oneof![
        16 => (new_paths(), modes, any::<bool>(), data())
            .prop_map(|(path, mode, with_stat, data)| plain_create(path.to_owned(), mode, with_stat, data)),
        6 => (paths(), versions())
            .prop_map(|(path, version)| Request::Delete { path: path.to_owned(), version }),
        8 => (paths(), any::<bool>())
            .prop_map(|(path, watch)| Request::Exists { path: path.to_owned(), watch }),
        8 => (paths(), any::<bool>())
            .prop_map(|(path, watch)| Request::Data { path: path.to_owned(), watch }),
        6 => (paths(), data(), versions()).prop_map(|(path, data, version)| {
            Request::SetData { path: path.to_owned(), data: data.as_bytes().to_vec(), version }
        }),
        10 => (paths(), any::<bool>(), any::<bool>()).prop_map(|(path, watch, with_stat)| {
            Request::Children { path: path.to_owned(), watch, with_stat }
        }),
        2 => paths().prop_map(|path| Request::Sync { path: path.to_owned() }),
        1 => Just(Request::Ping),
    ]
}

/// Draws paths for all requests but creates.
fn paths() -> impl Strategy<Value = &'static str> {
    let digits = ["/r/s-0000000000", "/r/s-0000000001", "/r/0000000000", "/r/a/s-0000000000"];
    let special = ["/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/none"];
    prop_oneof![
        20 => select(&[TOP, TOP, "/r/a", "/r/a", "/r/a", "/r/b", "/r/a/c"][..]),
        4 => select(digits.to_vec()),
        2 => select(special.to_vec()),
        1 => bad_paths(),
    ]
}

/// Draws paths to create: none directly below the root, whose counter of children outlasts scripts.
fn new_paths() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        30 => select(&["/r/a", "/r/b", "/r/a/c", "/r/s-", "/r/s-", "/r/a/s-", "/r/"][..]),
        2 => bad_paths(),
        1 => select(&["/r/\u{1f600}", "/", ""][..]),
    ]
}

/// Draws paths that are invalid or nearly so. None has a character beyond 16 bits, which servers don't write
/// as UTF-8.
fn bad_paths() -> impl Strategy<Value = &'static str> {
    let dots = ["/r/.", "/r/../r", "/r/..."];
    let slashes = ["r", "/r/a/", "/r//a", "//", "/none/a"];
    let characters = ["/r/a\0b", "/r/\u{1}", "/r/\u{7f}", "/r/\u{e000}", "/r/\u{fff0}", "/r/\u{e9}", "/r/ "];
    select([&dots[..], &slashes, &characters].concat())
}
