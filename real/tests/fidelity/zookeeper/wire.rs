//! A connection to one server: sends and receives frames.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use dlock_zookeeper::wire::{ConnectRequest, Frames};

/// Longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Connection {
    stream: TcpStream,
    frames: Frames,
    /// The number of the latest request.
    xid: i32,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, frames: Frames::default(), xid: 0 }
    }

    /// Returns the number of the next request.
    pub(crate) fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    /// Sends bytes. Ignores a closed connection, which shows when the answer is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            assert!(is_end(&error), "{error}");
        }
    }

    /// Sends `request` and returns the answer; `None` if the server closes the connection instead.
    pub(crate) fn log_in(&mut self, request: &ConnectRequest) -> Option<Bytes> {
        self.send(&request.encode());
        self.frame()
    }

    /// Waits until the server closes the connection; returns false if it sends something instead, or nothing
    /// for [`TIMEOUT`].
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => is_end(&error),
        }
    }

    /// Returns the next frame; `None` if the server has closed the connection.
    pub(crate) fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.take().unwrap() {
                return Some(frame);
            }
            let mut piece = [0; 16 * 1024];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.frames.input().extend_from_slice(&piece[..count]),
                // A server that closes before it has read everything resets the connection.
                Err(error) if is_end(&error) => return None,
                Err(error) => panic!("the server neither answers nor closes the connection: {error}"),
            }
        }
    }

    /// Returns all bytes until the server closes the connection, escaped.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert!(is_end(&error), "{error}");
        }
        rest.escape_ascii().to_string()
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
