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

use super::Parts;
use super::flow::Flow;

/// Splits the bytes of a client and of a server.
pub(super) fn decode(client: &Flow, server: &Flow) -> [Parts; 2] {
    let mut methods = streams::Methods::default();
    let calls = streams::calls(client, &mut methods);
    [calls, streams::answers(server, &methods)]
}
