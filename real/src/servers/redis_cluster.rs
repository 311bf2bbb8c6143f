//! A Redis Cluster of three primaries.

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::ready::await_ready;
use super::redis::{Redis, command};

/// The slots of each member, as `redis-cli --cluster create` assigns them.
const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// Three Redis primaries that share the keys.
#[derive(Debug)]
pub struct RedisCluster {
    /// The members, in the order of their slots.
    pub members: Vec<Redis>,
}

impl RedisCluster {
    /// Starts the cluster on free ports and waits until every member reports it complete.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        on_free_ports(|| Self::on_ports(stage, free()?, free()?))
    }

    fn on_ports(stage: &Stage, ports: [u16; 3], buses: [u16; 3]) -> Result<Self, ServerError> {
        let mut members = Vec::with_capacity(3);
        for n in 0..3 {
            let bus = buses[n].to_string();
            let more = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", &bus];
            let more = [&more[..], &["--cluster-require-full-coverage", "no"]].concat();
            members.push(Redis::launch(stage, &format!("cluster-{}", n + 1), ports[n], &more)?);
        }
        for (n, (member, (first, last))) in members.iter().zip(SLOTS).enumerate() {
            member.order(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
            member.order(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1))?;
        }
        for n in 1..3 {
            members[0].order(&format!("CLUSTER MEET 127.0.0.1 {} {}", ports[n], buses[n]))?;
        }
        for member in &mut members {
            let port = member.port();
            await_ready(member.process(), port, || is_whole(port))?;
        }
        Ok(Self { members })
    }
}

fn is_whole(port: u16) -> bool {
    let whole = |info: String| info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384");
    command(port, "CLUSTER INFO").is_ok_and(whole)
}
