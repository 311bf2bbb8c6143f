//! Groups of rows.

use std::collections::BTreeMap;

use super::aggregate;
use super::run::{Env, Run};
use super::scan::Tuple;
use super::select::ordered;
use crate::plan::expr::{AggregateCall, Group};
use crate::storage::stop::Stop;
use crate::value::Value;

impl Run<'_> {
    /// Returns a row for each group: its aggregates, then its keys.
    pub(super) fn group(
        &mut self,
        group: &Group,
        tuples: Vec<Tuple>,
        outer: Option<&Env<'_>>,
    ) -> Result<Vec<Tuple>, Stop> {
        let mut groups: BTreeMap<Vec<Value>, Vec<Tuple>> = BTreeMap::new();
        if group.keys.is_empty() {
            groups.insert(Vec::new(), Vec::new());
        }
        for tuple in tuples {
            let env = Env { row: &tuple.values, outer };
            let key = group.keys.iter().map(|key| self.eval(key, &env)).collect::<Result<_, _>>()?;
            groups.entry(key).or_default().push(tuple);
        }
        let mut rows = Vec::new();
        for (keys, members) in groups {
            let mut values = Vec::new();
            for call in &group.aggregates {
                values.push(self.aggregate(call, &members, outer)?);
            }
            values.extend(keys);
            let is_kept = match &group.having {
                Some(having) => self.holds(having, &Env { row: &values, outer })?,
                None => true,
            };
            if is_kept {
                rows.push(Tuple { values, versions: Vec::new() });
            }
        }
        Ok(rows)
    }

    fn aggregate(
        &mut self,
        call: &AggregateCall,
        members: &[Tuple],
        outer: Option<&Env<'_>>,
    ) -> Result<Value, Stop> {
        let mut inputs: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        for tuple in members {
            let env = Env { row: &tuple.values, outer };
            let is_kept = match &call.filter {
                Some(filter) => self.holds(filter, &env)?,
                None => true,
            };
            if is_kept {
                let args = call.args.iter().map(|arg| self.eval(arg, &env)).collect::<Result<_, _>>()?;
                let keys = call.order.iter().map(|(key, ..)| self.eval(key, &env));
                inputs.push((keys.collect::<Result<_, _>>()?, args));
            }
        }
        if call.is_distinct {
            inputs.sort_by(|(_, a), (_, b)| a.cmp(b));
            inputs.dedup_by(|(_, a), (_, b)| a == b);
        }
        inputs.sort_by(|(a, _), (b, _)| {
            let keys = a.iter().zip(b).zip(&call.order);
            keys.fold(std::cmp::Ordering::Equal, |sum, ((a, b), (_, is_descending, nulls_first))| {
                sum.then_with(|| ordered(a, b, *is_descending, *nulls_first))
            })
        });
        let inputs = inputs.into_iter().map(|(_, args)| args).collect();
        Ok(aggregate::result(call.function, inputs)?)
    }
}
