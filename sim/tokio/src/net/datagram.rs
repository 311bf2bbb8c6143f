//! Methods of all kinds of sockets for datagrams.

/// Defines the methods and traits of a socket for datagrams with the field `placeholder` and these methods:
///
/// - `send_now` sends a datagram to the peer.
/// - `send_ready` succeeds if the peer can take a datagram.
/// - `receive_now` takes the first datagram, or copies it if the last argument is true.
macro_rules! datagrams {
    ($name:ident, $address:ty) => {
        impl $name {
            /// Waits until it can send.
            ///
            /// # Errors
            ///
            /// None: the call that sends has it.
            pub async fn writable(&self) -> io::Result<()> {
                poll_fn(|cx| self.poll_send_ready(cx)).await
            }

            /// Polls until it can send.
            pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                host::poll(cx.waker(), |waker| self.send_ready(waker)).map(|_| Ok(()))
            }

            /// Waits until a datagram has arrived.
            ///
            /// # Errors
            ///
            /// None: the call that receives has it.
            pub async fn readable(&self) -> io::Result<()> {
                poll_fn(|cx| self.poll_recv_ready(cx)).await
            }

            /// Polls until a datagram has arrived.
            pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                host::poll(cx.waker(), |waker| self.receive_now(waker, &mut [], true)).map(|_| Ok(()))
            }

            /// Sends a datagram to the peer. Returns its length.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::NotConnected`] if it has no peer.
            pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
                poll_fn(|cx| self.poll_send(cx, buf)).await
            }

            /// Polls until a datagram is sent to the peer.
            pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                host::poll(cx.waker(), |waker| self.send_now(waker, buf))
            }

            /// Sends a datagram to the peer.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if it would have to wait.
            pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
                self.send_now(None, buf)
            }

            /// Receives a datagram. Returns the number of bytes in `buf`; those that do not fit are lost.
            ///
            /// # Errors
            ///
            /// If the process is dead.
            pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
                Ok(self.recv_from(buf).await?.0)
            }

            /// Polls for a datagram.
            pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                self.poll_recv_from(cx, buf).map_ok(|_| ())
            }

            /// Receives a datagram that has arrived.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if none has.
            pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
                Ok(self.try_recv_from(buf)?.0)
            }

            /// Receives a datagram. Returns the number of bytes in `buf` and the sender.
            ///
            /// # Errors
            ///
            /// If the process is dead.
            pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, $address)> {
                poll_fn(|cx| host::poll(cx.waker(), |waker| self.receive_now(waker, buf, false))).await
            }

            /// Polls for a datagram. Returns the sender.
            pub fn poll_recv_from(
                &self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<$address>> {
                self.poll_datagram(cx, buf, false)
            }

            /// Receives a datagram that has arrived. Returns the number of bytes in `buf` and the sender.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if none has.
            pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, $address)> {
                self.receive_now(None, buf, false)
            }

            fn poll_datagram(
                &self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
                is_kept: bool,
            ) -> Poll<io::Result<$address>> {
                let bytes = buf.initialize_unfilled();
                let polled = host::poll(cx.waker(), |waker| self.receive_now(waker, bytes, is_kept));
                let (length, sender) = std::task::ready!(polled)?;
                buf.advance(length);
                Poll::Ready(Ok(sender))
            }
        }

        #[cfg(feature = "io-util")]
        impl $name {
            /// Receives a datagram into `buf`. Returns the number of its bytes.
            ///
            /// # Errors
            ///
            /// If the process is dead.
            pub async fn recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                Ok(self.recv_buf_from(buf).await?.0)
            }

            /// Receives a datagram into `buf`. Returns the number of its bytes and the sender.
            ///
            /// # Errors
            ///
            /// If the process is dead.
            pub async fn recv_buf_from<B: bytes::BufMut>(
                &self,
                buf: &mut B,
            ) -> io::Result<(usize, $address)> {
                poll_fn(|cx| host::poll(cx.waker(), |waker| self.receive_into(waker, buf))).await
            }

            /// Receives a datagram that has arrived into `buf`.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if none has.
            pub fn try_recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                Ok(self.try_recv_buf_from(buf)?.0)
            }

            /// Receives a datagram that has arrived into `buf`. Returns the number of its bytes and the
            /// sender.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if none has.
            pub fn try_recv_buf_from<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<(usize, $address)> {
                self.receive_into(None, buf)
            }

            fn receive_into<B: bytes::BufMut>(
                &self,
                waker: Option<&Waker>,
                buf: &mut B,
            ) -> io::Result<(usize, $address)> {
                let mut bytes = vec![0; buf.chunk_mut().len()];
                let (length, sender) = self.receive_now(waker, &mut bytes, false)?;
                buf.put_slice(&bytes[..length]);
                Ok((length, sender))
            }
        }

        crate::net::socket::socket!($name, poll_recv_ready, poll_send_ready);
    };
}

pub(super) use datagrams;
