//! The page of the museum, `docs/museum.md`: a row for each mistake.

use std::fmt::Write;

use super::Mutant;
use crate::lab::System;

const HEAD: &str = "\
# The museum: mistakes that real locks made

Each row is a lock, a worker, a resource or a deployment with one mistake, which the simulator must convict. A
schedule names it by `mutant = \"NAME\"`; `sim::museum::run_with` puts it into any schedule. The B numbers are
mistakes of real libraries, with the numbers of the projects' own issues; the R numbers are mistakes that
recipes teach, and measures of the search.

Convicted by: the verdict of a run with fencing on ([what the verdicts mean](../ARCHITECTURE.md#verdicts)).
For B10 and B20 that run has fencing off, since a fence refuses exactly their writes. `demand` stands where a
fence refuses writes, or writes are never made, that the correct lock gets through: the demands of a schedule
show it. A search finds all of these with fencing on, by checks: that a lease has the token of its own grant
(`sim::own_token`), that a write is made under the lock of its own key (`sim::own_key`), and that the resource
refuses no write of the client that holds the lock (`sim::holder_accepted`).

A schedule for each, found by the search and shrunk, is in [seeds/museum](../seeds/museum/).

| number | name | mistake | made by | systems | convicted by | seen in | file |
|---|---|---|---|---|---|---|---|
";

const ABSENT_HEAD: &str = "
## Not shown

| number | mistake | seen in | why |
|---|---|---|---|
";

/// A mistake that no mutant makes.
struct Absent {
    number: &'static str,
    mistake: &'static str,
    source: &'static str,
    why: &'static str,
}

const ABSENT: [Absent; 3] = [
    Absent {
        number: "B07",
        mistake: "Releasing an expired permit reports success.",
        source: "Redisson #4086",
        why: "It breaks the count of a semaphore; there are no permits here, and a lock that reports \
              so breaks no promise.",
    },
    Absent {
        number: "B27",
        mistake: "A deposed leader answers keepalives.",
        source: "etcd #15247",
        why: "The server makes it, not a lock. The simulated cluster answers keepalives through a majority \
              only.",
    },
    Absent {
        number: "B29",
        mistake: "Every waiter watches the first node, and one release wakes them all.",
        source: "the herd that the ZooKeeper recipe warns of",
        why: "It costs requests, and breaks no promise that a history shows.",
    },
];

/// Returns the text of the page.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    for mutant in Mutant::ALL {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", row(*mutant));
    }
    text.push_str(ABSENT_HEAD);
    for Absent { number, mistake, source, why } in ABSENT {
        let _ = writeln!(text, "| {number} | {mistake} | {source} | {why} |");
    }
    text
}

fn row(mutant: Mutant) -> String {
    let file = mutant.file();
    let name = file.rsplit('/').next().unwrap_or(file);
    format!(
        "| {} | `{mutant}` | {} | {} | {} | {} | {} | [{name}](../{file}) |",
        mutant.number(),
        mutant.mistake(),
        mutant.made_by(),
        systems(mutant),
        verdicts(mutant),
        mutant.source(),
    )
}

fn systems(mutant: Mutant) -> String {
    let systems = mutant.systems();
    // All but the toy.
    if systems.len() + 1 == System::ALL.len() {
        return "any".to_owned();
    }
    systems.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn verdicts(mutant: Mutant) -> String {
    if mutant.shows().is_empty() {
        return "demand".to_owned();
    }
    mutant.shows().iter().map(|verdict| format!("`{verdict}`")).collect::<Vec<_>>().join(", ")
}
