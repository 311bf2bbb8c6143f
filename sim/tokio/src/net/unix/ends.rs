//! The two ends of a connection within one process.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Waker;

use sim_host::Stream;

use super::direction::Direction;

/// The most bytes that wait to be read, as in Linux (`net.core.wmem_default`).
const CAPACITY: usize = 212_992;

/// One end of a connection. Dropping it closes both directions.
pub(super) struct End {
    reads: Direction,
    writes: Direction,
}

/// Returns the two ends of a connection.
pub(super) fn pair() -> (End, End) {
    let (one, other) = (Direction::new(CAPACITY, 0), Direction::new(CAPACITY, 0));
    (End { reads: one.clone(), writes: other.clone() }, End { reads: other, writes: one })
}

impl Stream for End {
    /// Has no address of the network.
    fn local(&self) -> SocketAddr {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    }

    /// Has no address of the network.
    fn peer(&self) -> SocketAddr {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    }

    fn read(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.read(waker, bytes)
    }

    fn peek(&self, waker: Option<&Waker>, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.peek(waker, bytes)
    }

    fn write(&self, waker: Option<&Waker>, bytes: &[u8]) -> io::Result<usize> {
        self.writes.write(waker, bytes)
    }

    fn writable(&self, waker: Option<&Waker>) -> io::Result<()> {
        self.writes.check_room(waker)
    }

    fn shut_down(&self, _: Option<&Waker>) -> io::Result<()> {
        self.writes.close();
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.reads.close();
        self.writes.close();
    }
}
