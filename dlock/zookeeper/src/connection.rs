//! One connection of a session: sends and receives frames, and decides when to ping.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dlock_runtime::{Instant, Runtime};
use futures_util::future::{Either, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc::UnboundedReceiver;

use super::order::Order;
use super::watches::Watches;
use super::wire::{Frames, Request, WireError, xid};

pub(super) struct Connection<R: Runtime> {
    runtime: R,
    reader: ReadHalf<R::Stream>,
    writer: WriteHalf<R::Stream>,
    frames: Frames,
    output: Output,
    /// Requests without an answer, oldest first.
    pub(super) pending: VecDeque<Pending>,
    /// Send time of the ping that is not answered yet.
    pub(super) ping: Option<Instant>,
    pub(super) watches: Watches,
    xid: i32,
    last_sent: Instant,
    last_received: Instant,
    /// A third of the session timeout: the longest silence before a ping, and the timeout for its answer.
    third: Duration,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(super) struct Pending {
    pub(super) xid: i32,
    pub(super) sent: Instant,
    pub(super) order: Order,
}

/// Bytes to be written.
#[derive(Default)]
struct Output {
    bytes: BytesMut,
    unflushed: bool,
}

/// Why [`Connection::wake`] returned.
pub(super) enum Wake {
    /// Bytes have arrived: see [`Connection::frame`].
    Arrived,
    /// A client's request; `None` if no client is left.
    Order(Option<Order>),
    /// The connection is lost.
    Lost,
}

impl<R: Runtime> Connection<R> {
    /// Wraps a fresh stream.
    pub(super) fn new(runtime: R, stream: R::Stream, timeout: Duration) -> Self {
        let (reader, writer) = split(stream);
        let now = runtime.now();
        let third = timeout / 3;
        Self {
            timer: Box::pin(sleep_until(runtime.clone(), now + third)),
            runtime,
            reader,
            writer,
            frames: Frames::default(),
            output: Output::default(),
            pending: VecDeque::new(),
            ping: None,
            watches: Watches::default(),
            xid: 0,
            last_sent: now,
            last_received: now,
            third,
        }
    }

    /// Queues a whole frame; returns the current time.
    pub(super) fn send(&mut self, frame: &[u8]) -> Instant {
        self.last_sent = self.runtime.now();
        self.output.bytes.extend_from_slice(frame);
        self.last_sent
    }

    /// Sends a request unless its caller has withdrawn it.
    pub(super) fn order(&mut self, order: Order) {
        if !order.ticket.take() {
            return;
        }
        // Negative xids are reserved.
        self.xid = self.xid.checked_add(1).unwrap_or(1);
        let sent = self.send(&order.request.encode(self.xid));
        self.pending.push_back(Pending { xid: self.xid, sent, order });
    }

    /// Sets the timeout negotiated with the server.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.third = timeout / 3;
        self.set_timer();
    }

    /// Waits for the next event; meanwhile writes bytes and keeps the session alive.
    pub(super) async fn wake(&mut self, orders: &mut UnboundedReceiver<Order>) -> Wake {
        loop {
            match self.next(orders).await {
                Next::Read(Ok(1..)) => {
                    self.last_received = self.runtime.now();
                    return Wake::Arrived;
                }
                Next::Read(_) | Next::Written(Err(_)) => return Wake::Lost,
                Next::Written(Ok(())) => {}
                Next::Order(order) => return Wake::Order(order),
                Next::Timer if self.is_silent() => return Wake::Lost,
                Next::Timer => self.keep_alive(),
            }
        }
    }

    /// Returns the next complete frame.
    pub(super) fn frame(&mut self) -> Result<Option<Bytes>, WireError> {
        self.frames.take()
    }

    async fn next(&mut self, orders: &mut UnboundedReceiver<Order>) -> Next {
        // Left before right: a frame that has arrived wins over a deadline that has passed.
        let read = pin!(self.reader.read_buf(self.frames.input()));
        let write = pin!(self.output.write(&mut self.writer));
        let order = pin!(orders.recv());
        match select(select(read, write), select(order, self.timer.as_mut())).await {
            Either::Left((Either::Left((read, _)), _)) => Next::Read(read),
            Either::Left((Either::Right((written, _)), _)) => Next::Written(written),
            Either::Right((Either::Left((order, _)), _)) => Next::Order(order),
            Either::Right((Either::Right(((), _)), _)) => Next::Timer,
        }
    }

    /// Returns whether an answer is overdue. With none outstanding, as after a pause of the process, the
    /// client sends a ping first.
    fn is_silent(&self) -> bool {
        self.oldest_unanswered()
            .is_some_and(|sent| self.runtime.now() >= sent.max(self.last_received) + self.third)
    }

    fn oldest_unanswered(&self) -> Option<Instant> {
        let request = self.pending.front().map(|pending| pending.sent);
        request.into_iter().chain(self.ping).min()
    }

    fn keep_alive(&mut self) {
        if self.ping.is_none() && self.runtime.now() >= self.last_sent + self.third {
            self.ping = Some(self.send(&Request::Ping.encode(xid::PING)));
        }
        self.set_timer();
    }

    /// Sets the timer to the next ping or overdue answer. Both come a third of the timeout after an event, so
    /// no later event needs an earlier timer: it is set again only after it fires.
    fn set_timer(&mut self) {
        let ping = if self.ping.is_none() { Some(self.last_sent) } else { None };
        let answer = self.oldest_unanswered().map(|sent| sent.max(self.last_received));
        let from = ping.into_iter().chain(answer).min().unwrap_or(self.last_sent);
        self.timer = Box::pin(sleep_until(self.runtime.clone(), from + self.third));
    }
}

enum Next {
    Read(io::Result<usize>),
    Written(io::Result<()>),
    Order(Option<Order>),
    Timer,
}

impl Output {
    /// Writes and flushes pending bytes, then waits for ever. Dropping it half-way loses nothing.
    async fn write(&mut self, writer: &mut (impl tokio::io::AsyncWrite + Unpin)) -> io::Result<()> {
        if self.bytes.is_empty() && !self.unflushed {
            return pending().await;
        }
        self.unflushed = true;
        while !self.bytes.is_empty() {
            if writer.write_buf(&mut self.bytes).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        writer.flush().await?;
        self.unflushed = false;
        Ok(())
    }
}

async fn sleep_until<R: Runtime>(runtime: R, deadline: Instant) {
    runtime.sleep_until(deadline).await;
}
