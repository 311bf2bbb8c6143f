//! One entry in a queue: creates, reads and deletes it.

use dlock_runtime::{Instant, Runtime, always, probes, reached, sometimes};
use dlock_zookeeper::path::{entry_number, entry_prefix, reader_prefix};
use dlock_zookeeper::wire::WireError;
use dlock_zookeeper::{Client, CreateMode, Error, Stat, Watch};
use futures_util::future::{join, join_all, join3};

use super::queue;
use crate::backend::Claim;
use crate::token::{FencingToken, Owner};

/// An entry, and the session that owns it.
pub(super) struct Place<R: Runtime> {
    client: Client<R>,
    /// The path of the queue.
    queue: String,
    /// The guid in the entry's name.
    guid: String,
    /// The number of entries at the head of the queue that have a permit: one for a mutex.
    permits: usize,
    /// True if the claim is for reading.
    is_shared: bool,
    /// The most claims that may wait, this one included; `None` without a limit, or once the queue was found
    /// to have room.
    waiters_max: Option<u32>,
    /// `None` while its creation is not answered.
    entry: Option<Entry>,
}

/// The state of an entry, as a server has reported it.
struct Entry {
    path: String,
    number: u32,
    /// The transaction that created it.
    token: FencingToken,
    /// The paths of the entries directly ahead, when last read: see [`queue::ahead`].
    ahead: Vec<String>,
    /// The paths of the readers ahead of a reader.
    readers: Vec<String>,
}

/// The entry's position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) token: FencingToken,
    /// Fewer entries are ahead than there are permits.
    pub(super) is_served: bool,
    /// The queue's counter has overflowed: the order is unknown.
    pub(super) is_used_up: bool,
    /// The number of claims that wait ahead, if the queue is full.
    pub(super) refusal: Option<u32>,
}

impl<R: Runtime> Place<R> {
    /// Makes an entry with a new guid, without a request.
    pub(super) fn new(client: Client<R>, queue: &str, guid: String, claim: &Claim) -> Self {
        let permits = usize::try_from(claim.permits).unwrap_or(usize::MAX);
        let (queue, is_shared) = (queue.to_owned(), claim.is_shared());
        let waiters_max = claim.queue.map(|queue| queue.max);
        Self { client, queue, guid, permits, is_shared, waiters_max, entry: None }
    }

    /// Returns whether a server has reported the entry.
    pub(super) fn is_known(&self) -> bool {
        self.entry.is_some()
    }

    pub(super) fn client(&self) -> &Client<R> {
        &self.client
    }

    /// Creates the entry and reads the entries ahead of it, in one round trip: a server answers in order, and
    /// shows a client no older state than it has shown before.
    ///
    /// # Errors
    ///
    /// [`Error::NoNode`] if the queue does not exist, or the entry is gone again.
    pub(super) async fn create(&mut self, owner: &Owner, deadline: Instant) -> Result<Position, Error> {
        let Self { client, queue, .. } = &*self;
        let name = if self.is_shared { reader_prefix(&self.guid) } else { entry_prefix(&self.guid) };
        let path = format!("{queue}/{name}");
        let data = owner.as_str().as_bytes();
        let create = client.create(&path, data, CreateMode::EPHEMERAL_SEQUENTIAL, deadline);
        let (created, children) = join(create, client.children(queue, deadline)).await;
        let created = created?;
        self.note(&created.path, created.stat)?;
        let names = children?.names;
        if queue::find(&names, &self.guid).is_none() {
            return Err(Error::NoNode { path: created.path });
        }
        self.position(&names)
    }

    /// Reads whether the entry is in the queue and which entries are ahead; returns `None` if it is not there
    /// and never will be.
    ///
    /// It syncs first. The sync is answered with the leader's consent, so nothing read is older than this
    /// call; and every earlier request has been executed by then, or never will be: if the creation was not
    /// answered, an entry missing now stays missing.
    pub(super) async fn look(&mut self, deadline: Instant) -> Result<Option<Position>, Error> {
        let Self { client, queue, entry, .. } = &*self;
        let stat = async {
            match entry {
                Some(entry) => client.exists(&entry.path, deadline).await.map(Some),
                None => Ok(None),
            }
        };
        let (synced, children, stat) =
            join3(client.sync(queue, deadline), client.children(queue, deadline), stat).await;
        synced?;
        let names = match children {
            Err(Error::NoNode { .. }) => return Ok(None),
            children => children?.names,
        };
        let name = queue::find(&names, &self.guid);
        sometimes!(client.runtime(), unanswered_creation_found, entry.is_none() && name.is_some());
        sometimes!(client.runtime(), unanswered_creation_missing, entry.is_none() && name.is_none());
        let Some(name) = name else { return Ok(None) };
        let path = format!("{queue}/{name}");
        let stat = match stat? {
            Some(stat) => stat,
            None => client.exists(&path, deadline).await?,
        };
        always!(client.runtime(), found_entry_is_ours, stat.is_none_or(|stat| self.is_ours(&stat)));
        let Some(stat) = stat.filter(|stat| self.is_ours(stat)) else { return Ok(None) };
        self.note(&path, stat)?;
        self.position(&names).map(Some)
    }

