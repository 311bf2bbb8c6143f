//! The lab's questions, each with its answer and the figures of the results: a table of the guide.
//!
//! The words of an answer are written here. Its figures are sentences of the chapter, found by a part of
//! them, so that the guide changes with the results.

use std::collections::BTreeMap;

use crate::report::{Chapter, Expectation, Table};

/// A question, and where its answer comes from.
struct Question {
    question: &'static str,
    /// The number of the experiment.
    experiment: u32,
    /// The answer in words, if all is as expected there.
    answer: &'static str,
    /// The sentences that have the figures: a part of each, and the words before which it is cut off.
    figures: &'static [(&'static str, &'static str)],
    /// Links.
    evidence: &'static str,
}

/// No words: a sentence is not cut off.
const WHOLE: &str = "\n";

/// Returns the table for these chapters, by their numbers.
pub(super) fn table(chapters: &BTreeMap<u32, Chapter>) -> String {
    let mut table = Table::new("", &["question", "answer", "evidence"]);
    for question in ALL {
        let answer = chapters.get(&question.experiment).map(|chapter| question.answer(chapter));
        let answer = answer.unwrap_or_else(|| "no results yet".to_owned());
        table.row([question.question, answer.as_str(), question.evidence]);
    }
    table.markdown()
}

impl Question {
    fn answer(&self, chapter: &Chapter) -> String {
        let denied = if chapter.section.as_expected() { "" } else { "NOT AS EXPECTED: " };
        let figures = self.figures.iter().flat_map(|(part, end)| {
            let cut = move |sentence: String| sentence.split(end).next().map(capitalized);
            sentences_with(chapter, part).into_iter().filter_map(cut)
        });
        figures.fold(format!("{denied}{}.", self.answer), |text, figure| text + " " + &figure + ".")
    }
}

