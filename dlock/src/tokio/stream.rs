//! A stream that can poll for its answer before it lets its thread sleep.
//!
//! Waking a sleeping thread takes nearly as long as the rest of a request if the server is near. Busy polling
//! asks the kernel repeatedly instead; it occupies a processor, and the thread's other tasks wait. The kernel
//! does the same for network cards with `SO_BUSY_POLL` (socket(7)), which loopback lacks. A stream polls only
//! if its last answers arrived within the polling time, as KVM does before it halts a virtual processor
//! (Documentation/virt/kvm/halt-polling.rst).
#![allow(
    clippy::disallowed_methods,
    reason = "the seam's live side: it polls for a time measured on the machine's clock"
)]

use std::hint::spin_loop;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::socket::Socket;

/// The number of bytes that one busy poll reads; the rest of a longer answer is read as usual.
const POLLED_BYTES: usize = 1024;

/// The number of consecutive answers that must have arrived soon before the next is polled for. If polling is
/// useless, because the server is far away or lacks a processor while we occupy it, at most one answer in
/// this many pays for it.
const TRUSTED: u8 = 16;

/// The byte stream of [`TokioRuntime`](crate::TokioRuntime).
#[derive(Debug)]
pub struct TokioStream {
    inner: Socket,
    busy_poll: Duration,
    /// The time of the first write that has no answer yet.
    asked: Option<Instant>,
    /// True if the next read should poll: something was written since the last read.
    is_to_poll: bool,
    /// The number of last consecutive answers that arrived within `busy_poll`, up to [`TRUSTED`].
    soon: u8,
}

impl TokioStream {
    /// Wraps a stream that polls for an answer for `busy_poll` before it sleeps, if the answers before
    /// arrived as soon.
    pub(super) fn new(inner: Socket, busy_poll: Duration) -> Self {
        Self { inner, busy_poll, asked: None, is_to_poll: false, soon: 0 }
    }

    /// Notes a write.
    fn note_write(&mut self, cx: &Context<'_>) {
        if self.busy_poll.is_zero() {
            return;
        }
        self.asked.get_or_insert_with(Instant::now);
        if self.soon == TRUSTED {
            self.is_to_poll = true;
            // A connection's driver reads before it writes, and would now sleep until the answer: wake it to
            // poll once more.
            cx.waker().wake_by_ref();
        }
    }

    /// Notes a read.
    fn note_read(&mut self) {
        if let Some(asked) = self.asked.take() {
            let is_soon = asked.elapsed() <= self.busy_poll;
            self.soon = if is_soon { TRUSTED.min(self.soon + 1) } else { 0 };
        }
    }

