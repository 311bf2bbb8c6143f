//! The mutants, a row each.

use history::VerdictKind as Verdict;

use super::exhibit::Exhibit;
use super::plain_redlock::Flaw;
use super::scripted::{ByOwner, InOneStep};
use super::{
    abandoned_place, accepts_equal, asynchronous_commit, barging, blind_del, cached_block, check_then_write,
    checked_in_application, client_clock, count_then_queue, counter_after, counter_before, counter_deleted,
    dead_watchdog, early_now, endless_renewal, eternal_permits, eternal_readers, expiry_alone,
    failed_release, failure_kept, forgetful_nodes, forgets_on_restart, header_revision, ignores_version,
    inner_release, late_loss, lease_id_token, lease_is_truth, lock_only_cron, margin_added, no_cleanup,
    no_rollback, no_second_look, old_session_node, one_key, one_permit_more, one_token, overtaking_release,
    patient_dead, pop_and_lose, prefix_deleted, queue_evicts, queue_keeps_dead, reacquire,
    reader_behind_reader, readers_first, reentrant, renew_deadline, renewal_logged, renewal_outlives,
    returns_refused, set_left_out, setnx, shared_scope, shared_token, stale_observer, start_is_record,
    started_at, string_tokens, token_as_value, token_by_get, token_in_memory, two_step, unchecked,
    unchecked_waiter, unordered_keys, upgrade_by_waiting, validity_from_reply, wall_clock,
    write_after_release,
};
use crate::System;

