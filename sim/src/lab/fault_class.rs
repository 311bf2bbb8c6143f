//! The classes of faults that the systems are compared under.

use crate::names::names;

names! {
    /// A class of faults.
    pub enum FaultClass as "class of faults" {
        /// A worker stops, mostly inside its critical section, or a server does.
        Pause = "pause",
        /// A worker or a server is killed, and starts again; what servers keep on disk is drawn, too.
        Crash = "crash",
        /// What a worker says does not reach a lock server, or the other way round.
        OneWay = "one-way partition",
        /// A worker is parted from some of the lock servers, or of the members of a cluster one from the
        /// others.
        Partition = "partition",
        /// The wall clock of a process is set.
        ClockStep = "clock step",
        /// The clocks of a process run fast or slow.
        ClockRate = "clock rate",
        /// A request is carried out, and its reply is lost.
        LostReply = "lost reply",
        /// An asynchronous replica takes over.
        Failover = "failover",
        /// Another member leads.
        LeaderChange = "leader change",
    }
}
