//! The table: every event of a history, with its target, its name and its fields.
//!
//! A row is `Variant = "name" { field: type, … }`. The fields are those of [`Record`](super::Record), which
//! describes them; an `Option` may be absent. The simulator and live tools emit `server` events; the code
//! that strikes faults emits `fault` events.

/// Calls the macro `$then` with the whole table, behind the tokens that follow its name.
macro_rules! events {
    ($then:ident $($first:tt)?) => { dlock::lease_events! { with_lease_events { $then $($first)? } } };
}

/// Calls `$then` with the rows of dlock and with those below. Each event of a lease has a key and an owner;
/// old histories lack the type of the resource.
macro_rules! with_lease_events {
    (
        { $then:ident $($first:tt)? }
        $(
            $(#[$doc:meta])*
            $short:ident as $variant:ident = $name:literal {
                $($of:ident: $from:ty => $field:ident: $type:ty),*
            }
        )*
    ) => {
        $then! {
            $($first)?
            "dlock" {
                $( $(#[$doc])* $variant = $name {
                    resource_type: Option<Name>, key: Name, owner: Name $(, $field: $type)*
                } )*
            }
            "resource" {
                /// The resource stored a write.
                WriteAccepted = "write_accepted" {
                    key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, version: u64,
                    body: Option<Name>
                }
                /// A retry of a write got the first answer; nothing was stored.
                WriteRepeated = "write_repeated" {
                    key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, version: u64,
                    body: Option<Name>
                }
                /// The resource refused a write.
                WriteRejected = "write_rejected" {
                    key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, seen: u64,
                    outcome: Option<Name>
                }
                /// The resource was read. With a token it is the fenced read, which claims the token.
                ResourceRead = "resource_read" {
                    key: Name, owner: Option<Name>, token: Option<u64>, version: u64, seen: u64
                }
                /// The resource refused a fenced read.
                ReadRejected = "read_rejected" {
                    key: Name, owner: Option<Name>, token: u64, seen: u64, outcome: Option<Name>
                }
                /// The resource stored a conditional write.
                ConditionalAccepted = "conditional_accepted" {
                    key: Name, owner: Option<Name>, expected: u64, version: u64, body: Option<Name>
                }
                /// A retry of a conditional write got the first answer; nothing was stored.
                ConditionalRepeated = "conditional_repeated" {
                    key: Name, owner: Option<Name>, expected: u64, version: u64, body: Option<Name>
                }
                /// The resource refused a conditional write: it has another version, or has seen a fencing
                /// token.
                ConditionalRejected = "conditional_rejected" {
                    key: Name, owner: Option<Name>, expected: u64, version: Option<u64>,
                    seen: Option<u64>, outcome: Option<Name>
                }
                /// An operator set the highest token that the resource has seen from `seen` to `token`; 0 is
                /// none.
                FenceSet = "fence_set" { key: Name, token: u64, seen: u64 }
            }
            "worker" {
                /// The worker believes that it holds the lock and enters its critical section.
                SectionEntered = "section_entered" { key: Name, owner: Name, token: u64 }
                /// The worker has left its critical section: it is done, or knows that it lost the lock.
                SectionLeft = "section_left" { key: Name, owner: Name, token: u64, outcome: Option<Name> }
                /// The worker reached a step of its work.
                WorkerStep = "worker_step" { step: Name, key: Option<Name>, owner: Option<Name> }
                /// The process passed a point that its own code names.
                PointPassed = "point_passed" { step: Name }
                /// The worker sent a write to the resource.
                WriteSent = "write_sent" { key: Name, owner: Option<Name>, token: u64, seq: Option<u64> }
                /// The worker got its answer, or none.
                WriteAnswered = "write_answered" {
                    key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, outcome: Option<Name>
                }
                /// The worker sent a conditional write to the resource.
                ConditionalSent = "conditional_sent" { key: Name, owner: Option<Name>, expected: u64 }
                /// The worker got its answer, or none.
                ConditionalAnswered = "conditional_answered" {
                    key: Name, owner: Option<Name>, expected: u64, outcome: Option<Name>
                }
                /// The worker is done with a read-modify-write by conditional writes, or gave it up.
                UpdateEnded = "update_ended" { key: Name, owner: Option<Name>, outcome: Option<Name> }
            }
            "server" {
                /// A lock server stored an owner under a key that had none.
                KeyGranted = "key_granted" {
                    key: Name, owner: Name, token: Option<u64>, ttl_millis: Option<u64>, client: Name
                }
                /// A lock server moved the end of a key's time to live.
                KeyExtended = "key_extended" { key: Name, owner: Name, ttl_millis: Option<u64>, client: Name }
                /// A lock server deleted a key for a client; `owner` is what the key held.
                KeyDeleted = "key_deleted" { key: Name, owner: Name, client: Name }
                /// A lock server dropped a key whose time to live was over; `owner` is what the key held.
                KeyExpired = "key_expired" { key: Name, owner: Option<Name> }
                /// A fair lock server removed a waiter from its queue: its session ended, or it gave up.
                WaiterGone = "waiter_gone" { key: Name, owner: Name, position: Option<u64> }
                /// A lock server went away.
                ServerStopped = "server_stopped" { detail: Option<Name> }
                /// A lock server came up.
                ServerStarted = "server_started" { detail: Option<Name> }
                /// A replica took over.
                ServerPromoted = "server_promoted" { detail: Option<Name> }
            }
            "fault" {
                /// A fault began, or acted once.
                FaultApplied = "fault_applied" {
                    fault: u64, verb: Name, effect: Effect, until: Option<u64>, detail: Name
                }
                /// A fault ended; `fault`, `verb` and `effect` are those of the fault that ended.
                FaultHealed = "fault_healed" { fault: u64, verb: Name, effect: Effect, detail: Name }
                /// From now on, the clocks of the event's process run at `rate`.
                ClockRate = "clock_rate" { rate: u64 }
                /// The event's process died, and all its work with it.
                ProcessCrashed = "process_crashed" { detail: Option<Name> }
            }
            "worker" {
                /// An observer of an election saw a term that was new to it; `owner` is the leader.
                TermObserved = "term_observed" { key: Name, owner: Option<Name>, token: u64 }
                /// A task must run: a tick of a schedule is due, or a queue has stored a job.
                TaskDue = "task_due" { key: Name, task: u64 }
                /// The worker begins to run a task.
                TaskStarted = "task_started" { key: Name, owner: Option<Name>, token: u64, task: u64 }
                /// The worker is about to send the write that commits the task; `seq` is that of the write.
                TaskSent = "task_sent" {
                    key: Name, owner: Option<Name>, token: u64, seq: Option<u64>, task: u64
                }
                /// The worker is done with a task: `done` if its commit was acknowledged, `dead` if it will
                /// not run any more.
                TaskEnded = "task_ended" {
                    key: Name, owner: Option<Name>, token: u64, task: u64, outcome: Option<Name>
                }
                /// The worker found no task left up to this number: all are `done`, or `skipped` by the
                /// policy.
                TasksPassed = "tasks_passed" { key: Name, task: u64, outcome: Option<Name> }
                /// A call of a single-flight begins; it accepts values with a token above `above`.
                FlightStarted = "flight_started" { key: Name, above: u64 }
                /// The call begins to compute, under the lease with this token.
                ComputationStarted = "computation_started" { key: Name, token: u64 }
                /// The computation failed: the result with this token is a failure.
                ComputationFailed = "computation_failed" { key: Name, token: u64 }
                /// The call returned the result with this token, its own or that of another call.
                ResultReturned = "result_returned" { key: Name, token: u64 }
            }
        }
    };
}
