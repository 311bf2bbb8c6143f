//! A cluster whose members are processes of a simulated world.

use std::future::Future;

use dlock::{Instant, Runtime};

use super::{Cluster, ClusterOptions, EtcdWorld};
use crate::world::World;
use crate::world::process::ProcessId;
use crate::world::runtime::SimRuntime;

/// The port of every member.
const PORT: u16 = 2379;

/// Processes as members: their clocks, the links between them, whether they run.
pub struct SimMembers {
    world: World,
    members: Vec<(ProcessId, SimRuntime)>,
}

impl SimMembers {
    /// The processes `ids`, as the members 0, 1, 2…
    pub fn new(world: &World, ids: &[ProcessId]) -> Self {
        let members = ids.iter().map(|&id| (id, SimRuntime::new(world, id))).collect();
        Self { world: world.clone(), members }
    }

    /// Options that name the members as the processes are named.
    pub fn options(&self, name: &str) -> ClusterOptions {
        let names: Vec<_> = self.members.iter().map(|(id, _)| self.world.process(*id).name()).collect();
        ClusterOptions::new(name, &names)
    }

    fn is_running(&self, member: usize) -> bool {
        let process = self.world.process(self.members[member].0);
        process.is_alive() && !process.is_paused()
    }
}

impl EtcdWorld for SimMembers {
    fn now_nanos(&self, member: usize) -> u64 {
        self.members[member].1.now().as_nanos()
    }

    fn sleep_until(&self, member: usize, nanos: u64) -> impl Future<Output = ()> + Send {
        self.members[member].1.sleep_until(Instant::from_nanos(nanos))
    }

    fn spawn(&self, member: usize, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(self.members[member].0, task);
    }

    fn delivers(&self, from: usize, to: usize) -> bool {
        let is_open = from == to || self.world.is_open(self.members[from].0, self.members[to].0);
        is_open && self.is_running(from) && self.is_running(to)
    }
}

impl Cluster<SimMembers> {
    /// A member's process: it listens on `name:2379`, serves whoever connects, and does what members do. To be spawned on
    /// the process, anew after each restart.
    pub async fn member_main(self, member: usize) {
        let SimMembers { world, members } = &self.shared.world;
        let id = members[member].0;
        let address = format!("{}:{PORT}", world.process(id).name());
        // Somebody else listens there: a second start of the same member.
        let Ok(mut listener) = world.listen(id, &address) else { return };
        let ticking = self.clone();
        world.spawn(id, async move { ticking.run_member(member).await });
        loop {
            let (stream, client) = listener.accept().await;
            let cluster = self.clone();
            world.spawn(id, async move { cluster.serve_connection(member, stream, &client).await });
        }
    }
}
