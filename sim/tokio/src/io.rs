//! `tokio::io`: the real traits, adapters and buffers. The standard streams are the simulation's own.

#[cfg(all(feature = "net", unix))]
pub mod unix;

pub use real_tokio::io::*;

#[cfg(feature = "io-std")]
pub use self::std_streams::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

/// The standard streams of a simulated process: it reads nothing, and what it writes goes to the program's
/// own streams at once.
#[cfg(feature = "io-std")]
mod std_streams {
    use std::io::{self, Write as _};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::{AsyncRead, AsyncWrite, ReadBuf};

    /// The standard input of a simulated process, which is empty.
    #[derive(Debug)]
    pub struct Stdin(());

    /// The standard output of a simulated process.
    #[derive(Debug)]
    pub struct Stdout(());

    /// The standard error of a simulated process.
    #[derive(Debug)]
    pub struct Stderr(());

    /// Returns the standard input, which is empty.
    pub fn stdin() -> Stdin {
        Stdin(())
    }

    /// Returns the standard output.
    pub fn stdout() -> Stdout {
        Stdout(())
    }

    /// Returns the standard error.
    pub fn stderr() -> Stderr {
        Stderr(())
    }

    impl AsyncRead for Stdin {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    macro_rules! written_at_once {
        ($($stream:ident: $real:ident),*) => {$(
            impl AsyncWrite for $stream {
                fn poll_write(
                    self: Pin<&mut Self>,
                    _: &mut Context<'_>,
                    bytes: &[u8],
                ) -> Poll<io::Result<usize>> {
                    Poll::Ready(io::$real().write(bytes))
                }

                fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                    Poll::Ready(io::$real().flush())
                }

                fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                    self.poll_flush(cx)
                }
            }
        )*};
    }

    written_at_once!(Stdout: stdout, Stderr: stderr);
}
