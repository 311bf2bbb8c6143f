//! A search that has checked nothing fails, and says what was missing.

use std::time::Duration;

use redis::AsyncCommands;
use sim::servers::etcd::EtcdHost;
use sim::servers::redis::RedisHost;
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::{Process, Search, Sim, Subject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Returns the error of a search that must find no failure.
fn error<S: Subject>(search: Search<S>) -> String {
    search.schedules(5).find().expect_err("the search has checked nothing")
}

/// Takes a lock by a command that the server may not know, and drops the error, as careless code does.
async fn careless(process: Process) {
    let Ok(mut redis) = sim::clients::redis(&process, "redis:6379").await else { return };
    let taken: Result<bool, _> = redis::cmd("PFADD").arg("k").arg("f").query_async(&mut redis).await;
    if taken.is_ok() {
        process.point("working");
    }
}

#[test]
fn processes_that_swallow_the_errors_of_a_server_are_reported() {
    let world = |sim: &mut Sim| {
        sim.service("redis", |process: Process| async move {
            let Ok(mut listener) = process.listen(6379) else { return };
            loop {
                let (mut stream, _) = listener.accept().await;
                process.spawn(async move {
                    let mut bytes = [0; 1024];
                    while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                        let _ = stream.write_all(b"-ERR unknown command\r\n").await;
                    }
                });
            }
        });
        sim.process("a", careless);
    };
    let problem = error(sim::check("swallows", world));
    assert!(problem.contains("no process entered a section or passed a point"), "{problem}");
    assert!(sim::check("swallows", world).schedules(5).allow_idle_processes().find().unwrap().is_none());
}

#[test]
fn an_unknown_command_is_reported_by_its_name_and_server() {
    let world = |sim: &mut Sim| {
        sim.host("redis", RedisHost::new()).process("a", |process: Process| async move {
            process.point("begins");
            careless(process).await;
        });
    };
    let problem = error(sim::check("unknown", world));
    assert!(problem.contains("redis refused `PFADD` as unknown"), "{problem}");
    assert!(problem.contains("allow_unknown_commands"), "{problem}");
    assert!(sim::check("unknown", world).schedules(5).allow_unknown_commands().find().unwrap().is_none());
}

#[test]
fn an_unknown_command_inside_a_script_is_reported() {
    let world = |sim: &mut Sim| {
        sim.host("redis", RedisHost::new()).process("a", |process: Process| async move {
            let Ok(mut redis) = sim::clients::redis(&process, "redis:6379").await else { return };
            let script = "return redis.pcall('PFADD', 'k', 'f') and 1";
            let _: Result<u8, _> = redis::cmd("EVAL").arg(script).arg(0).query_async(&mut redis).await;
            process.point("working");
        });
    };
    let problem = error(sim::check("script", world));
    assert!(problem.contains("redis refused `PFADD` as unknown"), "{problem}");
}

#[test]
fn an_unknown_call_of_etcd_is_reported() {
    let world = |sim: &mut Sim| {
        let etcd = EtcdHost::single("etcd", "http://etcd:2379".to_owned());
        sim.host("etcd", etcd).process("a", |process: Process| async move {
            let Ok(mut etcd) = sim::clients::etcd(&process, "etcd:2379").await else { return };
            process.point("begins");
            let _ = etcd.role_add("admin").await;
        });
    };
    let problem = error(sim::check("roles", world));
    assert!(problem.contains("etcd refused `etcdserverpb.Auth/RoleAdd` as unknown"), "{problem}");
}

/// The client of this repository sends no operation that the simulated server lacks, so this is another's: it
/// opens a session and sends operation 99.
#[test]
fn an_unknown_operation_of_zookeeper_is_reported() {
    let world = |sim: &mut Sim| {
        let zookeeper = ZooKeeperHost::first(EnsembleOptions::new(["zookeeper"]));
        sim.host("zookeeper", zookeeper).process("a", |process: Process| async move {
            process.point("begins");
            let Ok(mut stream) = process.connect("zookeeper:2181").await else { return };
            let mut connect = vec![0; 48];
            // The length, a timeout of 10 s, and the length of the password.
            (connect[3], connect[31]) = (44, 16);
            connect[18..20].copy_from_slice(&10_000_u16.to_be_bytes());
            let _ = stream.write_all(&connect).await;
            let mut answer = [0; 64];
            let _ = stream.read(&mut answer).await;
            let _ = stream.write_all(&[0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 99]).await;
            let _ = stream.read(&mut answer).await;
        });
    };
    let problem = error(sim::check("operation", world));
    assert!(problem.contains("zookeeper refused `operation 99` as unknown"), "{problem}");
}

#[test]
fn a_search_of_no_schedules_is_an_error() {
    let search = sim::check("none", guarded("account:7")).schedules(0);
    let problem = search.find().expect_err("nothing was checked");
    assert!(problem.contains("a search of 0 schedules checks nothing"), "{problem}");
}

#[test]
fn a_world_without_processes_is_reported() {
    let problem = error(sim::check("nobody", |sim: &mut Sim| {
        sim.host("redis", RedisHost::new());
    }));
    assert!(problem.contains("either the world has no process"), "{problem}");
}

/// Builds a world whose server knows the lock `account:7`, and whose process enters `section`.
fn guarded(section: &'static str) -> impl Fn(&mut Sim) + Sync {
    move |sim: &mut Sim| {
        let redis = RedisHost::new().lock_key("account-7", "account:7");
        sim.host("redis", redis).key("account:7").process("a", move |process: Process| async move {
            let Ok(mut redis) = sim::clients::redis(&process, "redis:6379").await else { return };
            if redis.set_ex::<_, _, ()>("account-7", process.name(), 1).await.is_ok() {
                let _section = process.section(section);
                process.sleep(Duration::from_millis(10)).await;
            }
        });
    }
}

#[test]
fn a_section_under_a_wrong_name_is_reported_beside_the_right_one() {
    let problem = error(sim::check("typo", guarded("acount:7")));
    assert!(problem.contains("section `acount:7` matches no lock"), "{problem}");
    assert!(problem.contains("granted were: `account:7`"), "{problem}");
    let search = sim::check("typo", guarded("acount:7")).schedules(5).allow_unmatched("acount:7");
    assert!(search.find().unwrap().is_none());
}

#[test]
fn a_key_that_matches_no_lock_is_reported() {
    let world = |sim: &mut Sim| {
        guarded("account:7")(sim);
        sim.key("account:8");
    };
    let problem = error(sim::check("key", world));
    assert!(problem.contains("key `account:8` matches no lock"), "{problem}");
    assert!(!problem.contains("key `account:7`"), "{problem}");
}

#[test]
fn a_search_says_what_it_has_exercised() {
    let (failure, exercised) = sim::check("right", guarded("account:7")).schedules(5).explored().unwrap();
    assert!(failure.is_none());
    assert_eq!(exercised.runs(), 6, "five schedules, and the run without faults");
    assert!(exercised.sections()["account:7"] > 0 && exercised.grants()["account:7"] > 0, "{exercised}");
    assert!(exercised.commands()["redis"] > 0 && exercised.unknown_commands().is_empty(), "{exercised}");
    assert!(exercised.to_string().contains("sections entered: account:7 ("), "{exercised}");
}
