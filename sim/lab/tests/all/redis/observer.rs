//! Observers receive every effect once, in order; `LockView` emits them in the vocabulary of histories.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use super::support::{Client, Clock, Diary, run};
use sim::servers::redis::{LockView, Server, ServerOptions};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

const ACQUIRE: &str = "
    if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
      return redis.call('INCR', KEYS[2])
    end
    return 0";

#[test]
fn observers_receive_effects_before_commands_and_see_inside_scripts() {
    run(async {
        let diary = Arc::new(Diary::default());
        let options = ServerOptions { observer: diary.clone(), ..ServerOptions::new("redis") };
        let server = Server::new(options, Clock::new());
        let mut client = Client::named(&server, "a");
        client.call_words(&["EVAL", ACQUIRE, "2", "owner", "fence", "x", "100"]).await;
        client.call("GET owner").await;
        client.call("NOPE").await;
        client.call("GET").await;
        assert_eq!(
            diary.take(),
            [
                "a: set owner x",
                "a: counted fence by 1 to 1",
                "a: executed eval",
                "a: executed set",
                "a: executed incr",
                "a: executed get",
            ]
        );
        assert_eq!(server.executed(), 4);
    });
}

#[test]
fn the_life_of_a_lock_is_emitted_as_events() {
    let events = events_of(LockView::default(), "orders:42", async |server, clock| {
        let mut client = Client::named(server, "a");
        let key = dlock::LockKey::new("orders", "42").unwrap();
        let (owner, fence) = (key.owner_key(), key.fence_key());
        let token = "a:7f3c9e127f3c9e12";
        client.call_words(&["EVAL", ACQUIRE, "2", &owner, &fence, token, "2000"]).await;
        client.call(&format!("PEXPIRE {owner} 3000")).await;
        client.call(&format!("DEL {owner}")).await;
        client.call(&format!("SET {owner} b:0123456789abcdef PX 100")).await;
        client.call(&format!("SET {owner} b:0123456789abcdef PX 200")).await;
        clock.advance_ms(300).await;
        client.call(&format!("GET {owner}")).await;
        client.call(&format!("SET {owner} c")).await;
        server.evict(owner.as_bytes());
        client.call("SET other:key 1").await;
        client.call("SET lock:v1:{orders:42}:queue 1").await;
    });
    let expected = [
        "key_granted owner_token_prefix=a:7f3c9e12 fencing_token=1 ttl_millis=2000 client=a",
        "key_extended owner_token_prefix=a:7f3c9e12 ttl_millis=3000 client=a",
        "key_deleted owner_token_prefix=a:7f3c9e12 client=a",
        "key_granted owner_token_prefix=b:01234567 ttl_millis=100 client=a",
        "key_extended owner_token_prefix=b:01234567 ttl_millis=200 client=a",
        "key_expired owner_token_prefix=b:01234567 client=a",
        "key_granted owner_token_prefix=c client=a",
        "key_deleted owner_token_prefix=c client=redis-1 detail=evicted",
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_fields_of_a_hash_are_the_owners_of_a_lock() {
    let mut view = LockView::default();
    view.add("k", "orders:42");
    let events = events_of(view, "orders:42", async |server, clock| {
        let mut client = Client::named(server, "c");
        // Redisson's scripts, where ARGV[1] is the TTL and ARGV[2] the owner.
        let enter = "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1])";
        let leave = "
            if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then return 0 end
            redis.call('del', KEYS[1])";
        for script in [enter, enter, leave, leave] {
            client.call_words(&["EVAL", script, "1", "k", "2000", "a:1"]).await;
        }
        // A lock for readers and a writer has its mode beside its owners. An expiry that is set extends the
        // owners that the script named; of the others nothing is known.
        client.call("HSET k mode read b:1 1").await;
        client.call("PEXPIRE k 300").await;
        let mut other = Client::named(server, "d");
        other.call_words(&["EVAL", enter, "1", "k", "300", "b:2"]).await;
        client.call("PEXPIRE k 300").await;
        client.call("HDEL k b:1").await;
        clock.advance_ms(400).await;
        client.call("EXISTS k").await;
        // Without a check, a release may leave a number below zero: the next acquire is no grant.
        client.call("HINCRBY k d:1 -1").await;
        client.call("HINCRBY k d:1 1").await;
        client.call("HINCRBY k d:1 1").await;
        // Granted and ended at once.
        client.call_words(&["EVAL", &format!("{enter} {leave}"), "1", "k", "300", "f:1"]).await;
        client.call("SET k e:1").await;
        client.call("HSET other a:1 1").await;
    });
    let expected = [
        "key_granted owner_token_prefix=a:1 ttl_millis=2000 client=c",
        "key_extended owner_token_prefix=a:1 ttl_millis=2000 client=c",
        "key_deleted owner_token_prefix=a:1 client=c",
        "key_granted owner_token_prefix=b:1 client=c",
        "key_extended owner_token_prefix=b:1 ttl_millis=300 client=c",
        "key_granted owner_token_prefix=b:2 ttl_millis=300 client=d",
        "key_deleted owner_token_prefix=b:1 client=c",
        "key_expired owner_token_prefix=b:2 client=c",
        "key_granted owner_token_prefix=d:1 client=c",
        "key_granted owner_token_prefix=f:1 ttl_millis=300 client=c",
        "key_deleted owner_token_prefix=f:1 client=c",
        "key_deleted owner_token_prefix=d:1 client=c",
        "key_granted owner_token_prefix=e:1 client=c",
    ];
    assert_eq!(events, expected);
}

/// Runs `work` with a server that `view` observes; returns the events of the lock called `name`. There are no
/// others.
fn events_of(view: LockView, name: &str, work: impl AsyncFnOnce(&Server<Clock>, &Clock)) -> Vec<String> {
    let events = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::registry().with(Collector(events.clone()));
    tracing::subscriber::with_default(subscriber, || {
        run(async {
            let clock = Clock::new();
            let options = ServerOptions { observer: Arc::new(view), ..ServerOptions::new("redis-1") };
            let server = Server::new(options, clock.clone());
            work(&server, &clock).await;
        });
    });
    let place = format!(" resource_id_hash={}", dlock::id_hash(name));
    let events = events.lock().unwrap();
    let events = events.iter().map(|line| {
        assert!(line.contains(&place), "{line}");
        line.replace(&place, "").replace("server event=", "")
    });
    events.collect()
}

/// Records events as `target field=value …`.
struct Collector(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl<S: tracing::Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, " {field}={value}").unwrap();
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}
