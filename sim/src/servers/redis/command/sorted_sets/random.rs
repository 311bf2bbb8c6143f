//! ZRANDMEMBER.

use super::super::ranges::parse_within;
use super::super::{OUT_OF_RANGE, SYNTAX_ERROR, choices};
use super::listed;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Scored, SortedSet};

pub(crate) fn zrandmember(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if args.len() == 2 {
        let items = items(state, args)?;
        let chosen = choices::choose(&mut state.choices, items.len(), 1);
        return Ok(chosen.first().map_or(Reply::Nil, |at| Reply::Bulk(items[*at].member.clone())));
    }
    let count = parse_within(args.at(2), -i64::MAX..=i64::MAX, None)?;
    let with_scores = args.len() == 4 && args.at(3).eq_ignore_ascii_case(b"withscores");
    if args.len() > 4 || (args.len() == 4 && !with_scores) {
        return Err(Reply::error(SYNTAX_ERROR));
    }
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Reply::error(OUT_OF_RANGE));
    }
    let items = items(state, args)?;
    let chosen = choices::choose(&mut state.choices, items.len(), count);
    Ok(listed(chosen.into_iter().map(|at| &items[at]), with_scores))
}

fn items(state: &mut State, args: Args<'_>) -> Result<Vec<Scored>, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    Ok(set.map_or_else(Vec::new, |set| set.items().to_vec()))
}
