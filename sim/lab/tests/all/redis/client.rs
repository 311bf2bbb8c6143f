//! The `redis` crate, which production uses, on a connection to the simulated server.
#![allow(clippy::disallowed_methods, reason = "a test")]

use super::support::{Clock, connect, run, server};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo};
use sim::servers::redis::Server;

async fn open(server: &Server<Clock>) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let stream = connect(server, "client");
    let info = RedisConnectionInfo::default();
    let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await.unwrap();
    tokio::spawn(driver);
    connection
}

#[test]
fn the_redis_crate_runs_scripts_by_their_digest() {
    run(async {
        let clock = Clock::new();
        let server = server(&clock);
        let mut connection = open(&server).await;
        let script = redis::Script::new(
            "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
               return {1, redis.call('INCR', KEYS[2])}
             end
             return {0, redis.call('PTTL', KEYS[1])}",
        );
        let mut acquire = script.prepare_invoke();
        acquire.key("owner").key("fence").arg("a").arg(2000);
        for answer in [(1, 1), (0, 2000)] {
            assert_eq!(acquire.invoke_async::<(i64, i64)>(&mut connection).await.unwrap(), answer);
        }
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection).await.unwrap();
        let error = redis::cmd("EVALSHA")
            .arg(script.get_hash())
            .arg(0)
            .query_async::<redis::Value>(&mut connection)
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some("NOSCRIPT"));
    });
}

#[test]
fn many_requests_share_one_connection() {
    run(async {
        let server = server(&Clock::new());
        let connection = open(&server).await;
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let mut connection = connection.clone();
                tokio::spawn(async move {
                    redis::cmd("INCR").arg("n").query_async::<u64>(&mut connection).await.unwrap()
                })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers.sort_unstable();
        assert_eq!(answers, (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn errors_keep_their_codes() {
    run(async {
        let mut connection = open(&server(&Clock::new())).await;
        let mut unknown = redis::cmd("NOPE");
        let error = unknown.arg("x").exec_async(&mut connection).await.unwrap_err();
        assert_eq!(error.code(), Some("ERR"));
        assert!(
            error.to_string().contains("unknown command 'NOPE', with args beginning with: 'x'"),
            "{error}"
        );
    });
}
