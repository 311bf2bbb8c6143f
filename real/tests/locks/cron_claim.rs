//! The claim of a cron on PostgreSQL may be asked again.

use dlock::Instant;
use fence::cron::{Grant, Seen, Tick, Ticks};
use fence::{OwnerToken, PostgresTicks, ResourceKey, TickStatements};
use real::servers::{Postgres, Stage};
use tokio_postgres::{Client, NoTls, Transaction};

struct Nothing;

impl TickStatements for Nothing {
    async fn run(&mut self, _: &mut Transaction<'_>, _: Tick, _: &[u8]) -> Result<(), tokio_postgres::Error> {
        Ok(())
    }
}

async fn connect(postgres: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A runner whose claim got no answer claims again with the same grant. Only a lower token is refused.
#[tokio::test]
async fn a_claim_on_postgres_may_be_asked_again() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let client = connect(&postgres).await;
    fence::migrate(&client).await.unwrap();
    let mut ticks = PostgresTicks::new(client, Nothing);
    let grant = |token: u64| {
        let owner = OwnerToken::new(&format!("runner-{token}:1234")).unwrap();
        let key = ResourceKey::new("cron:bills").unwrap();
        Grant { key, token: token.to_string().parse().unwrap(), owner: Some(owner) }
    };
    for _ in 0..2 {
        let Seen { last, now_ms } = ticks.claim(&grant(3), Instant::MAX).await.unwrap();
        assert!(last.is_none() && now_ms.is_some(), "{last:?} {now_ms:?}");
    }
    ticks.claim(&grant(5), Instant::MAX).await.unwrap();
    ticks.claim(&grant(3), Instant::MAX).await.unwrap_err();
}
