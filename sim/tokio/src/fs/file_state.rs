//! The state of a [`File`](super::File): one operation at a time, which runs in the background.

use std::future::{Future as _, poll_fn};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::background::{Work, start};
use super::cursor::Cursor;
use crate::io::ReadBuf;

/// The state of a file.
#[derive(Debug)]
pub(super) struct State {
    busy: Option<Work<Operation>>,
    /// The bytes that were read and not taken yet.
    unread: Vec<u8>,
    /// The kind of the error of a write that has failed in the background. The next call reports it.
    write_error: Option<io::ErrorKind>,
    position: u64,
    /// The largest number of bytes for one operation.
    length_max: usize,
}

/// The end of an operation.
#[derive(Debug)]
enum Operation {
    Read(io::Result<Vec<u8>>),
    Write(io::Result<()>),
    Seek(io::Result<u64>),
}

/// tokio's largest number of bytes for one operation.
const LENGTH_MAX: usize = 2 << 20;

impl State {
    /// Returns the state of a file without operations.
    pub(super) fn new() -> Self {
        Self { busy: None, unread: Vec::new(), write_error: None, position: 0, length_max: LENGTH_MAX }
    }

    /// Returns the largest number of bytes for one operation.
    pub(super) fn length_max(&self) -> usize {
        self.length_max
    }

    /// Sets the largest number of bytes for one operation.
    pub(super) fn set_length_max(&mut self, length: usize) {
        self.length_max = length;
    }

    /// Runs `operation`, which first goes back over bytes that were not taken.
    fn begin(&mut self, cursor: &Arc<Cursor>, operation: impl FnOnce(&Cursor) -> Operation + Send + 'static) {
        let (cursor, back) = (Arc::clone(cursor), std::mem::take(&mut self.unread).len());
        self.busy = Some(start(|machine| async move {
            let ended = machine.call(|_| {
                cursor.back(back);
                Ok(operation(&cursor))
            });
            ended.await.unwrap_or_else(|error| Operation::Write(Err(error)))
        }));
    }

    /// Waits for the operation, if one runs, and keeps the bytes that it has read. Returns its result.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Operation>>> {
        let Some(work) = &mut self.busy else { return Poll::Ready(Ok(None)) };
        let ended = ready!(Pin::new(work).poll(cx));
        self.busy = None;
        let mut ended = ended?;
        match &mut ended {
            Operation::Read(Ok(bytes)) => self.unread = std::mem::take(bytes),
            Operation::Seek(Ok(position)) => self.position = *position,
            _ => {}
        }
        Poll::Ready(Ok(Some(ended)))
    }

    /// Waits for the operation, and keeps the error of a write for the next call.
    pub(super) async fn ended(&mut self) -> io::Result<()> {
        if let Some(Operation::Write(Err(error))) = poll_fn(|cx| self.poll_ended(cx)).await? {
            self.write_error = Some(error.kind());
        }
        Ok(())
    }

    /// Changes the length of the file.
    pub(super) async fn set_len(&mut self, cursor: &Arc<Cursor>, length: u64) -> io::Result<()> {
        self.ended().await?;
        self.begin(cursor, move |cursor| Operation::Write(cursor.open().set_len(length)));
        match poll_fn(|cx| self.poll_ended(cx)).await? {
            Some(Operation::Write(result)) => result,
            _ => Ok(()),
        }
    }

    /// Reads into `out`.
    pub(super) fn poll_read(
        &mut self,
        cursor: &Arc<Cursor>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match ready!(self.poll_ended(cx))? {
                Some(Operation::Read(Err(error))) => return Poll::Ready(Err(error)),
                Some(Operation::Write(Err(error))) => self.write_error = Some(error.kind()),
                Some(Operation::Read(Ok(_))) => {
                    self.take(out);
                    return Poll::Ready(Ok(()));
                }
                _ => {}
            }
            if !self.unread.is_empty() || out.remaining() == 0 {
                self.take(out);
                return Poll::Ready(Ok(()));
            }
            let length = out.remaining().min(self.length_max);
            self.begin(cursor, move |cursor| Operation::Read(cursor.read(length)));
        }
    }

    fn take(&mut self, out: &mut ReadBuf<'_>) {
        let length = out.remaining().min(self.unread.len());
        out.put_slice(&self.unread[..length]);
        self.unread.drain(..length);
    }

    /// Begins to write bytes, and returns their number.
    pub(super) fn poll_write(
        &mut self,
        cursor: &Arc<Cursor>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(kind) = self.write_error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        if let Some(Operation::Write(result)) = ready!(self.poll_ended(cx))? {
            result?;
        }
        let bytes: Vec<u8> =
            parts.iter().flat_map(|part| part.iter().copied()).take(self.length_max).collect();
        let length = bytes.len();
        self.begin(cursor, move |cursor| Operation::Write(cursor.write(&bytes)));
        Poll::Ready(Ok(length))
    }

    /// Waits for the write in the background.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.write_error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        match ready!(self.poll_ended(cx))? {
            Some(Operation::Write(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Begins to move the position.
    pub(super) fn start_seek(&mut self, cursor: &Arc<Cursor>, to: SeekFrom) -> io::Result<()> {
        if self.busy.is_some() {
            return Err(io::Error::other(
                "other file operation is pending, call poll_complete before start_seek",
            ));
        }
        self.begin(cursor, move |cursor| Operation::Seek(cursor.seek(to)));
        Ok(())
    }

    /// Returns the position after the operation.
    pub(super) fn poll_complete(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        match ready!(self.poll_ended(cx))? {
            Some(Operation::Seek(Err(error))) => return Poll::Ready(Err(error)),
            Some(Operation::Write(Err(error))) => self.write_error = Some(error.kind()),
            _ => {}
        }
        Poll::Ready(Ok(self.position))
    }
}
