//! The two directions of a connection.

/// Defines the methods of a receiving and of a sending direction, and their traits.
macro_rules! halves {
    ($read:ty, $write:ty, $whole:ty, $address:ty) => {
        impl $read {
            /// Waits until it is ready.
            ///
            /// # Errors
            ///
            /// None: the read has it.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.0.ready(interest).await
            }

            /// Waits until it can be read.
            ///
            /// # Errors
            ///
            /// None: the read has it.
            pub async fn readable(&self) -> io::Result<()> {
                self.0.readable().await
            }

            /// Reads what has arrived.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.try_read(buf)
            }

            /// Reads what has arrived into the first buffer that is not empty.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.0.try_read_vectored(bufs)
            }

            /// Reads what has arrived into `buf`.
            ///
            /// # Errors
            ///
            /// [`io::ErrorKind::WouldBlock`] if nothing has.
            #[cfg(feature = "io-util")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.0.try_read_buf(buf)
            }

            /// Returns the address of the other end.
            ///
            /// # Errors
            ///
            /// None.
            pub fn peer_addr(&self) -> io::Result<$address> {
                self.0.peer_addr()
            }

            /// Returns the address of this end.
            ///
            /// # Errors
            ///
            /// None.
            pub fn local_addr(&self) -> io::Result<$address> {
                self.0.local_addr()
            }
        }

        impl $write {
            /// Waits until it is ready.
            ///
            /// # Errors
            ///
            /// None: the write has it.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.0.ready(interest).await
            }

            /// Waits until it can be written.
            ///
            /// # Errors
            ///
            /// None: the write has it.
            pub async fn writable(&self) -> io::Result<()> {
                self.0.writable().await
            }

            /// Sends bytes.
            ///
            /// # Errors
            ///
            /// As a write.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.0.try_write(buf)
            }

            /// Sends bytes.
            ///
            /// # Errors
            ///
            /// As a write.
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.0.try_write_vectored(bufs)
            }

            /// Returns the address of the other end.
            ///
            /// # Errors
            ///
            /// None.
            pub fn peer_addr(&self) -> io::Result<$address> {
                self.0.peer_addr()
            }

            /// Returns the address of this end.
            ///
            /// # Errors
            ///
            /// None.
            pub fn local_addr(&self) -> io::Result<$address> {
                self.0.local_addr()
            }
        }

        impl AsRef<$whole> for $read {
            fn as_ref(&self) -> &$whole {
                &self.0
            }
        }

        impl AsRef<$whole> for $write {
            fn as_ref(&self) -> &$whole {
                &self.0
            }
        }

        impl AsyncRead for $read {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.0.poll_read_shared(cx.waker(), buf)
            }
        }

        impl AsyncWrite for $write {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.0.poll_write_shared(cx.waker(), buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_write_shared(cx.waker(), &joined(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.0.poll_shut_down(cx.waker())
            }
        }
    };
}

pub(super) use halves;

/// Defines the owned directions of a connection.
macro_rules! owned_halves {
    ($whole:ty, $address:ty) => {
        /// The direction in which it receives.
        #[derive(Debug)]
        pub struct OwnedReadHalf(Arc<$whole>);

        /// The direction in which it sends. Dropping it closes that direction.
        #[derive(Debug)]
        pub struct OwnedWriteHalf(Arc<$whole>, bool);

        /// The two directions belong to different connections.
        #[derive(Debug)]
        pub struct ReuniteError(
            /// The direction in which one receives.
            pub OwnedReadHalf,
            /// The direction in which another sends.
            pub OwnedWriteHalf,
        );

        impl $whole {
            /// Splits it into its two directions. Dropping the second one closes it.
            pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
                let stream = Arc::new(self);
                (OwnedReadHalf(Arc::clone(&stream)), OwnedWriteHalf(stream, true))
            }
        }

        fn reunite(read: OwnedReadHalf, mut write: OwnedWriteHalf) -> Result<$whole, ReuniteError> {
            if !Arc::ptr_eq(&read.0, &write.0) {
                return Err(ReuniteError(read, write));
            }
            write.1 = false;
            drop(write);
            // Both were the only ones.
            #[allow(clippy::expect_used, reason = "a connection has two directions")]
            Ok(Arc::into_inner(read.0).expect("the last direction"))
        }

        impl OwnedReadHalf {
            /// Puts both directions of a connection together.
            ///
            /// # Errors
            ///
            /// If they belong to different ones.
            pub fn reunite(self, other: OwnedWriteHalf) -> Result<$whole, ReuniteError> {
                reunite(self, other)
            }
        }

        impl OwnedWriteHalf {
            /// Puts both directions of a connection together.
            ///
            /// # Errors
            ///
            /// If they belong to different ones.
            pub fn reunite(self, other: OwnedReadHalf) -> Result<$whole, ReuniteError> {
                reunite(other, self)
            }

            /// Drops it without closing the direction.
            pub fn forget(mut self) {
                self.1 = false;
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if self.1 {
                    self.0.shut_down_now();
                }
            }
        }

        halves!(OwnedReadHalf, OwnedWriteHalf, $whole, $address);

        impl fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tried to reunite halves that are not from the same socket")
            }
        }

        impl std::error::Error for ReuniteError {}
    };
}

pub(super) use owned_halves;
