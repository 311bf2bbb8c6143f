//! etcd-client 0.21, by `Client::connect`: a key with a lease.

use common::{Form, KEY, SmallLock, TTL, try_both};
use etcd_client::{Client, Compare, CompareOp, Error, PutOptions, Txn, TxnOp};
use sim::servers::etcd::EtcdHost;

struct Lock {
    client: Client,
    lease: i64,
}

impl SmallLock for Lock {
    type Error = Error;

    async fn acquire(&mut self, owner: &str, _: Form) -> Result<bool, Error> {
        self.lease = self.client.lease_grant(TTL.as_secs().max(1) as i64, None).await?.id();
        let free = Compare::create_revision(KEY, CompareOp::Equal, 0);
        let put = TxnOp::put(KEY, owner, Some(PutOptions::new().with_lease(self.lease)));
        Ok(self.client.txn(Txn::new().when([free]).and_then([put])).await?.succeeded())
    }

    async fn release(&mut self, owner: &str, form: Form) -> Result<(), Error> {
        match form {
            Form::Correct => {
                let own = Compare::value(KEY, CompareOp::Equal, owner);
                self.client.txn(Txn::new().when([own]).and_then([TxnOp::delete(KEY, None)])).await?;
            }
            Form::Wrong => {
                self.client.delete(KEY, None).await?;
            }
        }
        Ok(())
    }
}

async fn connect() -> Result<Lock, Error> {
    Ok(Lock { client: Client::connect(["etcd:2379"], None).await?, lease: 0 })
}

#[test]
fn a_client_carries_a_lock() {
    try_both("etcd_client", "foreign_release", |sim, form| {
        sim.host("etcd", EtcdHost::single("etcd", "http://etcd:2379".to_owned()).lock_key(KEY, KEY))
            .key(KEY)
            .scale(TTL);
        common::contend(sim, form, connect);
    });
}
