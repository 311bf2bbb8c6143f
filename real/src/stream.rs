//! A TCP stream that may look for its answer a while before it lets its thread sleep.
//!
//! A thread that sleeps until the answer comes must be woken, and where the server is near that takes nearly as long as all
//! the rest. Busy polling asks the kernel again and again instead: a processor is paid for it, and nothing else on the thread
//! goes on in that time. The kernel does the same for network cards, as `SO_BUSY_POLL` (socket(7)), which loopback has not. It
//! is done only where the last answers came within the time for which it would be done, as KVM does before it halts a virtual
//! processor (Documentation/virt/kvm/halt-polling.rst).
#![allow(
    clippy::disallowed_methods,
    reason = "the seam's live side: how long to poll is told by the machine's clock"
)]

use std::hint::spin_loop;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How much is taken when an answer was polled for; the rest of a longer one is read the usual way.
const POLLED_BYTES: usize = 1024;

/// So many answers in a row must have come soon before the next one is polled for. Where polling is in vain, because the server
/// is far or has no processor while we have it, no more than one answer in so many pays for it.
const TRUSTED: u8 = 16;

/// The byte stream of [`TokioRuntime`](crate::TokioRuntime).
#[derive(Debug)]
pub struct Stream {
    inner: TcpStream,
    busy_poll: Duration,
    /// When something was written first to which no answer has come.
    asked: Option<Instant>,
    /// Something was written since the last read, and is to be polled for: an answer may be near.
    is_to_poll: bool,
    /// How many of the last answers came within `busy_poll`, up to [`TRUSTED`].
    soon: u8,
}

impl Stream {
    /// A stream that polls for an answer for `busy_poll` before it sleeps, where those before came as soon.
    pub(crate) fn new(inner: TcpStream, busy_poll: Duration) -> Self {
        Self { inner, busy_poll, asked: None, is_to_poll: false, soon: 0 }
    }

    /// Something was written.
    fn ask(&mut self, cx: &Context<'_>) {
        if self.busy_poll.is_zero() {
            return;
        }
        self.asked.get_or_insert_with(Instant::now);
        if self.soon == TRUSTED {
            self.is_to_poll = true;
            // Whoever drives a connection reads before it writes, and would wait now to be woken by the answer.
            cx.waker().wake_by_ref();
        }
    }

    /// Something was read.
    fn hear(&mut self) {
        if let Some(asked) = self.asked.take() {
            let is_soon = asked.elapsed() <= self.busy_poll;
            self.soon = if is_soon { TRUSTED.min(self.soon + 1) } else { 0 };
        }
    }

    /// Asks the kernel until bytes are there, the stream has ended or failed, or the time is over.
    fn poll_busily(&self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = buf.remaining().min(POLLED_BYTES);
        let begun = Instant::now();
        loop {
            // tokio would answer by what the kernel has told it last; so the kernel itself is asked.
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

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let is_to_poll = std::mem::take(&mut self.is_to_poll);
        // Nothing received into no room would look like the stream's end.
        if is_to_poll && read.is_pending() && buf.remaining() > 0 {
            // The task stays registered with tokio meanwhile: bytes that come too late for this wake it.
            read = self.poll_busily(buf);
            if read.is_pending() {
                self.soon = 0;
            }
        }
        if read.is_ready() {
            self.hear();
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
        self.ask(cx);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, parts));
        self.ask(cx);
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

    /// A stream and its other end.
    async fn pair(busy_poll: Duration) -> io::Result<(Stream, Peer)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        Ok((Stream::new(stream, busy_poll), listener.accept()?.0))
    }

    /// Asks something that the other end hears.
    async fn ask(stream: &mut Stream, peer: &mut Peer) -> io::Result<()> {
        stream.write_all(b"ping").await?;
        peer.read_exact(&mut [0; 4])
    }

    /// A stream whose answers have come soon, on which something was asked that its other end has heard.
    async fn asked(busy_poll: Duration) -> io::Result<(Stream, Peer)> {
        let (mut stream, mut peer) = pair(busy_poll).await?;
        stream.soon = TRUSTED;
        ask(&mut stream, &mut peer).await?;
        Ok((stream, peer))
    }

    /// What a single read finds. The kernel has told tokio of nothing: no test awaits anything between answer and read.
    fn read_once(stream: &mut Stream, room: usize) -> Option<io::Result<Vec<u8>>> {
        let mut bytes = vec![0; room];
        let mut buf = ReadBuf::new(&mut bytes);
        let read = Pin::new(stream).poll_read(&mut Context::from_waker(std::task::Waker::noop()), &mut buf);
        match read {
            Poll::Ready(read) => Some(read.map(|()| buf.filled().to_vec())),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn an_answer_is_polled_for_once_and_only_if_it_is_wanted() -> io::Result<()> {
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

    /// Reads what was not polled for. There is room for more: tokio knows then that nothing is left.
    async fn read_late(stream: &mut Stream) -> io::Result<()> {
        stream.read(&mut [0; 8]).await.map(|_| ())
    }

    /// Whether the next answer, which is there at once, is polled for.
    async fn is_polled_for(stream: &mut Stream, peer: &mut Peer) -> io::Result<bool> {
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
    async fn answers_are_polled_for_once_enough_have_come_soon() -> io::Result<()> {
        // Soon on any machine.
        let (mut stream, mut peer) = pair(Duration::from_secs(60)).await?;
        for _ in 0..TRUSTED {
            assert!(!is_polled_for(&mut stream, &mut peer).await?);
        }
        assert!(is_polled_for(&mut stream, &mut peer).await?);
        assert!(is_polled_for(&mut stream, &mut peer).await?);
        // This one is late.
        stream.busy_poll = Duration::from_nanos(1);
        is_polled_for(&mut stream, &mut peer).await?;
        stream.busy_poll = Duration::from_secs(60);
        assert!(!is_polled_for(&mut stream, &mut peer).await?);
        Ok(())
    }

    #[tokio::test]
    async fn what_was_polled_for_in_vain_is_not_polled_for_again() -> io::Result<()> {
        let (mut stream, mut peer) = asked(LONG).await?;
        assert!(read_once(&mut stream, 8).is_none());
        // To this the other end answers.
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
    async fn whoever_has_written_is_called_back_to_read_if_it_is_to_poll() -> io::Result<()> {
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
    async fn an_end_is_polled_for_too_and_no_room_is_no_end() -> io::Result<()> {
        let (mut stream, peer) = asked(LONG).await?;
        drop(peer);
        assert_eq!(read_once(&mut stream, 8).transpose()?.as_deref(), Some(&b""[..]));
        let (mut stream, mut peer) = asked(LONG).await?;
        peer.write_all(b"pong")?;
        assert!(read_once(&mut stream, 0).is_none());
        Ok(())
    }

    #[tokio::test]
    async fn an_answer_that_comes_later_or_is_long_is_read_all_the_same() -> io::Result<()> {
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
