//! A fault: when it strikes, and what it does.

use serde::{Deserialize, Serialize};

use super::names::names;
use super::point::{Kind, Point};
use super::raw::RawWhat;
use super::{Shift, Span, is_default};

/// One fault of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When it strikes.
    pub when: When,
    /// What it does.
    pub what: What,
}

/// When a fault strikes. It does so once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawWhen", into = "RawWhen")]
pub enum When {
    /// At a simulated time, counted from the start of the run.
    At(Span),
    /// When a process has passed a point, before it does anything else.
    After {
        /// The process.
        process: String,
        /// The point.
        point: Point,
        /// Which passing counts: the first is 1.
        nth: u32,
        /// How much later the fault strikes.
        plus: Span,
    },
}

/// A link from one process to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "[String; 2]")]
pub struct Link {
    /// The process at whose end segments enter.
    pub from: String,
    /// The process that they reach.
    pub to: String,
}

/// What a fault does. `lasts` is written `for` in schedule files; a fault without it lasts until the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawWhat", into = "RawWhat")]
pub enum What {
    /// Stops a process where it stands, as SIGSTOP, a GC or a hypervisor does. Its clocks run on, segments queue up.
    Pause {
        /// The process.
        process: String,
        /// Until it goes on; without it, until a [`What::Resume`].
        lasts: Option<Span>,
    },
    /// Lets a paused process go on.
    Resume {
        /// The process.
        process: String,
    },
    /// Kills a process, as SIGKILL does: memory and connections are gone. What it wrote to its disk is not, unless the
    /// power fails with it. A worker that restarts begins the round anew in which it died.
    Crash {
        /// The process.
        process: String,
        /// Whether the disk loses what was not synced.
        power_loss: bool,
        /// When it starts again, if it does.
        restart_after: Option<Span>,
    },
    /// Shuts a server down in order: what it has goes to its disk first.
    Stop {
        /// The server, or the resource.
        process: String,
        /// When it starts again, if it does.
        restart_after: Option<Span>,
    },
    /// Lets nothing through a link.
    Cut {
        /// The link.
        link: Link,
        /// Both directions, or only the one that the link names. Default: both.
        both: bool,
        /// Until it heals.
        lasts: Option<Span>,
    },
    /// Makes all that enters a link take longer.
    Delay {
        /// The link.
        link: Link,
        /// How much longer than the latency.
        by: Span,
        /// Both directions, or only the one that the link names. Default: both.
        both: bool,
        /// Until segments that enter are no longer delayed.
        lasts: Option<Span>,
    },
    /// Cuts every link between processes of different groups. A process in no group reaches all.
    Partition {
        /// The groups.
        groups: Vec<Vec<String>>,
        /// Until it heals.
        lasts: Option<Span>,
    },
    /// Breaks the connections between two processes: what is in flight is lost, both ends see a reset. Aimed at a point
    /// of the server, it strikes after the command ran and before its reply left.
    Reset {
        /// The two processes, in either order.
        link: Link,
    },
    /// Moves a process's wall clock at once. Its monotonic clock stays.
    Step {
        /// The process.
        process: String,
        /// How far.
        by: Shift,
    },
    /// Moves a process's wall clock little by little. Its monotonic clock is slewed with it, as Linux does.
    Slew {
        /// The process.
        process: String,
        /// How far in all.
        by: Shift,
        /// In how much true time.
        over: Span,
    },
    /// Makes both clocks of a process run faster or slower than true time.
    Rate {
        /// The process.
        process: String,
        /// Seconds of the clock in a second of true time.
        factor: f64,
        /// Until they run true again, without making up for the difference.
        lasts: Option<Span>,
    },
    /// Makes a replica the primary, with whatever had reached it. A primary that is still up becomes its replica.
    Promote {
        /// The replica.
        replica: String,
    },
    /// Makes a member of etcd or ZooKeeper the leader, as `etcdctl move-leader` does: every lease begins anew. Without a
    /// majority it does nothing, and the trace says so.
    Lead {
        /// The member.
        member: String,
    },
    /// Removes what the lock servers store about a key, as an eviction for want of memory does.
    Evict {
        /// The key, as the schedule names it.
        key: String,
        /// Which of its two entries; both without it.
        part: Option<Part>,
    },
    /// Drops the acquire future of a worker, if it is acquiring just then.
    Cancel {
        /// The worker.
        worker: String,
    },
}

names! {
    /// An entry that Redis stores about a key.
    pub enum Part as "part of a key" {
        /// The owner token: there while the lock is held.
        Owner = "owner",
        /// The fence counter: there from the first grant on.
        Fence = "fence",
    }
}

impl When {
    /// When `process` has passed `point` for the first time.
    pub fn after(process: &str, point: Point) -> Self {
        Self::After { process: process.into(), point, nth: 1, plus: Span::ZERO }
    }

