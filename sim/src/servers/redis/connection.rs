//! One connection: requests in, replies out.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::future::{Either, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::Server;
use super::core::Client;
use super::reply::Reply;
use super::request::RequestParser;
use super::stream::feed_replica;
use crate::world::machine::Machine;

/// Replies that pile up beyond this are sent before more requests are read.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of requests that wait for their answers: `client-query-buffer-limit` of Redis 7.0, 1 GB.
const INPUT_BYTES_MAX: usize = 1 << 30;
/// Bytes that one read takes while a reply is not read yet.
const READ_AHEAD_BYTES: usize = 16 * 1024;

pub(super) struct Connection<'a, M, S> {
    server: &'a Server<M>,
    stream: S,
    /// The client's name for observers.
    label: &'a str,
    client: Client,
    parser: RequestParser,
    /// Bytes that were read and not answered yet. A plain vector reuses the same memory for each request,
    /// which stays in the processor's cache.
    input: Vec<u8>,
    output: Vec<u8>,
}

impl<'a, M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, M, S> {
    pub(super) fn new(server: &'a Server<M>, stream: S, label: &'a str) -> Self {
        let mut client = server.core().connect();
        client.label = label.to_owned();
        let (input, output) = (Vec::with_capacity(4096), Vec::with_capacity(1024));
        Self { server, stream, label, client, parser: RequestParser::default(), input, output }
    }

    /// Serves until the client leaves or the stream breaks.
    pub(super) async fn serve(mut self) -> io::Result<()> {
        while !self.client.is_closing {
            match self.read().await? {
                Some(0) => break,
                Some(_) => {}
                None => {
                    self.take_pending();
                    self.send().await?;
                    continue;
                }
            }
            loop {
                let stopped = self.answer();
                self.send().await?;
                if let Some(feed) = self.client.feed.take() {
                    return feed_replica(self.server, self.client.id, &mut self.stream, feed).await;
                }
                if let Some(wait) = self.client.wait.take() {
                    let server = self.server;
                    let reply = self.read_until(async move { Reply::count(server.wait(wait).await) }).await?;
                    reply.encode(&mut self.output, self.client.protocol);
                } else if let Some(blocked) = self.client.blocked.take() {
                    let reply =
                        self.read_until(self.server.wait_for_elements(self.client.id, blocked)).await?;
                    self.client.written_offset = self.server.core().replication.offset;
                    reply.encode(&mut self.output, self.client.protocol);
                } else if !stopped {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads bytes and returns their number; returns `None` if published messages are to be sent first.
    async fn read(&mut self) -> io::Result<Option<usize>> {
        let read = self.stream.read_buf(&mut self.input);
        let Some(wake) = &self.client.wake else { return read.await.map(Some) };
        match select(pin!(read), pin!(wake.pending.notified())).await {
            Either::Left((read, _)) => read.map(Some),
            Either::Right(_) => Ok(None),
        }
    }

    /// Waits for `reply`, and meanwhile reads requests and sends published messages: a client that leaves
    /// gets no elements any more, and is not waited for.
    async fn read_until(&mut self, reply: impl Future<Output = Reply>) -> io::Result<Reply> {
        let mut reply = pin!(reply);
        loop {
            let read = match select(reply.as_mut(), pin!(self.read())).await {
                Either::Left((reply, _)) => return Ok(reply),
                Either::Right((read, _)) => read?,
            };
            let Some(read) = read else {
                self.take_pending();
                self.send().await?;
                continue;
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.input.len() >= INPUT_BYTES_MAX {
                return Err(io::Error::other("the requests that wait exceed client-query-buffer-limit"));
            }
        }
    }

    fn take_pending(&mut self) {
        let channels = &mut self.server.core().state.channels;
        channels.take_pending(self.client.id, &mut self.output, OUTPUT_BYTES_MAX);
    }

    /// Answers the requests that have arrived. Returns whether it stopped before the last one.
    fn answer(&mut self) -> bool {
        let mut used = 0;
        while used < self.input.len() && !self.must_stop() {
            match self.parser.parse(&self.input[used..]) {
                Ok(Some(size)) => {
                    let args = self.parser.args(&self.input[used..]);
                    if !args.is_empty() {
                        let reply = self.server.execute(&mut self.client, self.label, args);
                        if self.client.wake.is_some() {
                            // A message that the client published to itself comes before the reply.
                            let channels = &mut self.server.core().state.channels;
                            channels.take_pending(self.client.id, &mut self.output, usize::MAX);
                        }
                        reply.encode(&mut self.output, self.client.protocol);
                        self.output.append(&mut self.client.own_lines);
                    }
                    used += size;
                }
                Ok(None) => break,
                Err(error) => {
                    Reply::error_text(format!("ERR {error}")).encode(&mut self.output, self.client.protocol);
                    self.client.is_closing = true;
                }
            }
        }
        self.input.drain(..used);
        self.must_stop() && !self.client.is_closing
    }

    fn must_stop(&self) -> bool {
        let Client { is_closing, wait, blocked, feed, .. } = &self.client;
        let waits = wait.is_some() || blocked.is_some() || feed.is_some();
        *is_closing || waits || self.output.len() >= OUTPUT_BYTES_MAX
    }

    async fn send(&mut self) -> io::Result<()> {
        // Effects are written to the file before the replies that acknowledge them are sent.
        if self.server.persists() {
            self.server.core().journal.write();
        }
        if self.output.is_empty() {
            return Ok(());
        }
        let Some(wake) = self.client.wake.clone() else { return self.write_output().await };
        match select(pin!(self.write_output()), pin!(wake.overrun.notified())).await {
            Either::Left((written, _)) => written?,
            Either::Right(_) => {
                return Err(io::Error::other("the subscriber exceeds client-output-buffer-limit"));
            }
        }
        if self.server.core().state.channels.sent(self.client.id) {
            wake.pending.notify_one();
        }
        Ok(())
    }

    async fn write_output(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.output.len() {
            sent += poll_fn(|cx| self.poll_write(cx, sent)).await?;
        }
        self.output.clear();
        self.stream.flush().await
    }

    /// Writes a part of the replies after those `sent`. While the client reads none, it takes in further
    /// requests, as Redis does: a client may send a long pipeline before it reads the first reply.
    fn poll_write(&mut self, cx: &mut Context<'_>, sent: usize) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, &self.output[sent..]);
        if written.is_ready() {
            return match ready!(written) {
                Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => Poll::Ready(written),
            };
        }
        while self.input.len() < INPUT_BYTES_MAX {
            let mut bytes = [0; READ_AHEAD_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                // The client sends nothing more; it may still read.
                return Poll::Pending;
            }
            self.input.extend_from_slice(buffer.filled());
        }
        Poll::Ready(Err(io::Error::other("the requests that wait exceed client-query-buffer-limit")))
    }
}

impl<M, S> Drop for Connection<'_, M, S> {
    fn drop(&mut self) {
        let mut core = self.server.core();
        core.connected -= 1;
        core.replication.remove(self.client.id);
        core.watches.remove(self.client.id);
        core.state.wishes.remove(self.client.id);
        core.state.channels.remove(self.client.id);
    }
}
