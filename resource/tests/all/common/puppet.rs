//! A bucket in memory whose puts of records fail as planned, and that lets others act before one.
#![allow(clippy::disallowed_methods, reason = "rivals act on threads of their own")]

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// The fault of one put of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is stored, and its answer is lost.
    LosesAnswer,
    /// It is lost on the way to the bucket.
    LosesRequest,
    /// The bucket refuses the user.
    Denies,
}

/// The conditions that the bucket ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignores {
    Nothing,
    IfMatch,
    All,
}

type Action = Box<dyn FnOnce() + Send>;

pub(crate) struct Puppet {
    bucket: Arc<InMemory>,
    ignores: Ignores,
    faults: Mutex<VecDeque<Fault>>,
    before_put: Mutex<VecDeque<Action>>,
    after_put: Mutex<VecDeque<Action>>,
}

impl Puppet {
    pub(crate) fn new(bucket: &Arc<InMemory>) -> Self {
        let (faults, before_put, after_put) = Default::default();
        Self { bucket: Arc::clone(bucket), ignores: Ignores::Nothing, faults, before_put, after_put }
    }

    pub(crate) fn ignoring(self, ignores: Ignores) -> Self {
        Self { ignores, ..self }
    }

    /// Adds the fault of the next put of a record that has none yet.
    pub(crate) fn with_fault(self, fault: Fault) -> Self {
        self.faults.lock().unwrap().push_back(fault);
        self
    }

    /// Adds an action before the next put of a record that has none yet.
    pub(crate) fn before_put(self, action: impl FnOnce() + Send + 'static) -> Self {
        self.before_put.lock().unwrap().push_back(Box::new(action));
        self
    }

    /// Adds an action between the next put of a record that has none yet and its answer.
    pub(crate) fn after_put(self, action: impl FnOnce() + Send + 'static) -> Self {
        self.after_put.lock().unwrap().push_back(Box::new(action));
        self
    }
}

/// Runs an action on a thread of its own, since its calls have an executor of their own.
fn run(actions: &Mutex<VecDeque<Action>>) {
    let action = actions.lock().unwrap().pop_front();
    if let Some(action) = action {
        std::thread::spawn(action).join().unwrap();
    }
}

#[async_trait]
impl ObjectStore for Puppet {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let mode = match (self.ignores, &options.mode) {
            (Ignores::All, _) | (Ignores::IfMatch, PutMode::Update(_)) => PutMode::Overwrite,
            (_, mode) => mode.clone(),
        };
        let options = PutOptions { mode, ..options };
        if path.filename() != Some("record") {
            return self.bucket.put_opts(path, payload, options).await;
        }
        // Lets another thread put between the read of this one and its put.
        std::thread::yield_now();
        run(&self.before_put);
        let fault = self.faults.lock().unwrap().pop_front();
        let answer = match fault {
            None | Some(Fault::LosesAnswer) => self.bucket.put_opts(path, payload, options).await,
            Some(Fault::LosesRequest) => Err(lost()),
            Some(Fault::Denies) => {
                Err(Error::PermissionDenied { path: path.to_string(), source: "not admitted".into() })
            }
        };
        run(&self.after_put);
        if fault == Some(Fault::LosesAnswer) { Err(lost()) } else { answer }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.bucket.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.bucket.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.bucket.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.bucket.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.bucket.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.bucket.copy_opts(from, to, options).await
    }
}

fn lost() -> Error {
    Error::Generic { store: "Puppet", source: "no answer".into() }
}

impl fmt::Display for Puppet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Puppet")
    }
}

impl fmt::Debug for Puppet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Puppet")
    }
}
