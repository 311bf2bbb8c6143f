//! Transactions. Source: etcd's `applyV3.Txn` (server/etcdserver/apply.go).

use etcd_client::proto::{
    PbResponseHeader, PbResponseOp, PbTxnOpRequest, PbTxnOpResponse, PbTxnRequest, PbTxnRequestOp,
    PbTxnResponse,
};

use super::write::Write;
use super::{State, Store};
use crate::servers::etcd::error::Refusal;

/// The branches that a transaction and its nested ones take, in the order in which they are met. All
/// conditions are evaluated before anything is written.
struct Path(std::vec::IntoIter<bool>);

impl State {
    /// Carries out a transaction that [`super::check::txn`] has accepted.
    pub(in super::super) fn txn(&mut self, request: PbTxnRequest) -> Result<PbTxnResponse, Refusal> {
        let mut way = Vec::new();
        judge(&self.store, &request, &mut way);
        // All puts are checked before the first range.
        let path = || Path(way.clone().into_iter());
        check(&request, &mut path(), &|op| match op {
            PbTxnOpRequest::RequestPut(put) => self.check_put_in_txn(put),
            _ => Ok(()),
        })?;
        check(&request, &mut path(), &|op| match op {
            PbTxnOpRequest::RequestRange(range) => self.store.check_revision_in_txn(range.revision),
            _ => Ok(()),
        })?;
        let mut write = Write::begin(self);
        let mut response = write.run(request, &mut Path(way.into_iter()));
        response.header = Some(write.header());
        write.commit();
        Ok(response)
    }
}

/// Checks each operation on the path, those of nested transactions included.
fn check(
    request: &PbTxnRequest,
    path: &mut Path,
    checked: &impl Fn(&PbTxnOpRequest) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    for op in branch(request, path.next()).iter().filter_map(|op| op.request.as_ref()) {
        match op {
            PbTxnOpRequest::RequestTxn(txn) => check(txn, path, checked)?,
            op => checked(op)?,
        }
    }
    Ok(())
}

impl Write<'_> {
    fn run(&mut self, request: PbTxnRequest, path: &mut Path) -> PbTxnResponse {
        let succeeded = path.next();
        let ops = if succeeded { request.success } else { request.failure };
        let responses = ops.into_iter().map(|op| PbResponseOp { response: self.run_op(op, path) }).collect();
        PbTxnResponse { header: None, succeeded, responses }
    }

    fn run_op(&mut self, op: PbTxnRequestOp, path: &mut Path) -> Option<PbTxnOpResponse> {
        Some(match op.request? {
            PbTxnOpRequest::RequestRange(range) => {
                PbTxnOpResponse::ResponseRange(self.state.store.range(&range, self.view()).ok()?)
            }
            PbTxnOpRequest::RequestPut(put) => PbTxnOpResponse::ResponsePut(self.put(put)),
            PbTxnOpRequest::RequestDeleteRange(delete) => {
                PbTxnOpResponse::ResponseDeleteRange(self.delete_range(&delete))
            }
            PbTxnOpRequest::RequestTxn(txn) => {
                let mut response = self.run(txn, path);
                // etcd leaves the header of an inner transaction blank.
                response.header = Some(PbResponseHeader::default());
                PbTxnOpResponse::ResponseTxn(response)
            }
        })
    }
}

impl Path {
    fn next(&mut self) -> bool {
        self.0.next().unwrap_or_default()
    }
}

fn judge(store: &Store, request: &PbTxnRequest, way: &mut Vec<bool>) {
    let holds = request.compare.iter().all(|compare| store.holds(compare));
    way.push(holds);
    for op in branch(request, holds) {
        if let Some(PbTxnOpRequest::RequestTxn(txn)) = &op.request {
            judge(store, txn, way);
        }
    }
}

fn branch(request: &PbTxnRequest, succeeded: bool) -> &[PbTxnRequestOp] {
    if succeeded { &request.success } else { &request.failure }
}
