//! The arms: the scenarios of a run, each with its number of contenders.

use super::results::Configuration;
use super::slice::{KEYS, Scenario, WRITES};

/// Returns the arms, in the order in which each round measures them.
pub(super) fn arms(configuration: &Configuration) -> Vec<(Scenario, u64)> {
    let hot = configuration.contenders.iter().map(|contenders| (Scenario::Hot, *contenders));
    let space = [(Scenario::Space, configuration.tasks), (Scenario::Take, configuration.takers)];
    let fewest = configuration.contenders.iter().min().copied();
    let others = [(Scenario::Permit, Scenario::Crowd), (Scenario::Read, Scenario::Mixed)];
    let others = others.into_iter().flat_map(|(alone, together)| {
        [(alone, 1)].into_iter().chain(fewest.map(|contenders| (together, contenders)))
    });
    let single = [Scenario::Nested, Scenario::Several, Scenario::Claim, Scenario::Drain];
    let single = single.map(|scenario| (scenario, 1));
    [(Scenario::Uncontended, 1)].into_iter().chain(hot).chain(space).chain(others).chain(single).collect()
}

/// Returns the title of an arm's table.
pub(super) fn title(scenario: Scenario, contenders: u64) -> String {
    match scenario {
        Scenario::Uncontended => "Acquire and release, one client, nobody contends".to_owned(),
        Scenario::Hot => format!("{contenders} contenders on one key"),
        Scenario::Space => {
            format!("Acquire and release, {contenders} at the same time, each time another key")
        }
        Scenario::Take => format!("Acquire alone, {contenders} at the same time, each time another key"),
        Scenario::Permit => "A permit of a semaphore, one client, nobody contends".to_owned(),
        Scenario::Crowd => format!("{contenders} contenders for the permits of one semaphore"),
        Scenario::Read => "Acquire for reading and release, one client, nobody contends".to_owned(),
        Scenario::Mixed => {
            format!(
                "{contenders} contenders for a lock of readers and a writer, one round in {WRITES} writes"
            )
        }
        Scenario::Nested => {
            "A reentrant lock, one acquire inside another, one client, nobody contends".to_owned()
        }
        Scenario::Several => format!("{KEYS} keys at once, one client, nobody contends"),
        Scenario::Claim => "A job queue, each job stored, claimed and finished by one client".to_owned(),
        Scenario::Drain => "A job queue, one worker, all jobs stored before".to_owned(),
    }
}

/// Returns what a reader must know to compare the rows of an arm's table, if there is anything.
pub(super) fn note(scenario: Scenario) -> Option<&'static str> {
    match scenario {
        Scenario::Nested => Some(
            "The two acquires are timed together, and so are the two releases. Redisson counts the acquires \
             on the server, by one request for each. Ours counts the nested one in the client: it shares \
             the lease and its token, and sends nothing.",
        ),
        Scenario::Several => Some(
            "node-redlock sends its keys in one script, which takes all of them or none, and tries again if \
             one is taken. Ours acquires one key after the other, in an order that all clients share, so \
             that no two wait for each other; each key has a token of its own. It releases all at the same \
             time.",
        ),
        Scenario::Claim => Some(
            "The rate counts the storing of a job too. BullMQ is called job by job here, by `getNextJob` and \
             `moveToCompleted`, and pg-boss by `fetch` and `complete`. On Redis both queues remove a job that \
             is done, on PostgreSQL both keep its row, and each step waits for the disk.",
        ),
        Scenario::Drain => Some(
            "BullMQ runs its own worker, which finishes a job and claims the next one by one request. Ours \
             makes a request for each. The worker of pg-boss polls at most twice a second, so it is called \
             job by job here, too.",
        ),
        _ => None,
    }
}
