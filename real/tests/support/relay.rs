//! A port that forwards to a server, and loses the connection at a given request.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// The message that the connection takes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A request, which does not reach the server.
    Request,
    /// The answer to a request that the server has done.
    Answer,
}

/// The bytes that came from one side; none at its end.
enum Read {
    Request(usize),
    Answer(usize),
}

/// The number of requests that still pass, and the message that is lost after them.
type Loss = Arc<Mutex<Option<(usize, Lost)>>>;

/// The port. Dropping it closes it.
pub(crate) struct Relay {
    address: String,
    loss: Loss,
    accepting: AbortHandle,
}

impl Relay {
    pub(crate) async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let loss = Loss::default();
        let accepting = tokio::spawn({
            let loss = Arc::clone(&loss);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = TcpStream::connect(&server).await.unwrap();
                    tokio::spawn(forward(client, server, Arc::clone(&loss)));
                }
            }
        });
        Self { address, loss, accepting: accepting.abort_handle() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Loses a message after `requests` more requests have passed, once.
    pub(crate) fn lose_after(&self, requests: usize, lost: Lost) {
        *self.loss.lock().unwrap() = Some((requests, lost));
    }

    /// Returns true if the message was lost; otherwise nothing is lost any more.
    pub(crate) fn has_lost(&self) -> bool {
        self.loss.lock().unwrap().take().is_none()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Forwards until one side closes, or a message is lost. Clients send a request as one piece, and wait for
/// its answer.
async fn forward(mut client: TcpStream, mut server: TcpStream, loss: Loss) {
    let (mut request, mut answer) = (vec![0; 65536], vec![0; 65536]);
    loop {
        let read = {
            let reads = (pin!(client.read(&mut request)), pin!(server.read(&mut answer)));
            match select(reads.0, reads.1).await {
                Either::Left((count, _)) => Read::Request(count.unwrap_or(0)),
                Either::Right((count, _)) => Read::Answer(count.unwrap_or(0)),
            }
        };
        match read {
            Read::Request(0) | Read::Answer(0) => return,
            Read::Answer(count) => drop(client.write_all(&answer[..count]).await),
            Read::Request(count) => {
                let lost = if closes_statements(&request[..count]) { None } else { count_down(&loss) };
                if lost == Some(Lost::Request) {
                    break;
                }
                // A server that is gone is found by the next read.
                let _ = server.write_all(&request[..count]).await;
                if lost == Some(Lost::Answer) {
                    let _ = server.read(&mut answer).await;
                    break;
                }
            }
        }
    }
    // The close that follows is a reset.
    for socket in [&client, &server] {
        let _ = socket.set_zero_linger();
    }
}

/// Returns true if the piece only closes prepared statements of PostgreSQL (`Close` and `Sync`). A client
/// sends it at any time after it has dropped a statement, alone or together with the next request: counted,
/// the same transaction would have more requests in one run than in another.
fn closes_statements(mut piece: &[u8]) -> bool {
    let mut closes = false;
    while let [tag @ (b'C' | b'S'), a, b, c, d, ..] = *piece {
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        // The length counts itself, but not the tag.
        let Some(rest) = piece.get(1 + length..).filter(|_| length >= 4) else { return false };
        (closes, piece) = (closes || tag == b'C', rest);
    }
    closes && piece.is_empty()
}

/// Counts a request; returns the message to lose now.
fn count_down(loss: &Loss) -> Option<Lost> {
    let mut loss = loss.lock().unwrap();
    match *loss {
        Some((0, lost)) => {
            *loss = None;
            Some(lost)
        }
        Some((requests, lost)) => {
            *loss = Some((requests - 1, lost));
            None
        }
        None => None,
    }
}

#[test]
fn only_pieces_that_close_statements_alone_are_not_counted() {
    let message = |tag: u8, body: &[u8]| {
        [&[tag][..], &(u32::try_from(body.len()).unwrap() + 4).to_be_bytes(), body].concat()
    };
    let (close, sync) = (message(b'C', b"Ss1\0"), message(b'S', b""));
    let query = message(b'Q', b"COMMIT\0");
    assert!(closes_statements(&[close.clone(), sync.clone()].concat()));
    assert!(closes_statements(&[close.clone(), sync.clone(), close.clone(), sync.clone()].concat()));
    for counted in [query.clone(), sync.clone(), [close, sync, query].concat(), vec![b'C', 0, 0], Vec::new()]
    {
        assert!(!closes_statements(&counted), "{counted:?}");
    }
}
