//! The session of a client, shared by all its acquisitions: opened by the first of them, replaced when it is
//! over.

use dlock_runtime::Runtime;
use dlock_zookeeper::path::escape;
use dlock_zookeeper::{Client, ClientOptions, SessionState};

use crate::key::LockKey;
use crate::sync::Guarded;

pub(super) struct Sessions<R: Runtime> {
    runtime: R,
    options: ClientOptions,
    /// The path of the parent of all queues.
    parent: String,
    current: Guarded<Option<Client<R>>>,
}

impl<R: Runtime> Sessions<R> {
    pub(super) fn new(runtime: R, options: ClientOptions, parent: String) -> Self {
        Self { runtime, options, parent, current: Guarded::default() }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(super) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Returns the path of the parent of all queues.
    pub(super) fn parent(&self) -> &str {
        &self.parent
    }

    /// Returns the path of the queue of a key.
    pub(super) fn queue(&self, key: &LockKey) -> String {
        format!("{}/{}", self.parent, escape(key.name()))
    }

    /// Returns the session for new claims: the present one, or a new one after it has ended.
    pub(super) fn current(&self) -> Client<R> {
        let mut current = self.current.lock();
        let over =
            |client: &Client<R>| matches!(client.state(), SessionState::Expired | SessionState::Closed);
        match current.as_ref().filter(|client| !over(client)) {
            Some(client) => client.clone(),
            None => current.insert(Client::new(self.runtime.clone(), self.options.clone())).clone(),
        }
    }

    /// Gives new claims another session than `over`, which has ended according to a server.
    pub(super) fn retire(&self, over: &Client<R>) {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|client| client.is_same(over)) {
            *current = None;
        }
    }
}
