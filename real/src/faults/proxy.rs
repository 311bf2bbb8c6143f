//! A TCP proxy between a client and a server, whose links can be made slow, cut and reset.
//!
//! It works without root, and on one connection at a time, which network namespaces do not. A cut holds bytes back as a
//! network does: the sender's TCP goes on trying, and what was sent arrives when the link heals. A reset loses what is
//! under way.
#![allow(clippy::disallowed_methods, reason = "live sockets")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::link::{Direction, Link};
use super::pump::pump;

/// How long to wait when no connection can be accepted.
const RELIEF: Duration = Duration::from_millis(50);

/// A port of this machine that leads to a server. Dropped, it closes with all its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    controls: Arc<Controls>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Controls {
    /// Where new connections lead.
    server: watch::Sender<Arc<str>>,
    to_server: watch::Sender<Link>,
    to_client: watch::Sender<Link>,
    /// Counts the resets.
    resets: watch::Sender<u64>,
}

impl Proxy {
    /// A free port that leads to `server`, `host:port`. The server need not run: each client's connection opens one to it.
    ///
    /// # Errors
    ///
    /// If no port is to be had.
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

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Leads new connections to another server, `host:port`, as a name does that now stands for another address. Those that
    /// are open stay: [`Proxy::reset`] ends them.
    pub fn redirect(&self, server: &str) {
        self.controls.server.send_replace(server.into());
    }

    /// Changes the link in one direction, for the connections that are open too.
    pub fn set(&self, direction: Direction, link: Link) {
        let control = match direction {
            Direction::ToServer => &self.controls.to_server,
            Direction::ToClient => &self.controls.to_client,
        };
        control.send_replace(link);
    }

    /// Changes the link in both directions.
    pub fn set_both(&self, link: Link) {
        self.set(Direction::ToServer, link);
        self.set(Direction::ToClient, link);
    }

    /// Resets all connections that are open (RST, on both sides). New ones are not affected.
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
    // Dropped with this task: so are the connections.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            // As a rule this process has too many files open.
            tokio::time::sleep(RELIEF).await;
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
        // As the server itself would answer: refused, or gone.
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
    // It fails only on a socket that is closed.
    let _ = socket.set_zero_linger();
}
