//! Requests for reading: they need a lock with readers, on a backend that has them.

use crate::support::backend::Fake;
use crate::support::{World, key, ms};
use dlock::{AcquireError, AnyBackend, Lock, Options, OptionsError, Runtime, TryAcquireError, UpgradeError};

fn options() -> Options {
    let mut options = Options::new(ms(2000));
    options.readers = true;
    options
}

#[test]
fn a_lock_without_readers_refuses_them_and_sends_nothing() {
    let world = World::default();
    let fake = Fake::new(&world);
    let lock = Lock::new(fake.clone(), Options::new(ms(2000))).unwrap();
    let deadline = world.now() + ms(1000);
    assert_eq!(world.run(lock.acquire_shared(&key(), deadline)).unwrap_err(), AcquireError::NoReaders);
    let error = world.run(lock.request(&key()).shared().without_token().try_acquire()).unwrap_err();
    assert_eq!(error, TryAcquireError::NoReaders);
    assert!(error.to_string().contains("Options::readers"), "{error}");
    assert!(fake.calls("acquire").is_empty());
}

#[test]
fn a_backend_without_readers_is_refused_by_its_name() {
    let world = World::default();
    for refused in [
        Lock::new(Fake::new(&world), options()).map(drop),
        Lock::new(AnyBackend::new(Fake::new(&world)), options()).map(drop),
    ] {
        assert_eq!(refused.unwrap_err(), OptionsError::NoReaders { system: "fake" });
    }
}

#[test]
fn the_refusal_of_an_upgrade_gives_the_reason() {
    let refused = UpgradeError::Shared.to_string();
    for part in ["wait for each other for ever", "acquire the lock for writing", "read again"] {
        assert!(refused.contains(part), "{refused}");
    }
}