    /// Returns whether the leader has the entry as our session's.
    pub(super) async fn is_in_place(&self, deadline: Instant) -> Result<bool, Error> {
        let Some(Entry { path, .. }) = &self.entry else { return Ok(false) };
        let (synced, stat) = join(self.client.sync(path, deadline), self.client.exists(path, deadline)).await;
        synced?;
        Ok(stat?.is_some_and(|stat| self.is_ours(&stat)))
    }

    /// Watches the entries directly ahead; returns no watches if one of them is gone.
    ///
    /// It watches the data: an exists on a missing node would leave a watch at the server for as long as the
    /// connection lasts.
    pub(super) async fn watch_ahead(&self, deadline: Instant) -> Result<Vec<Watch>, Error> {
        let ahead = self.entry.iter().flat_map(|entry| &entry.ahead);
        let watched = ahead.map(|path| self.client.data_watched(path, deadline));
        let watched = join_all(watched).await.into_iter();
        match watched.map(|watched| watched.map(|(_, _, watch)| watch)).collect() {
            Err(Error::NoNode { .. }) => {
                reached!(self.client.runtime(), predecessor_gone_before_watch);
                Ok(Vec::new())
            }
            watches => watches,
        }
    }

    /// Reads the tokens of the entries ahead that have permits, or are readers, if this one has or is; of
    /// those that are still there, in ascending order.
    pub(super) async fn tokens_ahead(&self, deadline: Instant) -> Result<Vec<FencingToken>, Error> {
        let ahead = self.entry.iter().flat_map(|entry| entry.ahead.iter().chain(&entry.readers));
        let stats = join_all(ahead.map(|path| self.client.exists(path, deadline))).await.into_iter();
        let stats: Vec<Option<Stat>> = stats.collect::<Result<_, _>>()?;
        let tokens = stats.into_iter().flatten().filter_map(|stat| token_of(&stat));
        let mut tokens: Vec<_> = tokens.collect();
        tokens.sort_unstable();
        Ok(tokens)
    }

    /// Deletes the entry; returns false if it was gone already. After an answer it is gone for good.
    pub(super) async fn delete(&mut self, deadline: Instant) -> Result<bool, Error> {
        if self.entry.is_none() {
            self.look(deadline).await?;
        }
        let Some(Entry { path, number, .. }) = &self.entry else { return Ok(false) };
        let deleted = match self.client.delete(path, None, deadline).await {
            Ok(()) => true,
            Err(Error::NoNode { .. }) => {
                reached!(self.client.runtime(), entry_gone_before_release);
                false
            }
            Err(error) => return Err(error),
        };
        if queue::is_used_up(*number) {
            // Usually other entries remain, and one of them will succeed.
            let _ = self.client.delete(&self.queue, None, deadline).await;
        }
        Ok(deleted)
    }

    /// Returns whether the entry belongs to this session. A session keeps its number across connections: an
    /// entry of another session proves nothing.
    fn is_ours(&self, stat: &Stat) -> bool {
        self.client.session().is_some_and(|session| session.id == stat.ephemeral_owner)
    }

    fn note(&mut self, path: &str, stat: Stat) -> Result<(), Error> {
        let number = entry_number(path);
        let token = token_of(&stat);
        // A server that follows the protocol gives no other name, and no transaction below 1.
        let (Some(number), Some(token)) = (number, token) else {
            return Err(Error::Protocol(WireError::Truncated));
        };
        self.entry =
            Some(Entry { path: path.to_owned(), number, token, ahead: Vec::new(), readers: Vec::new() });
        Ok(())
    }

    fn position(&mut self, names: &[String]) -> Result<Position, Error> {
        let Self { queue, entry, permits, is_shared, waiters_max, .. } = self;
        let Some(entry) = entry else { return Err(Error::NoNode { path: queue.clone() }) };
        let (ahead, readers) = match is_shared {
            true => {
                let (writer, readers) = queue::ahead_of_reader(names, entry.number);
                (writer.into_iter().collect(), readers)
            }
            false => (queue::ahead(names, entry.number, *permits), Vec::new()),
        };
        let paths = |names: Vec<&str>| names.into_iter().map(|name| format!("{queue}/{name}")).collect();
        (entry.ahead, entry.readers) = (paths(ahead), paths(readers));
        let (token, is_used_up) = (entry.token, queue::is_used_up(entry.number));
        let is_served = entry.ahead.len() < *permits;
        let waiting = waiters_max.map(|_| queue::waiting_ahead(names, entry.number, *permits));
        let refusal = waiting.filter(|waiting| !is_served && Some(*waiting) >= *waiters_max);
        if refusal.is_none() {
            // A claim that was let in waits until it is served.
            *waiters_max = None;
        }
        Ok(Position { token, is_served, is_used_up, refusal })
    }
}

/// Returns the token of an entry: the transaction that created it.
pub(super) fn token_of(stat: &Stat) -> Option<FencingToken> {
    u64::try_from(stat.czxid).ok().and_then(FencingToken::new)
}

probes! {
    /// A creation whose answer got lost had taken effect: the entry was found by its guid.
    sometimes unanswered_creation_found;
    /// A creation whose answer got lost had no effect, and never will.
    sometimes unanswered_creation_missing;
    /// An entry with the guid of a claim belongs to the claim's session.
    always found_entry_is_ours;
    /// The entry ahead was gone before the watch on it was set.
    reached predecessor_gone_before_watch;
    /// A release found the entry gone: an earlier release had deleted it.
    reached entry_gone_before_release;
}
