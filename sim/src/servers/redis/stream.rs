//! Both ends of the replication stream: a primary sends it, a replica applies it.
//!
//! The stream is that of Redis: commands with absolute times, scripts as their effects, sent asynchronously.
//! The handshake is a short form: `PSYNC ? -1`, answered by `+FULLRESYNC id offset` and a snapshot in one
//! bulk string, which holds commands and not an RDB file. So replicas can follow simulated servers only.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use dlock_runtime::{probes, sometimes};
use futures_util::future::{self, Either};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::{OwnedFrame, Resp2Frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Server;
use super::core::Core;
use super::number::parse_i64;
use super::replay::Replay;
use super::replication::Feed;
use super::reply::push_command;
use super::request::{ArgBuffer, RequestParser};
use super::state::Record;
use crate::world::machine::Machine;

/// The pause before a replica reconnects to its primary.
const RECONNECT: Duration = Duration::from_millis(100);

/// Sends `feed` to a replica and reads its acknowledgements, until either direction ends.
pub(crate) async fn feed_replica<M: Machine>(
    server: &Server<M>,
    client: u64,
    stream: impl AsyncRead + AsyncWrite,
    feed: Feed,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let Feed { start, mut effects, overrun } = feed;
    let sending = async {
        writer.write_all(&start).await?;
        writer.flush().await?;
        while let Some(bytes) = effects.recv().await {
            writer.write_all(&bytes).await?;
            writer.flush().await?;
            server.core().replication.sent(client, bytes.len());
        }
        Ok(())
    };
    let sending = async {
        match future::select(pin!(sending), pin!(overrun.notified())).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err(io::Error::other("the replica exceeds client-output-buffer-limit")),
        }
    };
    let receiving = async {
        let (mut buffer, mut parser) = (BytesMut::new(), RequestParser::default());
        while reader.read_buf(&mut buffer).await? > 0 {
            while let Ok(Some(size)) = parser.parse(&buffer) {
                let words: Vec<&[u8]> = parser.args(&buffer).iter().collect();
                if let [_, _, offset] = words[..] {
                    server.acknowledge(client, parse_i64(offset).unwrap_or(0).cast_unsigned());
                }
                buffer.advance(size);
            }
        }
        Ok(())
    };
    match future::select(pin!(receiving), pin!(sending)).await {
        Either::Left((ended, _)) | Either::Right((ended, _)) => ended,
    }
}

/// The replica's end of the stream: reads frames and applies them.
#[derive(Debug, Default)]
struct Follower {
    buffer: BytesMut,
    replay: Replay,
    /// The offset up to which the stream is applied; `None` before the snapshot.
    offset: Option<u64>,
    announced: u64,
}

