//! A byte stream in memory: the harness holds one end, the code under test the other.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::lock;

/// The harness's end of a stream.
#[derive(Clone)]
pub struct Far(Arc<Mutex<State>>);

/// The end of the code under test.
pub struct Near(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Bytes on their way to the near end, one segment for each [`Far::send`].
    segments: VecDeque<Vec<u8>>,
    /// True if the near end reads an end of file after them.
    is_finished: bool,
    /// Bytes that the near end has written.
    written: Vec<u8>,
    /// True if the near end has shut its side down, or was dropped.
    is_closed: bool,
    reader: Option<Waker>,
}

/// Returns both ends of a stream.
pub fn pipe() -> (Far, Near) {
    let state = Arc::new(Mutex::new(State::default()));
    (Far(Arc::clone(&state)), Near(state))
}

impl Far {
    /// Sends one segment: a read of the near end returns bytes of one segment only.
    pub fn send(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = lock(&self.0);
        state.segments.push_back(bytes.to_vec());
        wake(&mut state);
    }

    /// Sends the end of file.
    pub fn finish(&self) {
        let mut state = lock(&self.0);
        state.is_finished = true;
        wake(&mut state);
    }

    /// Takes all bytes that the near end has written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).written)
    }

    /// Returns true if the near end writes nothing more.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).is_closed
    }
}

fn wake(state: &mut State) {
    if let Some(reader) = state.reader.take() {
        reader.wake();
    }
}

impl AsyncRead for Near {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        let Some(mut segment) = state.segments.pop_front() else {
            if state.is_finished {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let rest = segment.split_off(segment.len().min(buffer.remaining()));
        buffer.put_slice(&segment);
        if !rest.is_empty() {
            state.segments.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Near {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).is_closed = true;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        lock(&self.0).is_closed = true;
    }
}
