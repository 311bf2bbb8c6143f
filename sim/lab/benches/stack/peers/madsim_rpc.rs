//! The exchange over madsim's own `Endpoint` RPC.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use madsim::net::Endpoint;
use madsim::net::rpc::{Deserialize, Request, Serialize};
use madsim::runtime::Runtime;

use super::Table;
use crate::Shape;

#[derive(Serialize, Deserialize)]
struct Call {
    release: bool,
    key: u64,
    owner: u64,
}

impl Request for Call {
    const ID: u64 = 1;
    type Response = u64;
}

fn address(group: u8, number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, group, 1 + number as u8], 1))
}

/// Runs the exchange once, on a fresh thread as ours does, and returns the number of calls that were
/// answered.
pub(crate) fn run(shape: Shape, seed: u64) -> u64 {
    std::thread::spawn(move || on_this_thread(shape, seed)).join().unwrap()
}

fn on_this_thread(shape: Shape, seed: u64) -> u64 {
    let runtime = Runtime::with_seed_and_config(seed, madsim::Config::default());
    for server in 0..shape.servers {
        let node = runtime.create_node().ip(address(1, server).ip()).build();
        node.spawn(async move {
            let endpoint = Arc::new(Endpoint::bind(address(1, server)).await.unwrap());
            let table = Arc::new(Mutex::new(Table::default()));
            endpoint.add_rpc_handler(move |call: Call| {
                let table = Arc::clone(&table);
                async move {
                    let mut table = table.lock().unwrap();
                    if call.release {
                        table.release(call.key, call.owner)
                    } else {
                        table.acquire(call.key, call.owner)
                    }
                }
            });
            std::future::pending::<()>().await;
        });
    }
    let workers: Vec<_> = (0..shape.workers)
        .map(|worker| {
            let node = runtime.create_node().ip(address(2, worker).ip()).build();
            node.spawn(work(shape, worker))
        })
        .collect();
    runtime.block_on(async move {
        let mut calls = 0;
        for worker in workers {
            calls += worker.await.unwrap();
        }
        calls
    })
}

async fn work(shape: Shape, worker: usize) -> u64 {
    let endpoint = Endpoint::bind(address(2, worker)).await.unwrap();
    let mut calls = 0;
    for round in 0..shape.rounds {
        for server in 0..shape.servers {
            for release in [false, true] {
                let call = Call { release, key: worker as u64, owner: round as u64 };
                assert_ne!(endpoint.call(address(1, server), call).await.unwrap(), 0);
                calls += 1;
            }
        }
    }
    calls
}
