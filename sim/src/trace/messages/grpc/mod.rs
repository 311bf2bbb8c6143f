//! etcd: gRPC over HTTP/2. `frame.rs` reads the frames, `streams.rs` joins them to calls and answers,
//! `request.rs` and `response.rs` format etcd's messages.
//!
//! A message here is one of gRPC: a unary call has one in each direction, a stream such as `Watch` many.
//! Frames that are no command and no reply (settings, flow control) are left out; a packet capture has them.

mod frame;
mod request;
mod response;
mod streams;
mod text;

use super::flow::Flow;
use super::{Parts, Protocol};
use crate::servers::etcd::PORT;

/// The row of this protocol in the table.
pub(super) static PROTOCOL: Protocol =
    Protocol { port: PORT, is_opening: |bytes| bytes.starts_with(b"PRI * HTTP/2"), decode };

/// Splits the bytes of a client and of a server.
fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    let mut methods = streams::Methods::default();
    let calls = streams::calls(client, &mut methods);
    [calls, streams::answers(server, &methods)]
}
