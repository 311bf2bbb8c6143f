//! One direction of a proxied connection.
#![allow(clippy::disallowed_methods, reason = "live sockets and a live clock")]

use std::io;
use std::time::{Duration, Instant};

use futures_util::future::join;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::link::Link;

/// The largest number of chunks in transit; then the sender waits, as for a full pipe.
const UNDER_WAY_MAX: usize = 1024;
const PIECE_BYTES: usize = 16 * 1024;

/// A chunk and the time at which it was read.
type Piece = (Instant, Vec<u8>);

/// Forwards bytes from `from` to `to` according to `link`, until one of them closes; then closes `to`.
pub(super) async fn pump(from: &TcpStream, to: &TcpStream, link: watch::Receiver<Link>) {
    let (sender, receiver) = mpsc::channel(UNDER_WAY_MAX);
    // An error ends the connection: each peer sees that on its own socket.
    let _ = join(read(from, sender), write(to, receiver, link)).await;
}

async fn read(from: &TcpStream, pieces: mpsc::Sender<Piece>) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut piece = vec![0; PIECE_BYTES];
        match from.try_read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                piece.truncate(count);
                if pieces.send((Instant::now(), piece)).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write(
    to: &TcpStream,
    mut pieces: mpsc::Receiver<Piece>,
    mut link: watch::Receiver<Link>,
) -> io::Result<()> {
    while let Some((read_at, piece)) = pieces.recv().await {
        let_pass(&mut link, read_at).await;
        let mut rest = &piece[..];
        while !rest.is_empty() {
            to.writable().await?;
            match to.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    // The close is delayed like the bytes before it.
    let_pass(&mut link, Instant::now()).await;
    rustix::net::shutdown(to, rustix::net::Shutdown::Write).map_err(io::Error::from)
}

/// Waits until a chunk read at `read_at` may pass. The state of the link may change meanwhile.
async fn let_pass(link: &mut watch::Receiver<Link>, read_at: Instant) {
    loop {
        let now = *link.borrow_and_update();
        let wait = match now {
            Link::Open => return,
            Link::Slow(delay) => (read_at + delay).saturating_duration_since(Instant::now()),
            Link::Cut => Duration::MAX,
        };
        if wait.is_zero() {
            return;
        }
        // The sender is dropped with the proxy: then the connection ends with this task.
        if tokio::time::timeout(wait, link.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
    }
}
