//! A TCP proxy between a client and a server, whose links can be made slow, cut and reset.
//!
//! It needs no root and works on single links, unlike network namespaces. A cut holds bytes back as a network
//! does: the sender's TCP retransmits, and the bytes arrive when the link heals. A reset loses the bytes in
//! transit.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "live sockets")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::link::{Direction, Link};
use super::pump::pump;

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A port of this machine that forwards to a server. Dropping it closes the port and its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    controls: Arc<Controls>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Controls {
    /// The server for new connections.
    server: watch::Sender<Arc<str>>,
    to_server: watch::Sender<Link>,
    to_client: watch::Sender<Link>,
    /// The number of resets.
    resets: watch::Sender<u64>,
}

impl Proxy {
    /// Opens a free port that forwards to `server`, `host:port`. The server need not run: each client's
    /// connection opens one to it.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub async fn start(server: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let controls = Arc::new(Controls {
            server: watch::Sender::new(server.into()),
            to_server: watch::Sender::new(Link::Open),
            to_client: watch::Sender::new(Link::Open),
            resets: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&controls))).abort_handle();
        Ok(Self { port, controls, accepting })
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forwards new connections to another server, `host:port`, as after a change in the DNS. Open
    /// connections stay; [`Proxy::reset`] ends them.
    pub fn redirect(&self, server: &str) {
        self.controls.server.send_replace(server.into());
    }

    /// Sets the state of the link in one direction, for open connections too.
    pub fn set(&self, direction: Direction, link: Link) {
        let control = match direction {
            Direction::ToServer => &self.controls.to_server,
            Direction::ToClient => &self.controls.to_client,
        };
        control.send_replace(link);
    }

    /// Sets the state of the link in both directions.
    pub fn set_both(&self, link: Link) {
        self.set(Direction::ToServer, link);
        self.set(Direction::ToClient, link);
    }

    /// Resets all open connections (RST, on both sides). New ones are not affected.
    pub fn reset(&self) {
        self.controls.resets.send_modify(|resets| *resets += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, controls: Arc<Controls>) {
    // Dropping this task drops the connections.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // Usually, this process has too many open files.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        connections.spawn(serve(client, Arc::clone(&controls)));
    }
}

async fn serve(client: TcpStream, controls: Arc<Controls>) {
    let mut resets = controls.resets.subscribe();
    let server = Arc::clone(&controls.server.borrow());
    let server = match TcpStream::connect(&*server).await {
        Ok(server) => server,
        // Reset, as the server's own refusal would.
        Err(_) => return reset(&client),
    };
    let sockets = [&client, &server];
    sockets.iter().for_each(|socket| drop(socket.set_nodelay(true)));
    let (to_server, to_client) = (controls.to_server.subscribe(), controls.to_client.subscribe());
    let pumps =
        futures_util::future::join(pump(&client, &server, to_server), pump(&server, &client, to_client));
    let was_reset = {
        let changed = std::pin::pin!(resets.changed());
        let pumps = std::pin::pin!(pumps);
        matches!(futures_util::future::select(changed, pumps).await, futures_util::future::Either::Left(_))
    };
    if was_reset {
        sockets.into_iter().for_each(reset);
    }
}

/// Makes the close that follows a reset.
fn reset(socket: &TcpStream) {
    // It fails only on a closed socket.
    let _ = socket.set_zero_linger();
}
