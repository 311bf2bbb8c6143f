//! Pipes: one direction of a connection each.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use tokio::io::ReadBuf;

use super::World;
use super::capture::Passage;

/// The arrival time of a segment that a cut link holds.
pub(super) const HELD: u64 = u64::MAX;

/// The end of a pipe, as its reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The writer closed its end.
    Closed,
    /// The connection was reset.
    Reset,
}

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Bytes that were sent and not read, in the order of `segments`.
    pub(super) bytes: VecDeque<u8>,
    /// The arrival time and the length of each segment.
    pub(super) segments: VecDeque<(u64, usize)>,
    /// The time at which the pipe's end reaches the reader.
    pub(super) ending: Option<(u64, Ending)>,
    pub(super) last_arrival: u64,
    /// The reader's task, and the arrival time for which its timer is set.
    reader: Option<(Waker, u64)>,
    /// True if the reader is gone: all further bytes are lost.
    pub(super) abandoned: bool,
    /// True if the host of the writer or of the reader lost power: all further bytes are lost without a
    /// reset.
    pub(super) silent: bool,
}

impl Ending {
    /// Returns the end as a read sees it.
    pub(super) fn as_read(self) -> io::Result<()> {
        match self {
            Self::Closed => Ok(()),
            Self::Reset => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

/// The result of polling a pipe.
pub(super) enum Arrived {
    /// The number of bytes that can be read.
    Bytes(usize),
    /// The pipe has ended.
    Ended(Ending),
    /// No bytes have arrived yet.
    Nothing,
}

/// Returns the passage of what arrives at `at`.
pub(super) fn passage(at: u64) -> Passage {
    Passage::of((at != HELD).then_some(at))
}

impl Pipe {
    pub(super) fn new(from: usize, to: usize) -> Self {
        Self { from, to, ..Self::default() }
    }

    /// Returns what has arrived by now. If nothing has, wakes `waker`, if there is one, at the next arrival.
    pub(super) fn poll(&mut self, world: &World, waker: Option<&Waker>) -> Arrived {
        let now = world.now();
        if self.segments.front().is_some_and(|(at, _)| *at <= now) {
            let arrived = self.segments.iter().take_while(|(at, _)| *at <= now);
            return Arrived::Bytes(arrived.map(|(_, length)| length).sum());
        }
        if let (Some((at, ending)), true) = (self.ending, self.segments.is_empty())
            && at <= now
        {
            return Arrived::Ended(ending);
        }
        let Some(waker) = waker else { return Arrived::Nothing };
        let next = self.segments.front().map(|(at, _)| *at).or(self.ending.map(|(at, _)| at)).unwrap_or(HELD);
        let set = matches!(&self.reader, Some((old, at)) if *at == next && old.will_wake(waker));
        if !set {
            self.reader = Some((waker.clone(), next));
            if next != HELD {
                world.wake_at(next, waker);
            }
        }
        Arrived::Nothing
    }

    /// Moves the `arrived` bytes into `buf`, as far as they fit.
    pub(super) fn read_into(&mut self, buf: &mut ReadBuf<'_>, arrived: usize) {
        let mut length = arrived.min(buf.remaining());
        self.consume(length);
        if let (head, []) = self.bytes.as_slices()
            && head.len() == length
        {
            buf.put_slice(head);
            self.bytes.clear();
            return;
        }
        while length > 0 {
            let (head, _) = self.bytes.as_slices();
            let part = length.min(head.len());
            buf.put_slice(&head[..part]);
            self.bytes.drain(..part);
            length -= part;
        }
    }

    /// Removes the first `length` bytes from the segments.
    pub(super) fn consume(&mut self, mut length: usize) {
        while length > 0 {
            let Some((_, head)) = self.segments.front_mut() else { return };
            let part = length.min(*head);
            *head -= part;
            length -= part;
            if *head == 0 {
                self.segments.pop_front();
            }
        }
    }

    /// Returns true if the pipe was reset, even if the reset has not reached the reader yet.
    pub(super) fn is_reset(&self) -> bool {
        matches!(self.ending, Some((_, Ending::Reset)))
    }

    /// Returns the arrival time, no earlier than that of the segment before.
    pub(super) fn order(&mut self, arrival: Option<u64>) -> u64 {
        let at = arrival.map_or(HELD, |at| at.max(self.last_arrival));
        // All segments behind a held one are held, too.
        self.last_arrival = self.last_arrival.max(at);
        at
    }

    pub(super) fn announce(&mut self, world: &World, at: u64) {
        if at == HELD {
            return;
        }
        if let Some((waker, next)) = &mut self.reader
            && at < *next
        {
            *next = at;
            world.wake_at(at, waker);
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.last_arrival == HELD
    }

    pub(super) fn deliver_held(&mut self, world: &World, arrival: Option<u64>) {
        let Some(arrival) = arrival else { return };
        let earlier = self.segments.iter().map(|(at, _)| *at).filter(|at| *at != HELD).max().unwrap_or(0);
        self.last_arrival = arrival.max(earlier);
        let last = self.last_arrival;
        self.segments.iter_mut().filter(|(at, _)| *at == HELD).for_each(|(at, _)| *at = last);
        if let Some((at, _)) = self.ending.as_mut().filter(|(at, _)| *at == HELD) {
            *at = last;
        }
        self.announce(world, last);
    }

    /// Drops the segments that have not arrived by `now`.
    pub(super) fn discard_in_flight(&mut self, now: u64) {
        let arrived = self.segments.iter().take_while(|(at, _)| *at <= now).count();
        self.segments.truncate(arrived);
        let bytes = self.segments.iter().map(|(_, length)| length).sum();
        self.bytes.truncate(bytes);
        self.last_arrival = now;
    }
}
