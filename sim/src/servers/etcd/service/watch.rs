//! The service `Watch`: one stream of requests in, one of answers out.

use std::pin::Pin;
use std::task::{Context, Poll};

use etcd_client::proto::{PbWatchRequest, PbWatchRequestUnion, PbWatchResponse, PbWatchService};
use futures_util::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tonic::{Request, Response, Status, Streaming};

use super::{Endpoint, needs_leader};
use crate::servers::etcd::core::Core;
use crate::servers::etcd::error::Refusal;
use crate::servers::etcd::store::span::Span;
use crate::servers::etcd::watch::{WatchOrder, WatchStream};
use crate::world::machine::Machine;

const FILTER_PUTS: i32 = 0;
const FILTER_DELETES: i32 = 1;

#[tonic::async_trait]
impl<M: Machine> PbWatchService for Endpoint<M> {
    type WatchStream = Session<M>;

    async fn watch(
        &self,
        request: Request<Streaming<PbWatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let needs_leader = needs_leader(request.metadata());
        let (sender, answers) = unbounded_channel();
        let mut core = self.cluster.core();
        if needs_leader && !self.cluster.knows_leader(&core, self.member, 1) {
            return Err(Refusal::NoLeader.into());
        }
        let stream = core.add_stream(WatchStream::new(self.member, needs_leader, sender));
        drop(core);
        Ok(Response::new(Session { endpoint: self.clone(), stream, requests: request.into_inner(), answers }))
    }
}

/// One client's stream of watches. It ends when the client or the server ends it.
pub(in super::super) struct Session<M: Machine> {
    endpoint: Endpoint<M>,
    /// Its number in the core.
    stream: u64,
    requests: Streaming<PbWatchRequest>,
    answers: UnboundedReceiver<Result<PbWatchResponse, Status>>,
}

impl<M: Machine> Stream for Session<M> {
    type Item = Result<PbWatchResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while let Poll::Ready(request) = Pin::new(&mut this.requests).poll_next(cx) {
            match request {
                Some(Ok(request)) => this.handle(request),
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
        this.answers.poll_recv(cx)
    }
}

impl<M: Machine> Session<M> {
    fn handle(&self, request: PbWatchRequest) {
        let cluster = &self.endpoint.cluster;
        let mut core = cluster.core();
        cluster.catch_up(&mut core, self.endpoint.member);
        let moment = cluster.moment(&core, self.endpoint.member);
        let Core { streams, state, .. } = &mut *core;
        let Some(stream) = streams.get_mut(&self.stream) else { return };
        match request.request_union {
            Some(PbWatchRequestUnion::CreateRequest(create)) => {
                let order = WatchOrder {
                    // Without a key the range starts at the smallest one.
                    span: match create.key.is_empty() {
                        true => Span::new(&[0], &create.range_end).into_owned(),
                        false => Span::new(&create.key, &create.range_end).into_owned(),
                    },
                    start_revision: create.start_revision,
                    without_puts: create.filters.contains(&FILTER_PUTS),
                    without_deletes: create.filters.contains(&FILTER_DELETES),
                    with_former: create.prev_kv,
                    with_progress: create.progress_notify,
                    id: create.watch_id,
                };
                stream.create(order, &state.store, &moment);
            }
            Some(PbWatchRequestUnion::CancelRequest(cancel)) => stream.cancel(cancel.watch_id, &moment),
            Some(PbWatchRequestUnion::ProgressRequest(_)) => stream.progress(&moment),
            None => {}
        }
        core.members[self.endpoint.member].executed += 1;
        drop(core);
        self.endpoint.executed("Watch");
    }
}

impl<M: Machine> Drop for Session<M> {
    fn drop(&mut self) {
        self.endpoint.cluster.core().streams.remove(&self.stream);
    }
}