mutants! {
    /// SETNX, then PEXPIRE: a crash between the two leaves a key for ever.
    SetnxThenPexpire = "setnx-then-pexpire", B01 in setnx,
        from "redis-py #554, #818", shows [Verdict::Stuck]
        => Exhibit::redis::<setnx::SetnxThenPexpire>().twin::<InOneStep>().counting(),
    /// A release that is a bare DEL, a renewal that is a bare SET.
    BlindDel = "blind-del", B02 in blind_del,
        from "ShedLock's Redis provider with `safeUpdate` off", shows [Verdict::ForeignRelease]
        => Exhibit::redis::<blind_del::BlindDel>().twin::<ByOwner>(),
    /// One owner token is shared by several tasks.
    SharedToken = "shared-token", B03 in shared_token,
        from "aredis #119", shows [Verdict::ForeignRelease]
        => Exhibit::redis::<shared_token::SharedToken>().twin::<ByOwner>(),
    /// A lost answer counts as "not acquired", and nothing is cleaned up.
    NoCleanup = "no-cleanup", B04 in no_cleanup,
        from "sim (simstudioai) #6864", shows [Verdict::Leaked]
        => Exhibit::redis::<no_cleanup::NoCleanup>(),
    /// A retry is blocked by the keys that the client's own first attempt left.
    OwnKeys = "own-keys", B05 in plain_redlock,
        from "node-redlock #369", shows [Verdict::Leaked]
        => Exhibit::redlock(Flaw::OwnKeys),
    /// The release overtakes the SET that is still on its way on another connection.
    OvertakingRelease = "overtaking-release", B06 in overtaking_release,
        from "redsync", shows [Verdict::Leaked]
        => Exhibit::redis::<overtaking_release::OvertakingRelease>(),
    /// The watchdog stops renewing after a reconnect.
    DeadWatchdog = "dead-watchdog", B08 in dead_watchdog,
        from "Redisson #3194", shows [Verdict::Unheld]
        => Exhibit::redis::<dead_watchdog::DeadWatchdog>(),
    /// The renewal outlives an unlock that failed.
    RenewalOutlives = "renewal-outlives", B09 in renewal_outlives,
        from "Redisson #7272", shows [Verdict::Leaked]
        => Exhibit::redis::<renewal_outlives::RenewalOutlives>(),
    /// The renewal of a lease that has ended acquires the lock again, without an error.
    SilentReacquire = "silent-reacquire", B10 in reacquire,
        from "redis-semaphore #175, redlock-rb #36", shows [Verdict::StaleWrite], found by "own token"
        => Exhibit::redis::<reacquire::SilentReacquire>(),
    /// One node that fails to extend is enough to drop the whole lock.
    OneNodeDrops = "one-node-drops", B11 in plain_redlock,
        from "redsync #149", shows [Verdict::Leaked]
        => Exhibit::redlock(Flaw::OneNodeDrops),
    /// Validity is counted from the receipt of the reply, not from the sending.
    ValidityFromReply = "validity-from-reply", B12 in validity_from_reply,
        from "etcd's client, `client/v3/lease.go`", shows [Verdict::Unheld]
        => Exhibit::redis::<validity_from_reply::ValidityFromReply>()
            .and_redlock(Flaw::ValidityFromReply)
            .and_etcd::<validity_from_reply::ValidityFromReply>(),
    /// A lease that can't be renewed is declared lost after two times to live.
    LateLoss = "late-loss", B13 in late_loss,
        from "microsoft/etcd3 #155", shows [Verdict::Unheld]
        => Exhibit::redis::<late_loss::LateLoss>().and_etcd::<late_loss::LateLoss>(),
    /// A renewal that fails is only logged.
    RenewalLogged = "renewal-logged", B14 in renewal_logged,
        from "Redisson #4698, Consul #18271", shows [Verdict::Unheld]
        => Exhibit::redis::<renewal_logged::RenewalLogged>()
            .and_etcd::<renewal_logged::RenewalLogged>()
            .and_zookeeper::<renewal_logged::RenewalLogged>(),
    /// The drift margin is added to the validity instead of subtracted.
    MarginAdded = "margin-added", B15 in margin_added,
        from "redlock-py #3, redsync #37", shows [Verdict::Unheld]
        => Exhibit::redis::<margin_added::MarginAdded>(),
    /// Nothing checks what is left of a grant's validity when it arrives.
    ValidityUnchecked = "validity-unchecked", B16 in unchecked,
        from "node-redlock #299", shows [Verdict::Unheld]
        => Exhibit::redis::<unchecked::ValidityUnchecked>(),
    /// The time that a request took is measured on the wall clock.
    WallClock = "wall-clock", B17 in wall_clock,
        from "node-redlock", shows [Verdict::Unheld]
        => Exhibit::redis::<wall_clock::WallClock>().and_redlock(Flaw::WallClock),
    /// A bare majority of nodes that keep nothing on a disk: one restarts and votes again.
    ForgetfulNodes = "forgetful-nodes", B18 in forgetful_nodes,
        from "redsync #186", shows [Verdict::TwoValid]
        => Exhibit::deployment(forgetful_nodes::forget).only_on(System::REDLOCK),
    /// Only nodes that are known to have granted are cleaned up.
    KnownNodes = "known-nodes", B19 in plain_redlock,
        from "Redisson #1606", shows [Verdict::Leaked]
        => Exhibit::redlock(Flaw::KnownNodes),
    /// The token is read by a GET of the counter, after the acquire.
    TokenByGet = "token-by-get", B20 in token_by_get,
        from "Redisson's `RFencedLock`", shows [Verdict::StaleWrite], found by "own token"
        => Exhibit::redis::<token_by_get::TokenByGet>(),
    /// A reentrant acquire makes another token, and the outer write is refused.
    Reentrant = "reentrant", B21 in reentrant,
        from "Redisson's `RFencedLock`", shows [], found by "holder accepted"
        => Exhibit::own_worker(reentrant::reentrant, reentrant::shared)
            .only_on(System::REDIS)
            .only_on(System::ETCD)
            .only_on(System::ZOOKEEPER)
            .suited(reentrant::nest_sections),
    /// The counter is deleted with the lock.
    CounterDeleted = "counter-deleted", B22 in counter_deleted,
        from "Redisson's `RFencedLock`", shows [Verdict::TokenRegressed]
        => Exhibit::redis::<counter_deleted::CounterDeleted>(),
    /// The id of the lease is the token.
    LeaseIdToken = "lease-id-token", B23 in lease_id_token,
        from "etcd, `contrib/lock`", shows [Verdict::TokenRegressed]
        => Exhibit::etcd::<lease_id_token::LeaseIdToken>(),
    /// One holder's token is its create revision, another's the revision in a header.
    HeaderRevision = "header-revision", B24 in header_revision,
        from "possible with etcd's `concurrency.Mutex`", shows [], found by "holder accepted"
        => Exhibit::etcd::<header_revision::HeaderRevision>(),
    /// After the wait the waiter's own lease is not checked again.
    UncheckedWaiter = "unchecked-waiter", B25 in unchecked_waiter,
        from "etcd #11456, #9921", shows [Verdict::TwoValid]
        => Exhibit::etcd::<unchecked_waiter::UncheckedWaiter>(),
    /// An unlock without the lock deletes the whole queue.
    PrefixDeleted = "prefix-deleted", B26 in prefix_deleted,
        from "etcd #14704", shows [Verdict::ForeignRelease]
        => Exhibit::etcd::<prefix_deleted::PrefixDeleted>(),
    /// A client takes the node of its old session for its own.
    OldSessionNode = "old-session-node", B28 in old_session_node,
        from "CURATOR-604, CURATOR-696", shows [Verdict::Unheld]
        => Exhibit::own_zookeeper(old_session_node::old_session_node, old_session_node::own_session_node),
    /// Ownership is cleared locally though the deletion failed.
    FailedRelease = "failed-release", B30 in failed_release,
        from "CURATOR-678", shows [Verdict::Leaked]
        => Exhibit::zookeeper::<failed_release::FailedRelease>()
            .and_etcd::<failed_release::FailedRelease>(),
    /// A fair queue evicts live waiters.
    QueueEvicts = "queue-evicts", B31 in queue_evicts,
        from "Redisson #1104", shows [Verdict::ForeignRelease]
        => Exhibit::etcd::<queue_evicts::QueueEvicts>(),
    /// A fair queue keeps waiters that have died.
    QueueKeepsDead = "queue-keeps-dead", B31 in queue_keeps_dead,
        from "Redisson #3004", shows [Verdict::Stuck]
        => Exhibit::etcd::<queue_keeps_dead::QueueKeepsDead>(),
    /// `now` is taken before a pause and used after it.
    EarlyNow = "early-now", B32 in early_now,
        from "ShedLock #132", shows [Verdict::Unheld]
        => Exhibit::redis::<early_now::EarlyNow>().twin::<InOneStep>().counting(),
    /// The resource keeps the highest token in memory, and forgets it when it restarts.
    ForgetsOnRestart = "forgets-on-restart", B33 in forgets_on_restart,
        from "common", shows [Verdict::StaleWrite]
        => Exhibit::resource::<forgets_on_restart::ForgetsOnRestart>(),
    /// The resource checks, then writes, without one transaction.
    CheckThenWrite = "check-then-write", B34 in check_then_write,
        from "common", shows [Verdict::StaleWrite]
        => Exhibit::resource::<check_then_write::CheckThenWrite>(),
    /// The token is checked in the application, not at the store.
    CheckedInApplication = "checked-in-application", B35 in checked_in_application,
        from "common", shows [Verdict::StaleWrite]
        => Exhibit::worker::<checked_in_application::CheckedInApplication>()
            .and_resource::<checked_in_application::CheckedInApplication>(),
    /// One lock key for unrelated resources.
    OneKey = "one-key", B36 in one_key,
        from "common", shows [], found by "own key"
        => Exhibit::worker::<one_key::OneKey>(),
    /// The counter is incremented before `SET NX`: a slow client wins with a smaller token.
    CounterBefore = "counter-before", R01 in counter_before,
        from "recipes that fetch a token by INCR, then take the lock", shows [], found by "holder accepted"
        => Exhibit::redis::<counter_before::CounterBefore>().twin::<InOneStep>().counting(),
    /// The counter is incremented after `SET NX`: a client interrupted between the two has an old token.
    CounterAfter = "counter-after", R02 in counter_after,
        from "recipes that take the lock, then fetch a token by INCR", shows [Verdict::TokenRegressed]
        => Exhibit::redis::<counter_after::CounterAfter>().twin::<InOneStep>().counting(),
    /// A client reserves a block of tokens, and hands them out itself.
    CachedBlock = "cached-block", R23 in cached_block,
        from "hi/lo identifiers; sequences with `CACHE` in PostgreSQL", shows [Verdict::TokenRegressed]
        => Exhibit::shared_counters::<cached_block::CachedBlock>().suited(cached_block::share_counters),
    /// The token is also the value of the lock.
    TokenAsValue = "token-as-value", R03 in token_as_value,
        from "recipes that store the token where the owner belongs", shows [Verdict::ForeignRelease]
        => Exhibit::redis::<token_as_value::TokenAsValue>().twin::<ByOwner>(),
    /// Validity is judged by a start time of the wall clock.
    StartedAt = "started-at", R04 in started_at,
        from "the recipe of SETNX with a timestamp; lock tables with `started_at`", shows [Verdict::TwoValid]
        => Exhibit::redis::<started_at::StartedAt>().counting(),
    /// Each instance of the application checks the token in its own memory only.
    TokenInMemory = "token-in-memory", R05 in token_in_memory,
        from "services that keep the highest token in a field", shows [Verdict::StaleWrite]
        => Exhibit::resource::<token_in_memory::TokenInMemory>(),
    /// A release has no answer, then the first renewal of the next lease has none, which is ignored.
    TwoStep = "two-step", R06 in two_step,
        from "made up, to measure searches", shows [Verdict::Unheld]
        => Exhibit::redis::<two_step::TwoStep>(),
    /// Redlock as published: the largest count of the majority is the token.
    LargestCount = "largest-count", R07 in plain_redlock,
        from "Kleppmann, \"How to do distributed locking\"", shows [Verdict::TokenRegressed]
        => Exhibit::redlock(Flaw::LargestCount),
    /// The lock waits for all nodes instead of a majority: one dead node blocks everybody for good.
    AllNodes = "all-nodes", R10 in plain_redlock,
        from "recipes that take the lock on every node", shows [Verdict::Stuck]
        => Exhibit::redlock(Flaw::AllNodes),
    /// The resource accepts a token equal to the highest from any owner.
    AcceptsEqual = "accepts-equal", R08 in accepts_equal,
        from "common", shows [Verdict::StaleWrite]
        => Exhibit::resource::<accepts_equal::AcceptsEqual>(),
    /// The resource accepts a conditional write with any version.
    IgnoresVersion = "ignores-version", R09 in ignores_version,
        from "common", shows [Verdict::LostUpdate]
        => Exhibit::resource::<ignores_version::IgnoresVersion>(),
    /// The resource compares tokens as text: 10 is below 9.
    StringTokens = "string-tokens", R11 in string_tokens,
        from "common where tokens are kept in a column of text", shows [], found by "holder accepted"
        => Exhibit::resource::<string_tokens::StringTokens>().only_on(System::REDIS),
    /// The watchdog renews as long as its process lives, although the holder has ended without a release.
    EndlessRenewal = "endless-renewal", R12 in endless_renewal,
        from "Redisson's watchdog", shows [Verdict::Stuck]
        => Exhibit::redis::<endless_renewal::EndlessRenewal>(),
    /// A semaphore removes the permits that are over by the clock of the client that asks.
    ClientClock = "client-clock", R14 in client_clock,
        from "redis-semaphore's `Semaphore`; Carlson, \"Redis in Action\", 6.3.1", shows [Verdict::TwoValid]
        => Exhibit::redis::<client_clock::ClientClock>().counting().of_permits(),
    /// A semaphore on a queue grants one permit more than there are.
    OnePermitMore = "one-permit-more", R15 in one_permit_more,
        from "common where those ahead are counted with `<=`", shows [Verdict::TwoValid]
        => Exhibit::etcd::<one_permit_more::OnePermitMore>()
            .and_zookeeper::<one_permit_more::OnePermitMore>()
            .of_permits(),
    /// The worker writes after it has released.
    WriteAfterRelease = "write-after-release", R13 in write_after_release,
        from "common where a write is deferred", shows [Verdict::AfterRelease]
        => Exhibit::worker::<write_after_release::WriteAfterRelease>(),
    /// Several keys are locked in the order of the request: two requests wait for each other.
    UnorderedKeys = "unordered-keys", R16 in unordered_keys,
        from "common where one account pays to another", shows [Verdict::Stuck]
        => Exhibit::worker::<unordered_keys::UnorderedKeys>().suited(unordered_keys::lock_several),
    /// A reader that wants to write waits for the lease for writing, and keeps the one for reading meanwhile.
    UpgradeByWaiting = "upgrade-by-waiting", R27 in upgrade_by_waiting,
        from "Java's `ReentrantReadWriteLock`, whose documentation warns of it", shows [Verdict::Stuck]
        => Exhibit::worker::<upgrade_by_waiting::UpgradeByWaiting>().of_upgrading_readers(),
    /// A leader that can't renew leads until a deadline of its own, which is longer than its lease.
    RenewDeadline = "renew-deadline", R19 in renew_deadline,
        from "elections whose `renewDeadline` is not below `leaseDuration`", shows [Verdict::Unheld]
        => Exhibit::redis::<renew_deadline::RenewDeadline>()
            .and_library_redlock::<renew_deadline::RenewDeadline>()
            .and_etcd::<renew_deadline::RenewDeadline>()
            .and_zookeeper::<renew_deadline::RenewDeadline>()
            .suited(renew_deadline::campaign),
    /// An observer of an election asks several servers, of which one lags, and believes the last answer.
    StaleObserver = "stale-observer", R20 in stale_observer,
        from "reads of any server, as with Consul's `stale`", shows [Verdict::TermRegressed]
        => Exhibit::own_worker(stale_observer::stale, stale_observer::latest)
            .suited(stale_observer::observe),
    /// The leases of readers never end: one that crashes bars writers for ever.
    EternalReaders = "eternal-readers", R17 in eternal_readers,
        from "recipes that count readers with `INCR` and `DECR`", shows [Verdict::Stuck]
        => Exhibit::redis::<eternal_readers::EternalReaders>().counting().of_readers(),
    /// A reader in a queue goes in behind a reader that waits for a writer.
    ReaderBehindReader = "reader-behind-reader", R18 in reader_behind_reader,
        from "common where readers look at the entry ahead", shows [Verdict::TwoValid]
        => Exhibit::etcd::<reader_behind_reader::ReaderBehindReader>()
            .and_zookeeper::<reader_behind_reader::ReaderBehindReader>()
            .of_readers(),
    /// Readers go in while a writer waits: if they keep coming, it is never served.
    ReadersFirst = "readers-first", R30 in readers_first,
        from "Courtois, Heymans, Parnas: the first problem", shows [Verdict::Stuck]
        => Exhibit::redis::<readers_first::ReadersFirst>().counting().of_coming_readers(),
    /// A reentrant lock does not count its sections: the first one to leave releases it.
    InnerRelease = "inner-release", R21 in inner_release,
        from "common where \"acquired already\" is a flag", shows [Verdict::AfterRelease]
        => Exhibit::worker::<inner_release::InnerRelease>().suited(reentrant::nest_sections),
    /// A waiter for a result computes it as soon as it has the lock, and does not look whether it is there.
    NoSecondLook = "no-second-look", R22 in no_second_look,
        from "caches that lock on a miss and do not look again", shows [Verdict::ComputedTwice]
        => Exhibit::worker::<no_second_look::NoSecondLook>().suited(no_second_look::fly),
    /// A cron is guarded by a lock alone: after its release, another machine runs the tick again.
    LockOnlyCron = "lock-only-cron", R24 in lock_only_cron,
        from "ShedLock without `lockAtLeastFor`", shows [Verdict::RanTwice]
        => Exhibit::own_worker(lock_only_cron::lock_only, lock_only_cron::recorded)
            .suited(lock_only_cron::fire),
    /// A waiter counts the queue, and joins it in another request: more wait than may.
    CountThenQueue = "count-then-queue", R25 in count_then_queue,
        from "limits that are checked before they are used: `LLEN`, then `RPUSH`", shows [Verdict::Crowded]
        => Exhibit::redis::<count_then_queue::CountThenQueue>()
            .and_etcd::<count_then_queue::CountThenQueue>()
            .and_zookeeper::<count_then_queue::CountThenQueue>()
            .of_queue(),
    /// A waiter need not ask again to keep its place: one that dies holds up all behind it.
    PatientDead = "patient-dead", R26 in patient_dead,
        from "queues in a list of Redis whose head has the lock", shows [Verdict::Idle, Verdict::Stuck]
        => Exhibit::redis::<patient_dead::PatientDead>().of_long_queue(),
    /// A worker takes a job off the queue before it runs it: if it dies, the job is lost.
    PopAndLose = "pop-and-lose", R31 in pop_and_lose,
        from "`LPOP`; Celery without `acks_late`", shows [Verdict::TaskLost]
        => Exhibit::own_worker(pop_and_lose::pop, pop_and_lose::keep)
            .only_on(System::REDIS)
            .suited(pop_and_lose::work_on_jobs),
    /// The lease of a queue alone says who runs a job: one that is done, and still in the queue, runs again.
    LeaseIsTruth = "lease-is-truth", R32 in lease_is_truth,
        from "consumers of Amazon SQS that keep no record", shows [Verdict::RanTwice]
        => Exhibit::own_worker(lease_is_truth::by_lease, pop_and_lose::keep)
            .only_on(System::REDIS)
            .only_on(System::POSTGRES)
            .suited(pop_and_lose::work_on_jobs),
    /// A waiter takes the lock as soon as it is free, past those that came before it.
    Barging = "barging", R33 in barging,
        from "Lea, on `ReentrantLock` that is not fair", shows [Verdict::Unfair]
        => Exhibit::redis::<barging::LockFirst>()
            .counting()
            .and_stored::<barging::Barging, barging::InTurn>(barging::stored)
            .suited(barging::wait_in_order),
    /// The record of a cron has a tick from its start on: one whose runner does not finish it is lost.
    StartIsRecord = "start-is-record", R34 in start_is_record,
        from "crons that set `last_run` first; Quartz without `requestRecovery`", shows [Verdict::TaskLost]
        => Exhibit::own_worker(start_is_record::at_start, lock_only_cron::recorded)
            .suited(lock_only_cron::fire),
    /// A process returns the result that it computed, although the store has refused it.
    ReturnsRefused = "returns-refused", R35 in returns_refused,
        from "common where the answer to a put is dropped", shows [Verdict::UnstoredResult]
        => Exhibit::worker::<returns_refused::ReturnsRefused>().suited(no_second_look::fly),
    /// Of several keys one is refused, and those that were locked before it stay locked.
    NoRollback = "no-rollback", R36 in no_rollback,
        from "loops over locks that return at the first refusal", shows [Verdict::Leaked]
        => Exhibit::redis::<no_rollback::NoRollback>()
            .and_library_redlock::<no_rollback::NoRollback>()
            .and_etcd::<no_rollback::NoRollback>()
            .and_zookeeper::<no_rollback::NoRollback>()
            .suited(no_rollback::hold_the_second),
    /// The token of the first of several keys is sent with the writes of all.
    OneToken = "one-token", R37 in one_token,
        from "locks of several keys that return one number", shows [], found by "holder accepted"
        => Exhibit::worker::<one_token::OneToken>()
            .only_on(System::REDIS)
            .counting()
            .suited(one_token::lock_two_or_one),
    /// A waiter that gives up leaves its place in the queue behind.
    AbandonedPlace = "abandoned-place", R38 in abandoned_place,
        from "common where only a holder releases", shows [Verdict::Leaked]
        => Exhibit::redis::<abandoned_place::AbandonedPlace>()
            .and_etcd::<abandoned_place::AbandonedPlace>()
            .and_zookeeper::<abandoned_place::AbandonedPlace>()
            .suited(abandoned_place::give_up),
    /// The permits of a semaphore never end: a holder that dies keeps its own for ever.
    EternalPermits = "eternal-permits", R39 in eternal_permits,
        from "recipes that count permits with `INCR` and `DECR`", shows [Verdict::Stuck]
        => Exhibit::redis::<eternal_permits::EternalPermits>().counting().of_permits(),
    /// PostgreSQL acknowledges the commits of jobs before they are on the disk.
    AsynchronousCommit = "asynchronous-commit", R40 in asynchronous_commit,
        from "PostgreSQL with `synchronous_commit = off`", shows [Verdict::RanTwice]
        => Exhibit::own_worker(asynchronous_commit::asynchronous, pop_and_lose::keep)
            .only_on(System::POSTGRES)
            .suited(pop_and_lose::work_on_jobs),
    /// All requests of a process share one scope of a reentrant lock: two are inside at once.
    SharedScope = "shared-scope", R41 in shared_scope,
        from "reentrant locks whose owner is the process or the thread", shows [Verdict::Overlap],
        found by "one request a lease"
        => Exhibit::own_worker(shared_scope::shared, shared_scope::own).suited(reentrant::nest_sections),
    /// A result counts until it expires, though its caller knows that it is out of date.
    ExpiryAlone = "expiry-alone", R42 in expiry_alone,
        from "caches with a time to live and nothing else", shows [Verdict::OldResult]
        => Exhibit::worker::<expiry_alone::ExpiryAlone>().suited(no_second_look::fly),
    /// A failure is kept as a value is: later calls get it, and nobody computes again.
    FailureKept = "failure-kept", R43 in failure_kept,
        from "caches that keep a rejected promise", shows [Verdict::OldResult]
        => Exhibit::worker::<failure_kept::FailureKept>().suited(failure_kept::fail_first),
    /// The holder of a permit sends its token without the set of the permits beside it.
    SetLeftOut = "set-left-out", R44 in set_left_out,
        from "fenced resources that were built for mutexes", shows [], found by "holder accepted"
        => Exhibit::worker::<set_left_out::SetLeftOut>()
            .only_on(System::REDIS)
            .only_on(System::ETCD)
            .only_on(System::ZOOKEEPER)
            .of_permits(),
}
