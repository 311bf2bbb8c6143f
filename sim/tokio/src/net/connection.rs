//! Methods of all kinds of connections.

/// Defines the methods and traits of a connection with the fields `stream` and `placeholder`.
macro_rules! connection {
    ($name:ident) => {
        impl $name {
            /// Polls for bytes, and leaves them to be read.
            pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
                let bytes = buf.initialize_unfilled();
                let length =
                    std::task::ready!(host::poll(cx.waker(), |waker| self.stream.peek(waker, bytes)))?;
                buf.advance(length);
                Poll::Ready(Ok(length))
            }

            /// Waits for bytes, and leaves them to be read.
            ///
            /// # Errors
            ///
            /// As a read.
            pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
                let mut buf = ReadBuf::new(buf);
                poll_fn(|cx| self.poll_peek(cx, &mut buf)).await
            }

            /// Waits until it can be read.
            ///
            /// # Errors
            ///
            /// None: the read has it.
            pub async fn readable(&self) -> io::Result<()> {
                poll_fn(|cx| self.poll_read_ready(cx)).await
            }

            /// Polls until it can be read.
            pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                // An error is ready, too: the read returns it.
                host::poll(cx.waker(), |waker| self.stream.peek(waker, &mut [0])).map(|_| Ok(()))
            }

            /// Waits until it can be written: not while it is full or the process is paused.
            ///
            /// # Errors
            ///
            /// None: the write has it.
            pub async fn writable(&self) -> io::Result<()> {
                poll_fn(|cx| self.poll_write_ready(cx)).await
            }

            /// Polls until it can be written.
            pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                // An error is ready, too: the write returns it.
                host::poll(cx.waker(), |waker| self.stream.writable(waker)).map(|_| Ok(()))
            }

            /// Reads what has arrived.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.stream.read(None, buf)
            }

            /// Reads what has arrived into the first buffer that is not empty.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                match bufs.iter_mut().find(|buf| !buf.is_empty()) {
                    Some(buf) => self.try_read(buf),
                    None => Ok(0),
                }
            }

            /// Reads what has arrived into `buf`.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            #[cfg(feature = "io-util")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                let mut bytes = vec![0; buf.chunk_mut().len()];
                let length = self.try_read(&mut bytes)?;
                buf.put_slice(&bytes[..length]);
                Ok(length)
            }

            /// Sends bytes.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] while it is full or the process is paused; else as a write.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.stream.write(None, buf)
            }

            /// Sends bytes.
            ///
            /// # Errors
            ///
            /// As [`Self::try_write`].
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.try_write(&joined(bufs))
            }

            pub(in crate::net) fn poll_read_shared(
                &self,
                waker: &Waker,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let bytes = buf.initialize_unfilled();
                if bytes.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                let length = std::task::ready!(host::poll(waker, |waker| self.stream.read(waker, bytes)))?;
                buf.advance(length);
                Poll::Ready(Ok(()))
            }

            pub(in crate::net) fn poll_write_shared(
                &self,
                waker: &Waker,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                host::poll(waker, |waker| self.stream.write(waker, bytes))
            }

            pub(in crate::net) fn poll_shut_down(&self, waker: &Waker) -> Poll<io::Result<()>> {
                host::poll(waker, |waker| self.stream.shut_down(waker))
            }

            /// Closes the direction in which it sends.
            pub(in crate::net) fn shut_down_now(&self) {
                // A dead or paused process has no say.
                let _ = self.stream.shut_down(None);
            }
        }

        impl AsyncRead for $name {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.poll_read_shared(cx.waker(), buf)
            }
        }

        impl AsyncWrite for $name {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.poll_write_shared(cx.waker(), buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.poll_write_shared(cx.waker(), &joined(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_shut_down(cx.waker())
            }
        }

        crate::net::socket::socket!($name, poll_read_ready, poll_write_ready);
    };
}

pub(super) use connection;

/// Joins buffers into the bytes of one write.
pub(super) fn joined(bufs: &[std::io::IoSlice<'_>]) -> Vec<u8> {
    bufs.iter().flat_map(|buf| buf.iter().copied()).collect()
}
