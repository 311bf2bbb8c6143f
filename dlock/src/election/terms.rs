//! The terms that an observer shows. Pure.

use crate::backend::Holder;
use crate::token::FencingToken;

/// A term, and who leads in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The number of the term: the fencing token of its leader's lease.
    pub term: FencingToken,
    /// The leader's name: [`Options::instance`](crate::Options::instance) and the first 8 of the 32 secret
    /// digits of its owner token, as in logs; without an instance, the digits alone.
    pub leader: String,
}

/// The terms that an observer has seen.
#[derive(Debug, Default)]
pub(super) struct Terms {
    newest: Option<FencingToken>,
}

impl Terms {
    /// Returns the term of `holder` if it is above all that were seen. An older one comes from a server that
    /// has lost data, or that lags: it is over, and is not shown again.
    pub(super) fn see(&mut self, holder: Option<Holder>) -> Option<Term> {
        let Holder { token, name } = holder.filter(|holder| Some(holder.token) > self.newest)?;
        self.newest = Some(token);
        Some(Term { term: token, leader: name })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holder(number: u64) -> Option<Holder> {
        FencingToken::new(number).map(|token| Holder { token, name: format!("p{number}") })
    }

    proptest! {
        /// Answers of any servers, in any order; 0 is a free key.
        #[test]
        fn each_new_term_is_shown_once_in_growing_order(answers in prop::collection::vec(0..9u64, 0..40)) {
            let mut terms = Terms::default();
            let shown: Vec<_> = answers.iter().filter_map(|answer| terms.see(holder(*answer))).collect();
            let numbers: Vec<_> = shown.iter().map(|term| term.term.as_u64()).collect();
            prop_assert!(numbers.is_sorted_by(|earlier, later| earlier < later));
            let is_named = |term: &Term| term.leader == ["p", &term.term.to_string()].concat();
            prop_assert!(shown.iter().all(is_named));
            let mut highest = 0;
            let records: Vec<_> = answers.into_iter().filter(|answer| {
                let is_record = *answer > highest;
                highest = highest.max(*answer);
                is_record
            }).collect();
            prop_assert_eq!(numbers, records, "no new highest is left out");
        }
    }
}
