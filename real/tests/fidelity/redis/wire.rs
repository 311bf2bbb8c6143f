//! A client's connection: sends commands, and returns replies byte for byte.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A text that no message contains.
const MARK: &[u8] = b"that is all";

/// The bytes of a reply, in RESP2 or RESP3; none if the server closed the connection instead.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Reply(pub(crate) Vec<u8>);

impl Reply {
    pub(crate) fn is_error(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(b"-")
    }

    /// Returns true if the server has closed the connection.
    pub(crate) fn is_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if it answers the PING with which [`Connection::say_all`] ends.
    fn is_marked(&self) -> bool {
        self.lines().last() == Some(&MARK)
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.0 == b"+QUEUED\r\n"
    }

    /// Returns its lines: `:1` is one; `$1` and the text after it are two.
    pub(crate) fn lines(&self) -> Vec<&[u8]> {
        let mut lines: Vec<_> = self.0.split(|byte| *byte == b'\n').collect();
        lines.pop();
        lines.iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(closed the connection)");
        }
        let lines: Vec<_> = self.lines().iter().map(|line| line.escape_ascii().to_string()).collect();
        f.write_str(&lines.join(" "))
    }
}

/// A connection to one server.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The bytes of `received` that are known to belong to the reply that it begins with.
    read: usize,
    /// The number of values of that reply that are still to come, as far as is known.
    missing: i64,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, received: Vec::new(), read: 0, missing: 1 })
    }

    /// Sends a request and returns its reply.
    pub(crate) fn say(&mut self, request: &[u8]) -> io::Result<Reply> {
        match self.stream.write_all(request).and_then(|()| self.reply()) {
            // A server that closes before it has read everything resets the connection.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                Ok(Reply(Vec::new()))
            }
            other => other,
        }
    }

    /// Sends a request and then a PING; returns all replies up to that to the PING, or to the end of the
    /// connection.
    pub(crate) fn say_all(&mut self, request: &[u8]) -> io::Result<Vec<Reply>> {
        let ping = self::request(&[b"PING".to_vec(), MARK.to_vec()]);
        let mut replies = vec![self.say(&[request, &ping].concat())?];
        while replies.last().is_some_and(|reply| !reply.is_end() && !reply.is_marked()) {
            replies.push(self.say(&[])?);
        }
        Ok(replies)
    }

    /// Sends a request that may get its reply later.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Returns the next reply if it comes within `wait`.
    pub(crate) fn poll(&mut self, wait: Duration) -> io::Result<Option<Reply>> {
        self.stream.set_read_timeout(Some(wait))?;
        let reply = self.reply();
        self.stream.set_read_timeout(Some(TIMEOUT))?;
        match reply {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            other => other.map(Some),
        }
    }

    fn reply(&mut self) -> io::Result<Reply> {
        loop {
            while self.missing > 0
                && let Some((end, items)) = value(&self.received, self.read)
            {
                (self.read, self.missing) = (end, self.missing + items - 1);
            }
            if self.missing == 0 {
                return Ok(self.take(self.read));
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece)? {
                0 => return Ok(self.take(self.received.len())),
                count => self.received.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Returns what was received up to `end`, and begins with the next reply.
    fn take(&mut self, end: usize) -> Reply {
        (self.read, self.missing) = (0, 1);
        let rest = self.received.split_off(end);
        Reply(std::mem::replace(&mut self.received, rest))
    }
}

/// Encodes a command.
pub(crate) fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// Returns the end of the value that begins at `start`, without the values it contains, and their number;
/// `None` if it is not complete.
fn value(bytes: &[u8], start: usize) -> Option<(usize, i64)> {
    let rest = bytes.get(start..)?;
    let line = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let next = start + line + 2;
    let length = || std::str::from_utf8(&rest[1..line]).ok()?.parse::<i64>().ok();
    match rest[0] {
        b'$' | b'=' | b'!' => {
            // A negative length means null.
            let Ok(size) = usize::try_from(length()?) else { return Some((next, 0)) };
            let end = next + size + 2;
            (bytes.len() >= end).then_some((end, 0))
        }
        b'*' | b'~' | b'>' => Some((next, length()?.max(0))),
        b'%' => Some((next, 2 * length()?.max(0))),
        _ => Some((next, 0)),
    }
}
