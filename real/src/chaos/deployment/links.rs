//! The links between workers, servers and the guarded side, as the faults in force demand them.

use std::time::Duration;

use super::{Deployment, Worker};
use crate::chaos::fault::{End, Fault, Holds};
use crate::faults::{Direction, Link, Proxy};

impl Deployment<'_> {
    /// Sets every link according to the faults in force.
    pub(super) fn set_links(&self) {
        for (number, worker) in self.workers.iter().enumerate() {
            let places = (0..worker.to_servers.len()).map(End::Server);
            for end in places.chain([End::of(self.configuration.record)]) {
                for direction in [Direction::ToServer, Direction::ToClient] {
                    let states = self
                        .lasting
                        .iter()
                        .filter_map(|lasting| self.link(lasting.fault, number, end, direction));
                    let worst = states.max_by_key(severity).unwrap_or(Link::Open);
                    worker.link(end).set(direction, worst);
                }
            }
        }
    }

    /// Returns the link that a fault demands.
    fn link(&self, fault: Fault, number: usize, end: End, direction: Direction) -> Option<Link> {
        match fault {
            Fault::CutLink { worker, to, holds } if (worker, to) == (number, end) => {
                let holds = match direction {
                    Direction::ToServer => holds != Holds::Answers,
                    Direction::ToClient => holds != Holds::Requests,
                };
                holds.then_some(Link::Cut)
            }
            Fault::SlowLink { worker, to, by_ms } if (worker, to) == (number, end) => {
                Some(Link::Slow(Duration::from_millis(by_ms)))
            }
            Fault::IsolateServer { server } if end == End::Server(self.locks.place(server.number())) => {
                Some(Link::Cut)
            }
            _ => None,
        }
    }
}

impl Worker {
    pub(super) fn link(&self, end: End) -> &Proxy {
        match end {
            End::Server(place) => &self.to_servers[place],
            End::Resource | End::Postgres => &self.to_side,
        }
    }
}

const fn severity(link: &Link) -> u8 {
    match link {
        Link::Open => 0,
        Link::Slow(_) => 1,
        Link::Cut => 2,
    }
}
