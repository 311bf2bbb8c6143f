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
    let events = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::registry().with(Collector(events.clone()));
    tracing::subscriber::with_default(subscriber, || {
        run(async {
            let clock = Clock::new();
            let options =
                ServerOptions { observer: Arc::new(LockView::default()), ..ServerOptions::new("redis-1") };
            let server = Server::new(options, clock.clone());
            let mut client = Client::named(&server, "a");
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
    });
    let id = dlock::id_hash("orders:42");
    let expected = [
        "key_granted owner_token_prefix=a:7f3c9e12 fencing_token=1 ttl_millis=2000 client=a",
        "key_extended owner_token_prefix=a:7f3c9e12 ttl_millis=3000 client=a",
        "key_deleted owner_token_prefix=a:7f3c9e12 client=a",
        "key_granted owner_token_prefix=b:01234567 ttl_millis=100 client=a",
        "key_extended owner_token_prefix=b:01234567 ttl_millis=200 client=a",
        "key_expired owner_token_prefix=b:01234567 client=a",
        "key_granted owner_token_prefix=c client=a",
        "key_deleted owner_token_prefix=c client=redis-1 detail=evicted",
    ]
    .map(|line| {
        let (event, rest) = line.split_once(' ').unwrap();
        format!("server event={event} resource_id_hash={id} {rest}")
    });
    assert_eq!(*events.lock().unwrap(), expected);
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
