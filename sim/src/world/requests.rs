//! Requests that the network can deliver again: the bytes that a client has sent on a connection since it
//! last received anything there. They are kept only on links that a fault names.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use super::pipe::{Arrived, Ending};
use super::process::ProcessId;
use super::{World, lock};

/// The requests of a world that have no answer yet.
#[derive(Default)]
pub(super) struct Requests {
    /// True if a link is kept. Most runs keep none, and only look here.
    is_kept: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The links whose requests are kept, each from the client to the server.
    links: BTreeSet<(usize, usize)>,
    /// The last request on each connection that its opener has not dropped, by the pipe that the opener
    /// writes. It has bytes only on kept links.
    last: BTreeMap<usize, Kept>,
    /// The number of connections on each link so far.
    opened: BTreeMap<(usize, usize), u64>,
    /// The number of writes so far.
    writes: u64,
    /// The tasks that wait for a request or a connection.
    waiting: Vec<Waker>,
}

struct Kept {
    link: (usize, usize),
    address: String,
    bytes: Vec<u8>,
    is_answered: bool,
    /// The number of its last write.
    written: u64,
}

/// A request that a server has received, and to which the client has received no answer.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Request {
    link: (usize, usize),
    address: String,
    bytes: Vec<u8>,
}

impl Request {
    /// Returns its length in bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }
}

impl Requests {
    fn opened(&self, pipe: usize, link: (usize, usize), address: &str) {
        let mut state = lock(&self.state);
        let (address, bytes) = (address.to_owned(), Vec::new());
        state.last.insert(pipe, Kept { link, address, bytes, is_answered: true, written: 0 });
        *state.opened.entry(link).or_default() += 1;
        state.wake();
    }

    /// Notes what the opener of a connection has sent. It begins a new request if the last one has an answer.
    pub(super) fn sent(&self, pipe: usize, bytes: &[u8]) {
        if !self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        let mut state = lock(&self.state);
        let State { links, last, writes, .. } = &mut *state;
        let Some(kept) = last.get_mut(&pipe).filter(|kept| links.contains(&kept.link)) else { return };
        if std::mem::take(&mut kept.is_answered) {
            kept.bytes.clear();
        }
        kept.bytes.extend(bytes);
        *writes += 1;
        kept.written = *writes;
        state.wake();
    }

    /// Notes that the opener of a connection has received something.
    pub(super) fn answered(&self, pipe: usize) {
        if self.is_kept.load(Ordering::Relaxed)
            && let Some(kept) = lock(&self.state).last.get_mut(&pipe)
        {
            kept.is_answered = true;
        }
    }

    /// Forgets a connection that its opener has dropped.
    pub(super) fn dropped(&self, pipe: usize) {
        lock(&self.state).last.remove(&pipe);
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl World {
    /// Notes that a client has learned of its connection, by the pipe that it writes. A connection that was
    /// broken before does not count.
    pub(super) fn note_opened(&self, pipe: usize, address: &str) {
        let (link, is_broken) = {
            let pipe = &self.network().pipes[pipe];
            ((pipe.from, pipe.to), pipe.is_reset())
        };
        if !is_broken {
            self.0.requests.opened(pipe, link, address);
        }
    }

    /// Keeps the requests of a client to a server that it sends from now on.
    pub fn keep_requests(&self, client: ProcessId, server: ProcessId) {
        self.0.requests.is_kept.store(true, Ordering::Relaxed);
        lock(&self.0.requests.state).links.insert((client.0, server.0));
    }

    /// Returns the client's latest request that the server has received and to which the client has received
    /// no answer; `None` if there is none now.
    pub fn delivered_request(&self, client: ProcessId, server: ProcessId) -> Option<Request> {
        self.poll_request((client.0, server.0), Waker::noop())
    }

    /// Waits for a request of the client until it has reached the server and has no answer.
    pub async fn next_request(&self, client: ProcessId, server: ProcessId) -> Request {
        let link = (client.0, server.0);
        poll_fn(|cx| self.poll_request(link, cx.waker()).map_or(Poll::Pending, Poll::Ready)).await
    }

    fn poll_request(&self, link: (usize, usize), waker: &Waker) -> Option<Request> {
        let (mut network, mut state) = (self.network(), lock(&self.0.requests.state));
        let is_open = |pipe: usize, kept: &Kept| {
            kept.link == link && !kept.is_answered && !network.pipes[pipe].is_reset()
        };
        let open = state.last.iter().filter(|(pipe, kept)| is_open(**pipe, kept));
        let Some((pipe, kept)) = open.max_by_key(|(_, kept)| kept.written) else {
            state.waiting.push(waker.clone());
            return None;
        };
        let arrives = network.pipes[*pipe].last_arrival;
        if arrives <= self.now() {
            return Some(Request { link, address: kept.address.clone(), bytes: kept.bytes.clone() });
        }
        if network.pipes[*pipe].is_held() {
            network.wait_for_link(link.0, link.1, waker);
        } else {
            self.wake_at(arrives, waker);
        }
        None
    }

    /// Returns the number of connections that the client has opened to the server so far.
    pub fn connections_opened(&self, client: ProcessId, server: ProcessId) -> u64 {
        lock(&self.0.requests.state).opened.get(&(client.0, server.0)).copied().unwrap_or_default()
    }

    /// Waits until the client has opened more connections to the server than `before`.
    pub async fn reconnected(&self, client: ProcessId, server: ProcessId, before: u64) {
        poll_fn(|cx| {
            if self.connections_opened(client, server) > before {
                return Poll::Ready(());
            }
            lock(&self.0.requests.state).waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Sends the bytes of the request once more, on a connection of the network's own between the same
    /// processes. Closes it without a reading of the answer when that arrives. Returns false if the server
    /// does not listen.
    pub fn send_again(&self, request: &Request) -> bool {
        let (client, server) = request.link;
        let Some(pipe) = self.accept_for(ProcessId(client), &request.address) else { return false };
        {
            let (mut network, now) = (self.network(), self.now());
            network.notes.request(request.link, &request.address, now..now, true);
            network.notes.connected(pipe, now);
            network.send(self, pipe, &request.bytes);
        }
        self.network_point(ProcessId(server), super::stream::ACCEPTS, client);
        let world = self.clone();
        self.spawn_harness(async move { world.discard_answer(pipe).await });
        true
    }

    /// Closes a connection of the network's own once something arrives for its opener.
    async fn discard_answer(&self, pipe: usize) {
        poll_fn(|cx| match self.network().pipes[pipe + 1].poll(self, Some(cx.waker())) {
            Arrived::Nothing => Poll::Pending,
            Arrived::Bytes(_) | Arrived::Ended(_) => Poll::Ready(()),
        })
        .await;
        let mut network = self.network();
        network.abandon(pipe + 1, self.now());
        network.end(self, pipe, Ending::Closed);
    }
}
