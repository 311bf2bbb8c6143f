//! The points in the protocol at which a fault may be aimed.

history::names! {
    /// A step that a process has just taken. The kind of a process determines its points: [`Point::of`].
    pub enum Point as "point" {
        /// Worker: `acquire` was called.
        Requested = "requested",
        /// Worker: `acquire` returned a handle. Lock server: a lease was granted.
        Granted = "granted",
        /// Worker: `acquire` gave up.
        NotGranted = "not-granted",
        /// Worker: it is inside its critical section.
        Entered = "entered",
        /// Worker: it has the answer to its read of the resource. Resource: it served a read that claims
        /// nothing.
        Read = "read",
        /// Worker: its work is done, its writes are still to come.
        Worked = "worked",
        /// Worker: it looked at its lease and found it valid; the write comes next.
        Checked = "checked",
        /// Worker: the write was handed to the network.
        Sent = "sent",
        /// Worker: the answer to a write has arrived, or the client has given up on it.
        Answered = "answered",
        /// Worker: `release` was called.
        ReleaseRequested = "release-requested",
        /// Worker: `release` returned.
        Released = "released",
        /// Worker: its lease was renewed.
        Renewed = "renewed",
        /// Worker: it learned that its lease is lost.
        Lost = "lost",
        /// Lock server: a lease was extended.
        Extended = "extended",
        /// Lock server: a lease expired.
        Expired = "expired",
        /// Lock server: a lease was deleted by a client.
        Deleted = "deleted",
        /// Resource: a write was accepted, durably if the store is durable; its answer is still to be sent.
        /// PostgreSQL: the row of a tick's or a job's effect is committed.
        Accepted = "accepted",
        /// Resource: a repeated write was recognised; its first answer is about to be sent again.
        Repeated = "repeated",
        /// Resource: a write was refused.
        Rejected = "rejected",
        /// Resource: a fenced read has claimed its token.
        Claimed = "claimed",
        /// Redis: it has executed the command; the reply is still to be sent. The same holds for all points
        /// below.
        Get = "GET",
        /// Redis, as [`Point::Get`].
        Set = "SET",
        /// Redis, as [`Point::Get`].
        Del = "DEL",
        /// Redis, as [`Point::Get`].
        Exists = "EXISTS",
        /// Redis, as [`Point::Get`].
        Expire = "EXPIRE",
        /// Redis, as [`Point::Get`].
        Pexpire = "PEXPIRE",
        /// Redis, as [`Point::Get`].
        Ttl = "TTL",
        /// Redis, as [`Point::Get`].
        Pttl = "PTTL",
        /// Redis, as [`Point::Get`].
        Incr = "INCR",
        /// Redis, as [`Point::Get`].
        IncrBy = "INCRBY",
        /// Redis, as [`Point::Get`].
        Time = "TIME",
        /// Redis, as [`Point::Get`].
        Ping = "PING",
        /// Redis, as [`Point::Get`].
        Info = "INFO",
        /// Redis, as [`Point::Get`].
        Hello = "HELLO",
        /// Redis, as [`Point::Get`].
        Client = "CLIENT",
        /// Redis, as [`Point::Get`].
        Eval = "EVAL",
        /// Redis, as [`Point::Get`].
        EvalSha = "EVALSHA",
        /// Redis, as [`Point::Get`].
        Script = "SCRIPT",
    }
}

history::names! {
    /// The kind of a process in a schedule.
    pub enum ProcessKind as "kind of process" {
        /// It acquires the lock and writes to the resource.
        Worker = "worker",
        /// A Redis primary.
        Redis = "redis",
        /// A Redis replica, until it is promoted.
        Replica = "replica",
        /// A member of an etcd cluster.
        Etcd = "etcd",
        /// A member of a ZooKeeper ensemble.
        ZooKeeper = "zookeeper",
        /// A lock server of any other system.
        Server = "server",
        /// The PostgreSQL server, which has the record of a cron or the job queue.
        Postgres = "postgres",
        /// The protected resource.
        Resource = "resource",
    }
}

impl Point {
    /// Returns the points of a process of this kind.
    pub fn of(kind: ProcessKind) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |point| point.applies_to(kind))
    }

    /// Returns true if a process of this kind has the point.
    pub fn applies_to(self, kind: ProcessKind) -> bool {
        match kind {
            ProcessKind::Worker => self <= Self::Lost,
            ProcessKind::Postgres => self == Self::Accepted,
            ProcessKind::Resource => self == Self::Read || (Self::Accepted..=Self::Claimed).contains(&self),
            ProcessKind::Redis | ProcessKind::Replica => self.is_lease_event() || self.is_command(),
            ProcessKind::Etcd | ProcessKind::ZooKeeper | ProcessKind::Server => self.is_lease_event(),
        }
    }

    /// Returns true if the point is the execution of a Redis command.
    pub fn is_command(self) -> bool {
        self >= Self::Get
    }

    /// Returns true if the point is an event of a lease on a lock server.
    fn is_lease_event(self) -> bool {
        self == Self::Granted || (Self::Extended..=Self::Deleted).contains(&self)
    }
}

impl AsRef<str> for Point {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl ProcessKind {
    /// Returns true if a process of this kind is a lock server.
    pub fn is_server(self) -> bool {
        !matches!(self, Self::Worker | Self::Resource | Self::Postgres)
    }

    /// Returns the noun for a process of this kind, with its article.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Worker => "a worker",
            Self::Redis => "a Redis server",
            Self::Replica => "a Redis replica",
            Self::Etcd => "an etcd member",
            Self::ZooKeeper => "a ZooKeeper server",
            Self::Server => "a lock server",
            Self::Postgres => "the PostgreSQL server",
            Self::Resource => "the resource",
        }
    }
}