/// Begins the sentence with a capital letter, unless a name and a colon or comma begin it.
fn capitalized(sentence: &str) -> String {
    if sentence.split(' ').next().is_some_and(|word| word.ends_with([':', ','])) {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the sentences of the chapter that contain `part`, without a full stop at their end.
fn sentences_with(chapter: &Chapter, part: &str) -> Vec<String> {
    let section = &chapter.section;
    let claims = section.expectations.iter().map(Expectation::sentence);
    let paragraphs: Vec<_> = claims.chain(section.remarks.iter().cloned()).collect();
    let sentences = paragraphs.iter().flat_map(|paragraph| paragraph.split(". "));
    let found = sentences.filter(|sentence| sentence.contains(part));
    found.map(|sentence| sentence.trim_end_matches('.').to_owned()).collect()
}

const ALL: [Question; 13] = [
    Question {
        question: "What stops a holder that paused for longer than its TTL?",
        experiment: 1,
        answer: "Only the resource",
        figures: &[("two holders at once in", WHOLE), ("it refused a's write", ", counted it")],
        evidence: "[experiment 1](experiments.md#1-pause-longer-than-the-ttl), \
                   [gc-pause](../seeds/gc-pause.toml)",
    },
    Question {
        question: "Does a majority of five Redis stop it?",
        experiment: 2,
        answer: "No",
        figures: &[("gave two holders", WHOLE), ("the stale write was accepted each time", WHOLE)],
        evidence: "[experiment 2](experiments.md#2-redlock-under-a-partition), \
                   [gc-pause-redlock](../seeds/gc-pause-redlock.toml)",
    },
    Question {
        question: "Can a release delete another's lock?",
        experiment: 3,
        answer: "By GET and DEL it can, by the script it can't",
        figures: &[
            ("GET and DEL deleted another's lock in", WHOLE),
            ("the script deleted no other client's lock", WHOLE),
        ],
        evidence: "[experiment 3](experiments.md#3-get-and-del-against-the-script), \
                   [get-then-del](../seeds/get-then-del.toml), \
                   [get-then-del-script](../seeds/get-then-del-script.toml)",
    },
    Question {
        question: "What limits a hot lock?",
        experiment: 4,
        answer: "The work, and the time from a release to the next grant",
        figures: &[
            ("bought no more throughput", WHOLE),
            ("waiters poll at random times", WHOLE),
            ("the more of them poll", WHOLE),
            ("What limits it on", ", and the"),
        ],
        evidence: "[experiment 4](experiments.md#4-acquisition-latency-against-contention), \
                   [the objectives](experiments.md#the-objectives-of-the-lab)",
    },
    Question {
        question: "Who is served next?",
        experiment: 5,
        answer: "On etcd and ZooKeeper the first, elsewhere anybody",
        figures: &[(", and one waiter saw", ", and one waiter saw")],
        evidence: "[experiment 5](experiments.md#5-fairness-order-of-arrival-order-of-grant), \
                   [redis-crowd](../seeds/redis-crowd.toml), [redlock-crowd](../seeds/redlock-crowd.toml); with \
                   a limit of waiters Redis keeps their order: [bounded-pause](../seeds/bounded-pause.toml)",
    },
    Question {
        question: "How long does a dead holder block?",
        experiment: 6,
        answer: "For its TTL, or its session",
        figures: &[
            ("the lock stayed taken for longer with a TTL", WHOLE),
            ("blocked the lock for", ": a lock is tied"),
            ("with fencing, whatever the TTL", WHOLE),
        ],
        evidence: "[experiment 6](experiments.md#6-ttl-sweep-with-sigkill), \
                   [sigkill-holder](../seeds/sigkill-holder.toml)",
    },
    Question {
        question: "What do ten million locks cost?",
        experiment: 7,
        answer: "Memory: that of a lock until active or lazy expiry reclaims it, and that of its counter for \
                 ever. On etcd the leases are in memory, too, and each acquire leaves a revision in the \
                 database until that is compacted",
        figures: &[
            ("with one of its own, which never expires", WHOLE),
            ("the last memory was reclaimed", WHOLE),
            ("of memory of each member", ": a member"),
            ("still had their locks when", ": waiters"),
            ("acquires and releases of one lock made", WHOLE),
        ],
        evidence: "[experiment 7](experiments.md#7-ten-million-locks)",
    },
    Question {
        question: "Does renewal close the hole?",
        experiment: 8,
        answer: "It narrows it",
        figures: &[("renewing narrows the window", WHOLE)],
        evidence: "[experiment 8](experiments.md#8-renewing-against-acquiring-again), \
                   [renew-narrows](../seeds/renew-narrows.toml)",
    },
    Question {
        question: "Do simulated and live servers agree?",
        experiment: 9,
        answer: "Yes",
        figures: &[("have exactly the same shares", WHOLE)],
        evidence: "[experiment 9](experiments.md#9-simulated-and-live), [fidelity](fidelity.md)",
    },
    Question {
        question: "What do a disk, a replica, further members and the check cost?",
        experiment: 10,
        answer: "Time for each acquire or write",
        figures: &[
            ("An acquire on Redis takes", "; of the acquires"),
            ("with a WAIT for it", WHOLE),
            ("answer an acquire after", ", and serve"),
            ("in a file on the disk took", ": "),
            ("in PostgreSQL by one statement took", ": "),
            ("A transaction of this update took", ", which takes"),
        ],
        evidence: "[experiment 10](experiments.md#10-the-price-of-a-disk-of-members-and-of-the-check)",
    },
    Question {
        question: "Is a conditional update better than a lock?",
        experiment: 11,
        answer: "While a try in vain costs others little: one that computes takes the processor from them \
                 (*The Computing Series* has it while conflicts are rare)",
        figures: &[("an update under the lock serves more", WHOLE)],
        evidence: "[experiment 11](experiments.md#11-conditional-updates-against-a-lock); no update is lost \
                   either way: [cas-high-contention](../seeds/cas-high-contention.toml), \
                   [under the lock](../seeds/cas-high-contention-locked.toml)",
    },
    Question {
        question: "How wrong may the clock of a server be?",
        experiment: 12,
        answer: "It must not be ahead, unless it is one of a minority of Redlock's",
        figures: &[
            ("no two clients relied", WHOLE),
            ("the clocks of a minority", WHOLE),
            ("two clients did", WHOLE),
            ("the later holder", ": a resource"),
        ],
        evidence: "[experiment 12](experiments.md#12-clocks-of-servers-that-are-set); if each client \
                   reaches only three of five nodes, one is enough: \
                   [redlock-clock-jump](../seeds/redlock-clock-jump.toml)",
    },
    Question {
        question: "How many holders can renew?",
        experiment: 13,
        answer: "As many as one client and one server can serve in time",
        figures: &[
            ("no lease was lost and no acquire failed", WHOLE),
            ("leases were lost, and", ", and "),
            ("hang on its session", ": all that"),
        ],
        evidence: "[experiment 13](experiments.md#13-a-storm-of-renewals)",
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiments::find;

    #[test]
    fn every_answer_has_its_figures() {
        for question in &ALL {
            let number = question.experiment;
            let file =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("results/experiment-{number}.json"));
            let chapter = find(number).unwrap().chapter(&std::fs::read_to_string(file).unwrap()).unwrap();
            for (part, end) in question.figures {
                let found = sentences_with(&chapter, part);
                assert!(!found.is_empty(), "experiment {number} lacks {part:?}");
                assert!(
                    *end == WHOLE || found.iter().any(|sentence| sentence.contains(end)),
                    "experiment {number}: {found:?} lack {end:?}"
                );
            }
        }
    }
}
