//! fred 10.1: a client that connects again by itself.

use common::{Form, KEY, RELEASE, SmallLock, TTL, try_both};
use fred::prelude::*;

struct Lock(Client);

impl SmallLock for Lock {
    type Error = Error;

    async fn acquire(&mut self, owner: &str, _: Form) -> Result<bool, Error> {
        let expires = Expiration::PX(TTL.as_millis() as i64);
        let set: Option<String> = self.0.set(KEY, owner, Some(expires), Some(SetOptions::NX), false).await?;
        Ok(set.is_some())
    }

    async fn release(&mut self, owner: &str, form: Form) -> Result<(), Error> {
        match form {
            Form::Correct => self.0.eval(RELEASE, KEY, owner).await,
            Form::Wrong => self.0.del(KEY).await,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Ends the task of the connection.
        let client = self.0.clone();
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(async move { client.quit().await });
        }
    }
}

async fn connect() -> Result<Lock, Error> {
    let config = Config::from_url("redis://redis:6379")?;
    let client = Builder::from_config(config).set_policy(ReconnectPolicy::new_constant(2, 100)).build()?;
    client.init().await?;
    Ok(Lock(client))
}

#[test]
fn a_client_carries_a_lock() {
    try_both("fred", "foreign_release", |sim, form| common::contend(common::redis(sim), form, connect));
}
