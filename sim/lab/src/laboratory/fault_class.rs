//! The classes of faults in the comparison of the systems.

history::names! {
    /// A class of faults.
    pub enum FaultClass as "class of faults" {
        /// A worker is paused, mostly inside its critical section, or a server is.
        Pause = "pause",
        /// A worker or a server is killed, and starts again; the persistence of servers is drawn, too.
        Crash = "crash",
        /// Messages from a worker don't reach some of the lock servers, or those of the servers don't reach
        /// it.
        OneWay = "one-way partition",
        /// A worker is cut off from some of the lock servers, or one member of a cluster from the others.
        Partition = "partition",
        /// The wall clock of a process is set.
        ClockStep = "clock step",
        /// The clocks of a process run fast or slow.
        ClockRate = "clock rate",
        /// A request is carried out, and its reply is lost.
        LostReply = "lost reply",
        /// An asynchronous replica is promoted.
        Failover = "failover",
        /// Another member becomes the leader.
        LeaderChange = "leader change",
    }
}