    /// Asks the kernel until bytes arrive, the stream ends or fails, or the time is over.
    fn poll_busily(&self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = buf.remaining().min(POLLED_BYTES);
        let begun = Instant::now();
        loop {
            // tokio would answer from its last notification, so ask the kernel directly.
            match recv(&self.inner, buf.initialize_unfilled_to(most), RecvFlags::DONTWAIT) {
                Ok((_, received)) => {
                    buf.advance(received);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN | Errno::INTR) if begun.elapsed() < self.busy_poll => spin_loop(),
                Err(Errno::AGAIN | Errno::INTR) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncRead for TokioStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let is_to_poll = std::mem::take(&mut self.is_to_poll);
        // Reading into an empty buffer would look like the stream's end.
        if is_to_poll && read.is_pending() && buf.remaining() > 0 {
            // The task stays registered with tokio: bytes that arrive later wake it.
            read = self.poll_busily(buf);
            if read.is_pending() {
                self.soon = 0;
            }
        }
        if read.is_ready() {
            self.note_read();
        }
        read
    }
}

impl AsyncWrite for TokioStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
        self.note_write(cx);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, parts));
        self.note_write(cx);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream as Peer};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LONG: Duration = Duration::from_millis(1);

    /// Returns a stream and its peer.
    async fn pair(busy_poll: Duration) -> io::Result<(TokioStream, Peer)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = Socket::connect(&listener.local_addr()?.to_string()).await?;
        Ok((TokioStream::new(stream, busy_poll), listener.accept()?.0))
    }

    /// Sends a request that the peer receives.
    async fn ask(stream: &mut TokioStream, peer: &mut Peer) -> io::Result<()> {
        stream.write_all(b"ping").await?;
        peer.read_exact(&mut [0; 4])
    }

    /// Returns a stream whose answers arrived soon, with a request that its peer has received.
    async fn asked(busy_poll: Duration) -> io::Result<(TokioStream, Peer)> {
        let (mut stream, mut peer) = pair(busy_poll).await?;
        stream.soon = TRUSTED;
        ask(&mut stream, &mut peer).await?;
        Ok((stream, peer))
    }

    /// Returns the result of a single read. No test awaits between answer and read, so tokio has no
    /// notification.
    fn read_once(stream: &mut TokioStream, room: usize) -> Option<io::Result<Vec<u8>>> {
        let mut bytes = vec![0; room];
        let mut buf = ReadBuf::new(&mut bytes);
        let read = Pin::new(stream).poll_read(&mut Context::from_waker(std::task::Waker::noop()), &mut buf);
        match read {
            Poll::Ready(read) => Some(read.map(|()| buf.filled().to_vec())),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_stream_polls_once_for_an_answer_it_expects() -> io::Result<()> {
        let (mut sleepy, mut peer) = asked(Duration::ZERO).await?;
        peer.write_all(b"pong")?;
        assert!(read_once(&mut sleepy, 8).is_none());
        let (mut busy, mut peer) = asked(LONG).await?;
        peer.write_all(b"pong")?;
        assert_eq!(read_once(&mut busy, 8).transpose()?.as_deref(), Some(&b"pong"[..]));
        peer.write_all(b"more")?;
        assert!(read_once(&mut busy, 8).is_none(), "nothing was asked since");
        Ok(())
    }

    /// Reads an answer without polling. The buffer has room left, so tokio knows that nothing remains.
    async fn read_late(stream: &mut TokioStream) -> io::Result<()> {
        stream.read(&mut [0; 8]).await.map(|_| ())
    }

    /// Returns whether the next answer, which is already there, is polled for.
    async fn is_polled_for(stream: &mut TokioStream, peer: &mut Peer) -> io::Result<bool> {
        ask(stream, peer).await?;
        peer.write_all(b"pong")?;
        let polled = read_once(stream, 8).transpose()?;
        if polled.is_none() {
            read_late(stream).await?;
        }
        assert!(stream.asked.is_none(), "the time of the next one is its own");
        Ok(polled.is_some())
    }

    #[tokio::test]
    async fn a_stream_polls_after_enough_soon_answers() -> io::Result<()> {
        // Soon on any machine.
        let (mut stream, mut peer) = pair(Duration::from_secs(60)).await?;
        for _ in 0..TRUSTED {
            assert!(!is_polled_for(&mut stream, &mut peer).await?);
        }
        assert!(is_polled_for(&mut stream, &mut peer).await?);
        assert!(is_polled_for(&mut stream, &mut peer).await?);
        // A late answer.
        stream.busy_poll = Duration::from_nanos(1);
        is_polled_for(&mut stream, &mut peer).await?;
        stream.busy_poll = Duration::from_secs(60);
        assert!(!is_polled_for(&mut stream, &mut peer).await?);
        Ok(())
    }

    #[tokio::test]
    async fn a_poll_without_an_answer_is_not_repeated() -> io::Result<()> {
        let (mut stream, mut peer) = asked(LONG).await?;
        assert!(read_once(&mut stream, 8).is_none());
        // The peer answers this one.
        assert!(!is_polled_for(&mut stream, &mut peer).await?);
        Ok(())
    }

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_write_wakes_the_reader_if_it_should_poll() -> io::Result<()> {
        for busy_poll in [Duration::ZERO, LONG] {
            let (mut stream, _peer) = asked(busy_poll).await?;
            let woken = Arc::new(Woken(AtomicBool::new(false)));
            let waker = Arc::clone(&woken).into();
            let written = Pin::new(&mut stream).poll_write(&mut Context::from_waker(&waker), b"ping");
            assert!(matches!(written, Poll::Ready(Ok(4))), "{written:?}");
            assert_eq!(woken.0.load(Ordering::Relaxed), !busy_poll.is_zero());
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_poll_with_an_empty_buffer_is_no_end() -> io::Result<()> {
        let (mut stream, peer) = asked(LONG).await?;
        drop(peer);
        assert_eq!(read_once(&mut stream, 8).transpose()?.as_deref(), Some(&b""[..]));
        let (mut stream, mut peer) = asked(LONG).await?;
        peer.write_all(b"pong")?;
        assert!(read_once(&mut stream, 0).is_none());
        Ok(())
    }

    #[tokio::test]
    async fn late_and_long_answers_are_read() -> io::Result<()> {
        let (mut stream, mut peer) = asked(LONG).await?;
        let answer: Vec<u8> = (0..100_000_u32).map(|byte| byte as u8).collect();
        let sent = answer.clone();
        let later = tokio::spawn(async move {
            tokio::time::sleep(3 * LONG).await;
            tokio::task::spawn_blocking(move || peer.write_all(&sent)).await
        });
        let mut heard = vec![0; answer.len()];
        stream.read_exact(&mut heard).await?;
        assert_eq!(heard, answer);
        assert!(later.await.is_ok());
        Ok(())
    }
}