    /// How long after the point, or after the start of the run, the fault strikes.
    pub fn plus(&self) -> Span {
        match self {
            Self::At(at) => *at,
            Self::After { plus, .. } => *plus,
        }
    }
}

impl Link {
    /// The link from `from` to `to`.
    pub fn new(from: &str, to: &str) -> Self {
        Self { from: from.into(), to: to.into() }
    }
}

impl TryFrom<Vec<String>> for Link {
    type Error = &'static str;

    fn try_from(ends: Vec<String>) -> Result<Self, &'static str> {
        let [from, to] =
            <[String; 2]>::try_from(ends).map_err(|_| "a link has two ends: [\"from\", \"to\"]")?;
        Ok(Self { from, to })
    }
}

impl From<Link> for [String; 2] {
    fn from(link: Link) -> Self {
        [link.from, link.to]
    }
}

impl What {
    /// The word that names it in schedule files.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Crash { .. } => "crash",
            Self::Stop { .. } => "stop",
            Self::Cut { .. } => "cut",
            Self::Delay { .. } => "delay",
            Self::Partition { .. } => "partition",
            Self::Reset { .. } => "reset",
            Self::Step { .. } => "step",
            Self::Slew { .. } => "slew",
            Self::Rate { .. } => "rate",
            Self::Promote { .. } => "promote",
            Self::Lead { .. } => "lead",
            Self::Evict { .. } => "evict",
            Self::Cancel { .. } => "cancel",
        }
    }

    /// The processes that it names, in the order in which a schedule file does.
    pub fn processes(&self) -> Vec<&str> {
        match self {
            Self::Pause { process, .. }
            | Self::Resume { process }
            | Self::Crash { process, .. }
            | Self::Stop { process, .. }
            | Self::Step { process, .. }
            | Self::Slew { process, .. }
            | Self::Rate { process, .. } => vec![process],
            Self::Promote { replica: process }
            | Self::Lead { member: process }
            | Self::Cancel { worker: process } => vec![process],
            Self::Cut { link, .. } | Self::Delay { link, .. } | Self::Reset { link } => {
                vec![&link.from, &link.to]
            }
            Self::Partition { groups, .. } => groups.iter().flatten().map(String::as_str).collect(),
            Self::Evict { .. } => Vec::new(),
        }
    }

    /// How long after it struck it has healed by itself: `None` if it never does, zero for what is over at once. The
    /// death of a worker needs no healing: the others must get on without it.
    pub fn heals_after(&self) -> Option<Span> {
        match self {
            Self::Pause { lasts, .. }
            | Self::Cut { lasts, .. }
            | Self::Partition { lasts, .. }
            | Self::Rate { lasts, .. } => *lasts,
            Self::Delay { by, lasts, .. } => lasts.map(|lasts| lasts.plus(*by)),
            Self::Crash { process, restart_after: None, .. } if Kind::of(process) == Kind::Worker => {
                Some(Span::ZERO)
            }
            Self::Crash { restart_after, .. } | Self::Stop { restart_after, .. } => *restart_after,
            Self::Slew { over, .. } => Some(*over),
            Self::Resume { .. }
            | Self::Reset { .. }
            | Self::Step { .. }
            | Self::Promote { .. }
            | Self::Lead { .. }
            | Self::Evict { .. }
            | Self::Cancel { .. } => Some(Span::ZERO),
        }
    }
}

/// [`When`] as files write it: every field of every form, each optional.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawWhen {
    #[serde(skip_serializing_if = "is_default")]
    at: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    process: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    after: Option<Point>,
    #[serde(skip_serializing_if = "is_default")]
    nth: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    plus: Option<Span>,
}

impl TryFrom<RawWhen> for When {
    type Error = &'static str;

    fn try_from(raw: RawWhen) -> Result<Self, &'static str> {
        match raw {
            RawWhen { at: Some(at), process: None, after: None, nth: None, plus: None } => Ok(Self::At(at)),
            RawWhen { at: None, process: Some(process), after: Some(point), nth, plus } => {
                Ok(Self::After { process, point, nth: nth.unwrap_or(1), plus: plus.unwrap_or_default() })
            }
            RawWhen { at: Some(_), .. } => Err("`at` excludes `process`, `after`, `nth` and `plus`"),
            RawWhen { process: Some(_), .. } => {
                Err("`process` needs `after`: the point that it must have passed")
            }
            RawWhen { after: Some(_), .. } => {
                Err("`after` needs `process`: the process that must have passed it")
            }
            _ => Err("`when` needs either `at`, or `process` and `after`"),
        }
    }
}

impl From<When> for RawWhen {
    fn from(when: When) -> Self {
        match when {
            When::At(at) => Self { at: Some(at), ..Self::default() },
            When::After { process, point, nth, plus } => Self {
                at: None,
                process: Some(process),
                after: Some(point),
                nth: (nth != 1).then_some(nth),
                plus: (!plus.is_zero()).then_some(plus),
            },
        }
    }
}
