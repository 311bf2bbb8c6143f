//! Reads who holds a key on a majority of several Redis servers.

use dlock_runtime::{Instant, Runtime};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::acquisition::Nodes;
use super::quorum::Quorum;
use crate::backend::Holder;
use crate::error::BackendError;
use crate::key::LockKey;
use crate::redis::{Redis, StoredHolder};
use crate::token::owner_prefix;

impl<R: Runtime> Nodes<R> {
    /// Asks all nodes, and returns the holder that a majority names with one token; `None` if no owner has a
    /// majority with one token, such as between the two phases of a grant.
    pub(super) async fn holder(
        &self,
        key: &LockKey,
        deadline: Instant,
    ) -> Result<Option<Holder>, BackendError> {
        let ask = |node: &Redis<R>| {
            let (node, key) = (node.clone(), key.clone());
            async move { node.stored_holder(&key, deadline).await }
        };
        let mut calls: FuturesUnordered<_> = self.clients().iter().map(ask).collect();
        let mut names = Names::new(self.quorum());
        loop {
            if let Some(decided) = names.decided() {
                self.drain(calls, drop);
                return decided;
            }
            // All have answered: the names would have decided.
            let Some(answer) = calls.next().await else { return Err(BackendError::NoAnswer) };
            names.answers.push(answer);
        }
    }
}

/// The answers of the nodes. Pure.
struct Names {
    quorum: Quorum,
    answers: Vec<Result<Option<StoredHolder>, BackendError>>,
}

impl Names {
    fn new(quorum: Quorum) -> Self {
        Self { quorum, answers: Vec::with_capacity(quorum.nodes) }
    }

    /// Returns the holder, once no further answer can change it.
    fn decided(&self) -> Option<Result<Option<Holder>, BackendError>> {
        let waiting = self.quorum.nodes - self.answers.len();
        let named = || self.answers.iter().filter_map(|answer| answer.as_ref().ok()?.as_ref());
        let votes = |holder: &StoredHolder| named().filter(|other| *other == holder).count();
        let most = named().max_by_key(|holder| votes(holder));
        let most_votes = most.map_or(0, votes);
        if let Some(holder) = most.filter(|_| most_votes >= self.quorum.needed()) {
            let name = owner_prefix(&holder.owner).to_owned();
            return Some(Ok(Some(Holder { token: holder.token, name })));
        }
        if most_votes + waiting >= self.quorum.needed() {
            return None;
        }
        let failures: Vec<_> = self.answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        let answered = self.answers.len() - failures.len();
        if answered >= self.quorum.needed() {
            return Some(Ok(None));
        }
        (answered + waiting < self.quorum.needed()).then(|| Err(self.quorum.missed(answered, &failures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::FencingToken;

    type Answer = Result<Option<StoredHolder>, BackendError>;

    fn held(owner: &str, token: u64) -> Answer {
        Ok(Some(StoredHolder { token: FencingToken::new(token).unwrap(), owner: owner.into() }))
    }

    /// Returns the decision of three nodes after these answers: a holder's token, 0 for none.
    fn decided(answers: Vec<Answer>) -> Option<Result<u64, ()>> {
        let names = Names { quorum: Quorum { nodes: 3 }, answers };
        let decided = names.decided()?;
        Some(decided.map(|holder| holder.map_or(0, |holder| holder.token.as_u64())).map_err(|_| ()))
    }

    #[test]
    fn two_of_three_nodes_name_the_holder() {
        assert_eq!(decided(vec![held("a", 5), held("a", 5)]), Some(Ok(5)));
        assert_eq!(decided(vec![held("a", 5), Err(BackendError::NoAnswer), held("a", 5)]), Some(Ok(5)));
    }

    #[test]
    fn one_owner_with_two_tokens_is_no_holder() {
        assert_eq!(decided(vec![held("a", 5), held("a", 4)]), None, "the third node decides");
        assert_eq!(decided(vec![held("a", 5), held("a", 4), Ok(None)]), Some(Ok(0)));
        assert_eq!(decided(vec![held("a", 5), held("b", 5), Ok(None)]), Some(Ok(0)));
    }

    #[test]
    fn free_nodes_are_no_holder() {
        assert_eq!(decided(vec![Ok(None), Ok(None)]), Some(Ok(0)));
        assert_eq!(decided(vec![Ok(None)]), None);
    }

    #[test]
    fn a_minority_that_answers_decides_nothing() {
        let silent = || Err(BackendError::NoAnswer);
        assert_eq!(decided(vec![silent(), silent()]), Some(Err(())));
        assert_eq!(decided(vec![held("a", 5), silent(), silent()]), Some(Err(())));
    }
}
