//! Validates requests. Source: etcd's `server/etcdserver/api/v3rpc/key.go`.

use std::collections::BTreeSet;

use etcd_client::proto::{PbPutRequest, PbTxnOpRequest, PbTxnRequest, PbTxnRequestOp};

use super::State;
use super::span::Span;
use crate::servers::etcd::error::Refusal;

impl State {
    /// Checks that the lease and the former key of a put exist. Outside of a transaction the lease is checked
    /// first (`applierV3backend.Put` in server/etcdserver/apply.go).
    pub(in super::super) fn check_put(&self, request: &PbPutRequest) -> Result<(), Refusal> {
        self.check_lease(request)?;
        self.check_former(request)
    }

    /// Does the same as [`State::check_put`] within a transaction, where the key is checked first
    /// (`checkRequestPut`).
    pub(super) fn check_put_in_txn(&self, request: &PbPutRequest) -> Result<(), Refusal> {
        self.check_former(request)?;
        self.check_lease(request)
    }

    fn check_lease(&self, request: &PbPutRequest) -> Result<(), Refusal> {
        match request.lease {
            0 => Ok(()),
            lease => self.lessor.find(lease).map(drop),
        }
    }

    /// Checks that a put which keeps the former value or lease has a former key.
    fn check_former(&self, request: &PbPutRequest) -> Result<(), Refusal> {
        if (request.ignore_value || request.ignore_lease) && self.store.latest(&request.key).is_none() {
            return Err(Refusal::KeyNotFound);
        }
        Ok(())
    }
}

/// Checks that the request has a key.
pub(in super::super) fn key(key: &[u8]) -> Result<(), Refusal> {
    if key.is_empty() { Err(Refusal::EmptyKey) } else { Ok(()) }
}

pub(in super::super) fn put(request: &PbPutRequest) -> Result<(), Refusal> {
    key(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(Refusal::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(Refusal::LeaseProvided);
    }
    Ok(())
}

/// Checks a transaction, with at most `ops_max` operations at all levels together.
pub(in super::super) fn txn(request: &PbTxnRequest, ops_max: usize) -> Result<(), Refusal> {
    sizes_and_keys(request, ops_max)?;
    Touched::by(&request.success)?;
    Touched::by(&request.failure)?;
    Ok(())
}

fn sizes_and_keys(request: &PbTxnRequest, ops_max: usize) -> Result<(), Refusal> {
    let ops = request.compare.len().max(request.success.len()).max(request.failure.len());
    if ops > ops_max {
        return Err(Refusal::TooManyOps);
    }
    request.compare.iter().try_for_each(|compare| key(&compare.key))?;
    request.success.iter().chain(&request.failure).try_for_each(|op| operation(op, ops_max - ops))
}

fn operation(op: &PbTxnRequestOp, ops_max: usize) -> Result<(), Refusal> {
    match &op.request {
        Some(PbTxnOpRequest::RequestRange(range)) => key(&range.key),
        Some(PbTxnOpRequest::RequestPut(request)) => put(request),
        Some(PbTxnOpRequest::RequestDeleteRange(delete)) => key(&delete.key),
        Some(PbTxnOpRequest::RequestTxn(request)) => sizes_and_keys(request, ops_max),
        None => Err(Refusal::KeyNotFound),
    }
}

/// The keys that a list of operations writes. No key may be written twice.
#[derive(Default)]
struct Touched<'a> {
    puts: BTreeSet<&'a [u8]>,
    deletes: Vec<Span<'a>>,
}

impl<'a> Touched<'a> {
    fn by(ops: &'a [PbTxnRequestOp]) -> Result<Self, Refusal> {
        let mut touched = Self::default();
        for op in ops {
            // etcd does not notice that an open range overlaps a put.
            if let Some(PbTxnOpRequest::RequestDeleteRange(delete)) = &op.request
                && delete.range_end != [0]
            {
                touched.deletes.push(Span::new(&delete.key, &delete.range_end));
            }
        }
        for op in ops {
            if let Some(PbTxnOpRequest::RequestTxn(txn)) = &op.request {
                touched.nest(Self::by(&txn.success)?, Self::by(&txn.failure)?)?;
            }
        }
        for op in ops {
            if let Some(PbTxnOpRequest::RequestPut(put)) = &op.request {
                touched.put(&put.key)?;
            }
        }
        Ok(touched)
    }

    /// Adds both branches of a nested transaction. Only one is taken, so both may write the same keys.
    fn nest(&mut self, success: Self, failure: Self) -> Result<(), Refusal> {
        for &key in &success.puts {
            self.put(key)?;
        }
        for &key in failure.puts.difference(&success.puts) {
            self.put(key)?;
        }
        self.deletes.extend(success.deletes);
        self.deletes.extend(failure.deletes);
        Ok(())
    }

    fn put(&mut self, key: &'a [u8]) -> Result<(), Refusal> {
        let is_deleted = self.deletes.iter().any(|span| span.contains(key));
        if is_deleted || !self.puts.insert(key) { Err(Refusal::DuplicateKey) } else { Ok(()) }
    }
}
