//! Shows frames as text that is the same for servers that agree: zxids count from the script's beginning,
//! sessions are numbered in the order in which the script opened them.

use dlock_zookeeper::Stat;
use dlock_zookeeper::wire::{Reader, Reply, ReplyHeader, Request, WireError, code, xid};

/// The values that a script's numbers are relative to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) zxid: i64,
    /// The root's stat, which earlier scripts have changed, too.
    pub(crate) root: Stat,
    /// The script's sessions so far.
    pub(crate) sessions: Vec<i64>,
}

/// A received frame as text, and the kind under which it is counted.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) kind: String,
    pub(crate) is_event: bool,
}

impl Origin {
    /// Shows a frame after the login: an event, or the reply to `request`.
    pub(crate) fn show(&self, frame: &[u8], request: Option<&Request>) -> Shown {
        let mut reader = Reader::new(frame);
        let shown = self.read(&mut reader, request).unwrap_or_else(|error| Shown {
            text: format!("({error}: {})", frame.escape_ascii()),
            kind: String::from("nonsense"),
            is_event: false,
        });
        match rest(frame, reader) {
            [] => shown,
            rest => Shown { text: format!("{} and then {}", shown.text, rest.escape_ascii()), ..shown },
        }
    }

    fn read(&self, reader: &mut Reader<'_>, request: Option<&Request>) -> Result<Shown, WireError> {
        let ReplyHeader { xid: number, zxid, err } = ReplyHeader::read(reader)?;
        if number == xid::NOTIFICATION {
            let (kind, state, path) = (reader.int()?, reader.int()?, reader.text()?);
            let text = format!("event {kind} in state {state}: {path:?}, zxid {zxid}, error {err}");
            return Ok(Shown { text, kind: format!("event {kind}"), is_event: true });
        }
        let (mut text, mut kind) = (format!("reply to {number} at {}", self.zxid(zxid)), String::new());
        if err != code::OK {
            text.push_str(&format!(": {}", name(err)));
            kind = name(err);
        } else if number == xid::AUTH {
            kind = String::from("auth");
        } else if let Some(request) = request {
            text.push_str(&format!(": {}", self.reply(&Reply::read(request.op(), reader)?)));
            kind = kind_of(request);
        }
        Ok(Shown { text, kind, is_event: false })
    }

    fn reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::Nothing => String::from("done"),
            Reply::Path(path) => format!("{path:?}"),
            Reply::Created { path, stat } => format!("{path:?}, {}", self.stat(stat)),
            Reply::Stat(stat) => self.stat(stat),
            Reply::Data { data, stat } => format!("{}, {}", contents(data), self.stat(stat)),
            Reply::Children { names, stat } => {
                let mut names = names.clone();
                names.sort();
                let stat = stat.as_ref().map(|stat| self.stat(stat)).unwrap_or_default();
                format!("{names:?} {stat}")
            }
        }
    }

    fn stat(&self, stat: &Stat) -> String {
        // Of the nodes that no transaction created, only the root has had changes of its children.
        let is_root = stat.czxid == 0 && stat.pzxid > 0;
        let (version, cversion) = match is_root {
            true => (stat.version - self.root.version, stat.cversion - self.root.cversion),
            false => (stat.version, stat.cversion),
        };
        format!(
            "czxid {} mzxid {} pzxid {} version {version} cversion {cversion} aversion {} owner {} length {} \
             children {} times {}",
            self.zxid(stat.czxid),
            self.zxid(stat.mzxid),
            self.zxid(stat.pzxid),
            stat.aversion,
            self.session(stat.ephemeral_owner),
            stat.data_length,
            stat.num_children,
            if stat.ctime > 0 && stat.mtime >= stat.ctime { "there" } else { "missing" },
        )
    }

    fn zxid(&self, zxid: i64) -> String {
        match zxid {
            ..=0 => zxid.to_string(),
            _ if zxid > self.zxid => format!("+{}", zxid - self.zxid),
            _ => String::from("before"),
        }
    }

    /// Returns the name of a session in the text.
    pub(crate) fn session(&self, id: i64) -> String {
        let place = self.sessions.iter().position(|&known| known == id);
        match (id, place) {
            (0, _) => String::from("none"),
            (_, Some(place)) => format!("session {}", place + 1),
            (_, None) => String::from("a session of no client"),
        }
    }
}

/// Returns the kind of an executed request.
fn kind_of(request: &Request) -> String {
    let name = request.op().name();
    match request {
        Request::Create { mode, .. } => {
            let ephemeral = if mode.ephemeral { " ephemeral" } else { "" };
            format!("{name}{ephemeral}{}", if mode.sequential { " sequential" } else { "" })
        }
        Request::Exists { watch: true, .. }
        | Request::Data { watch: true, .. }
        | Request::Children { watch: true, .. } => format!("{name} with a watch"),
        _ => name.to_owned(),
    }
}

/// Returns the name of an error in `KeeperException.Code`.
fn name(err: i32) -> String {
    let known = match err {
        code::MARSHALLING_ERROR => "MARSHALLINGERROR",
        code::UNIMPLEMENTED => "UNIMPLEMENTED",
        code::BAD_ARGUMENTS => "BADARGUMENTS",
        code::NO_NODE => "NONODE",
        code::BAD_VERSION => "BADVERSION",
        code::NO_CHILDREN_FOR_EPHEMERALS => "NOCHILDRENFOREPHEMERALS",
        code::NODE_EXISTS => "NODEEXISTS",
        code::NOT_EMPTY => "NOTEMPTY",
        code::NO_AUTH => "NOAUTH",
        code::AUTH_FAILED => "AUTHFAILED",
        _ => return format!("error {err}"),
    };
    known.to_owned()
}

fn contents(data: &[u8]) -> String {
    match data.len() {
        0..100 => format!("{:?}", String::from_utf8_lossy(data)),
        length => format!("{length} bytes"),
    }
}

fn rest<'a>(frame: &'a [u8], mut reader: Reader<'_>) -> &'a [u8] {
    let mut left = 0;
    while reader.boolean().is_ok() {
        left += 1;
    }
    &frame[frame.len() - left..]
}