impl Follower {
    /// Applies every frame that has arrived. Returns false if the stream breaks the protocol.
    fn apply(&mut self, core: &mut Core) -> bool {
        loop {
            match decode(&self.buffer) {
                Ok(Some((frame, size))) => {
                    self.buffer.advance(size);
                    if !self.apply_frame(core, &frame, size) {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn apply_frame(&mut self, core: &mut Core, frame: &OwnedFrame, size: usize) -> bool {
        match (frame, self.offset) {
            (OwnedFrame::SimpleString(line), None) => {
                let words = line.split(|byte| *byte == b' ').collect::<Vec<_>>();
                let [b"FULLRESYNC", id, offset] = words[..] else { return false };
                core.replication.id = String::from_utf8_lossy(id).into_owned();
                self.announced = parse_i64(offset).unwrap_or(0).cast_unsigned();
                true
            }
            (OwnedFrame::BulkString(snapshot), None) => {
                self.apply_snapshot(core, snapshot);
                self.offset = Some(self.announced);
                true
            }
            (OwnedFrame::Array(words), Some(offset)) => {
                let mut command = ArgBuffer::default();
                words.iter().filter_map(OwnedFrame::as_bytes).for_each(|word| command.push(word));
                self.replay.apply(&mut core.state, command.args());
                self.offset = Some(offset + size as u64);
                true
            }
            _ => false,
        }
    }

    fn apply_snapshot(&mut self, core: &mut Core, snapshot: &[u8]) {
        // Loading a snapshot is no event.
        let published = std::mem::take(&mut core.state.published);
        core.state.flush_all();
        let (mut read, mut parser) = (0, RequestParser::default());
        while let Ok(Some(size)) = parser.parse(&snapshot[read..]) {
            self.replay.apply(&mut core.state, parser.args(&snapshot[read..]));
            read += size;
        }
        core.state.published = published;
    }

    /// Returns the acknowledgement for the primary.
    fn acknowledgement(&self) -> Option<Vec<u8>> {
        let offset = self.offset?.to_string();
        let mut request = Vec::new();
        push_command(&mut request, &[b"REPLCONF", b"ACK", offset.as_bytes()]);
        Some(request)
    }
}

impl<M: Machine> Server<M> {
    /// Follows the primary at the other end of `stream` as its replica, until the stream breaks or the server
    /// is promoted. A replica answers reads, refuses writes, and leaves the removal of expired keys to its
    /// primary.
    ///
    /// Replication is asynchronous, as in Redis: a replica that is promoted loses the effects in flight.
    ///
    /// # Errors
    ///
    /// The stream's error, or `InvalidData` if the other end is no primary of this kind.
    pub async fn follow(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin + Send) -> io::Result<()> {
        self.core().state.is_replica = true;
        stream.write_all(b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n").await?;
        stream.flush().await?;
        let mut follower = Follower::default();
        loop {
            let read = {
                let promoted = pin!(self.shared.promoted.notified());
                let reading = pin!(stream.read_buf(&mut follower.buffer));
                match future::select(promoted, reading).await {
                    Either::Left(_) => return Ok(()),
                    Either::Right((read, _)) => read?,
                }
            };
            if read == 0 {
                return Ok(());
            }
            if !self.apply_stream(&mut follower)? {
                return Ok(());
            }
            if let Some(acknowledgement) = follower.acknowledgement() {
                stream.write_all(&acknowledgement).await?;
                stream.flush().await?;
            }
        }
    }

    /// Follows the primary at `address`, written `host:port`, and connects again when the connection breaks,
    /// until the server is promoted.
    pub async fn replicate(&self, address: &str) {
        while self.is_replica() {
            let connected = self.shared.machine.connect(address).await;
            // It may have been promoted meanwhile: following would make it a replica again.
            if let Ok(stream) = connected
                && self.is_replica()
            {
                // A broken connection is replaced by the next.
                let ended = self.follow(stream).await;
                let is_lost = ended.is_err() || self.is_replica();
                sometimes!(self.shared.machine, replication_broken, is_lost);
            }
            self.shared.machine.sleep(RECONNECT).await;
        }
    }

    /// Makes a replica a primary: it accepts writes and expires keys from now on. A primary stays unchanged.
    pub fn promote(&self) {
        let was_replica = std::mem::take(&mut self.core().state.is_replica);
        if was_replica {
            self.promoted();
        }
    }

    fn apply_stream(&self, follower: &mut Follower) -> io::Result<bool> {
        let mut core = self.core();
        if !core.state.is_replica {
            return Ok(false);
        }
        core.state.now_micros = self.now_micros();
        let is_sound = follower.apply(&mut core);
        core.publish();
        if let Some(offset) = follower.offset {
            // The position in the primary's stream, which ROLE and INFO tell.
            core.replication.offset = offset;
        }
        core.journal.write();
        let oversleeps = core.oversleeps();
        let mut record = Record::default();
        core.take_record(&mut record);
        drop(core);
        if oversleeps {
            // The file is to be synced.
            self.shared.wake.notify_one();
        }
        // The observer received these changes from the primary: it only notes the state.
        self.shared.options.observer.restored(&record.effects);
        if is_sound { Ok(true) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

probes! {
    /// A replica lost the connection to its primary.
    sometimes replication_broken;
}
