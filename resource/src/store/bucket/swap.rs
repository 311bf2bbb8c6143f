//! Swaps the record of a key: judge what was read, put it on the condition that nothing has changed.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::{Error, PutMode, PutOptions, UpdateVersion};

use super::{Body, BucketStore, Failure, Judged, LOST_MAX, ROUNDS_MAX, Record, attributes, brief, failed};
use crate::ResourceKey;
use crate::store::StoreError;

/// A call on its way: the state that outlives a round.
struct Call<'a> {
    key: &'a ResourceKey,
    /// Its name. The record that it stores has it, and no other.
    name: String,
    /// The body that it has uploaded, and the number of sweeps at that time.
    upload: Option<(String, u64)>,
    /// The put whose answer was lost: the version on whose condition it was sent, and the error.
    lost: Option<(Option<UpdateVersion>, Error)>,
    lost_answers: usize,
}

/// The outcome of a conditional put.
enum Put {
    Stored,
    /// The condition does not hold.
    Overtaken,
    /// It may or may not be stored, now or later.
    Lost(Error),
}

impl BucketStore {
    /// Judges the record of `key`, and stores what `judge` makes of it, with `body` if there is one. Returns
    /// the outcome and the record as it is then.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the record may or may not be stored.
    pub(super) async fn swap<T>(
        &self,
        key: &ResourceKey,
        body: Option<&Bytes>,
        judge: impl Fn(&mut Record) -> Judged<T>,
    ) -> Result<(T, Record), StoreError> {
        let mut call = Call { key, name: self.next_name(), upload: None, lost: None, lost_answers: 0 };
        // The outcome of the round whose put is lost.
        let mut pending: Option<(T, Record)> = None;
        for _ in 0..ROUNDS_MAX {
            let (found, version) = self.load(key).await?;
            if let Some((condition, error)) = call.lost.take() {
                // Claims keep the name of the write, so it is recognised after them, too.
                let is_own = found.stored_by == call.name || found.written_by == call.name;
                if let (true, Some((outcome, _))) = (is_own, pending.take()) {
                    return Ok((outcome, found));
                }
                if version != condition {
                    self.drop_upload(&mut call).await;
                    return Err(Failure::Unknown(brief(&error)).into());
                }
                call.lost = Some((condition, error));
            }
            let mut record = found.clone();
            let judged = judge(&mut record);
            if !judged.is_changed {
                self.drop_upload(&mut call).await;
                return Ok((judged.outcome, found));
            }
            record.stored_by.clone_from(&call.name);
            if let Some(body) = body {
                record.written_by.clone_from(&call.name);
                record.body = self.place(&mut call, body, &record).await?;
            }
            match self.put(&mut call, &record, version.clone()).await? {
                Put::Stored => {
                    self.discard_replaced(key, &found, &record).await;
                    return Ok((judged.outcome, record));
                }
                Put::Overtaken => {
                    self.lost_races.fetch_add(1, Ordering::Relaxed);
                    pending = call.lost.is_some().then_some((judged.outcome, record));
                }
                Put::Lost(error) => {
                    call.lost = Some((version, error));
                    pending = Some((judged.outcome, record));
                }
            }
        }
        // The upload stays: a put whose answer was lost may name it yet.
        Err(Failure::Contended.into())
    }

    /// Returns the place of `body` for `record`, after uploading it if it is large.
    async fn place(&self, call: &mut Call<'_>, body: &Bytes, record: &Record) -> Result<Body, StoreError> {
        if body.len() <= self.inline_bytes_max {
            return Ok(Body::Inline(body.clone()));
        }
        // A sweep since the upload may have deleted it: see `sweep`.
        if let Some((name, sweeps)) = &call.upload
            && *sweeps == record.sweeps
        {
            return Ok(Body::Named(name.clone()));
        }
        self.drop_upload(call).await;
        let name = self.next_name();
        let path = self.body_path(call.key, &name);
        let options = PutOptions { attributes: attributes(record), ..PutOptions::default() };
        let mut lost = 0;
        loop {
            // Without a condition: nobody else has the name.
            match self.bucket.put_opts(&path, body.clone().into(), options.clone()).await {
                Ok(_) => break,
                Err(Error::Generic { .. }) if lost < LOST_MAX => lost += 1,
                Err(error) => return Err(failed(error)),
            }
        }
        call.upload = Some((name.clone(), record.sweeps));
        Ok(Body::Named(name))
    }

    /// Puts `record` on the condition that its object has `version`, or that there is none.
    ///
    /// # Errors
    ///
    /// The record is not stored, or the bucket has not answered [`LOST_MAX`] puts in a row.
    async fn put(
        &self,
        call: &mut Call<'_>,
        record: &Record,
        version: Option<UpdateVersion>,
    ) -> Result<Put, StoreError> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, attributes: attributes(record), ..PutOptions::default() };
        let bytes = record.to_bytes(call.key.as_str());
        match self.bucket.put_opts(&self.record_path(call.key), bytes.into(), options).await {
            Ok(_) => Ok(Put::Stored),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Put::Overtaken),
            Err(error @ Error::Generic { .. }) if call.lost_answers < LOST_MAX => {
                call.lost_answers += 1;
                Ok(Put::Lost(error))
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn drop_upload(&self, call: &mut Call<'_>) {
        if let Some((name, _)) = call.upload.take() {
            self.discard(call.key, &name).await;
        }
    }

    async fn discard_replaced(&self, key: &ResourceKey, old: &Record, new: &Record) {
        if let Some(name) = old.body_name()
            && new.body_name() != Some(name)
        {
            self.discard(key, name).await;
        }
    }
}
