//! Methods of all kinds of sockets, for connections and for datagrams.

/// Defines the methods and traits of a socket with the field `placeholder`. The methods `poll_read` and
/// `poll_write` poll until it can receive and send.
macro_rules! socket {
    ($name:ident, $poll_read:ident, $poll_write:ident) => {
        impl $name {
            /// Waits until it is ready.
            ///
            /// # Errors
            ///
            /// None: the call that follows has it.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                poll_fn(|cx| {
                    let is_readable = interest.is_readable() && self.$poll_read(cx).is_ready();
                    let is_writable = interest.is_writable() && self.$poll_write(cx).is_ready();
                    match (is_readable, is_writable) {
                        (true, true) => Poll::Ready(Ok(Ready::READABLE | Ready::WRITABLE)),
                        (true, false) => Poll::Ready(Ok(Ready::READABLE)),
                        (false, true) => Poll::Ready(Ok(Ready::WRITABLE)),
                        (false, false) => Poll::Pending,
                    }
                })
                .await
            }

            /// Calls `f`, which must try to send or receive.
            ///
            /// # Errors
            ///
            /// The errors of `f`.
            pub fn try_io<R>(&self, _: Interest, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                f()
            }

            /// Waits until it is ready, and calls `f` until that has done its work.
            ///
            /// # Errors
            ///
            /// The errors of `f`.
            pub async fn async_io<R>(
                &self,
                interest: Interest,
                mut f: impl FnMut() -> io::Result<R>,
            ) -> io::Result<R> {
                loop {
                    self.ready(interest).await?;
                    match f() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        done => return done,
                    }
                }
            }

            /// Returns `None`.
            ///
            /// # Errors
            ///
            /// None.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                Ok(None)
            }
        }

        // As tokio's own.
        impl std::panic::UnwindSafe for $name {}
        impl std::panic::RefUnwindSafe for $name {}

        crate::net::socket::descriptor!($name, placeholder.socket());
    };
}

pub(super) use socket;

/// Lets code set options by the descriptor of a real socket, which a field of the type has.
macro_rules! descriptor {
    ($name:ident, $($socket:tt)+) => {
        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.$($socket)+.as_raw_fd()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.$($socket)+.as_fd()
            }
        }
    };
}

pub(super) use descriptor;
