//! Short texts from users: URLs of lock servers, lengths of time, shifts of clocks, shards of a search, keys,
//! bearer tokens.
//!
//! Input: a text.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use dlock::{AnyBackend, ConnectOptions, FencingToken, LockKey, Options};
use history::{Span, WriteBy};
use resource::ResourceKey;
use resource::bearer::BearerTokens;
use sim::Shift;
use sim::explore::fleet::Shard;

use crate::machine::Local;
use crate::world::Executor;

/// A password that no input contains by chance.
const SECRET: &str = "s3cr3t-Zq8";

/// Asserts that a value is written as a text that reads the same, and that no error shows a password or a
/// token.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    reads_back::<Span>(text);
    reads_back::<Shift>(text);
    reads_back::<Shard>(text);
    reads_back::<WriteBy>(text);
    reads_back::<FencingToken>(text);
    if let Ok(key) = ResourceKey::from_path_segment(text) {
        assert_eq!(ResourceKey::from_path_segment(&key.to_path_segment().to_string()), Ok(key));
    }
    key(text);
    bearer(text);
    connect(text);
    if let Some((scheme, rest)) = text.split_once("://") {
        connect(&format!("{scheme}://user:{SECRET}@{rest}"));
        connect(&format!("{scheme}://{SECRET}@{rest}"));
    }
}

fn reads_back<T: FromStr + Display + PartialEq + std::fmt::Debug>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string().parse::<T>().ok(), Some(read));
    }
}

fn key(text: &str) {
    let (kind, id) = text.split_once(':').unwrap_or(("orders", text));
    if let Ok(key) = LockKey::new(kind, id) {
        let stored = key.owner_key();
        assert!(LockKey::split_stored(&stored).is_some(), "`{stored}` is no stored key");
    }
}

fn bearer(text: &str) {
    if let Err(error) = BearerTokens::parse(&format!("{text}\n{SECRET}")) {
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
}

/// Makes the client that `url` names. It sends nothing.
fn connect(url: &str) {
    // The certificates of the system are of no interest here, and take a millisecond to read.
    if url.split_once("://").is_some_and(|(scheme, _)| matches!(scheme, "rediss" | "etcds" | "zookeepers")) {
        return;
    }
    let executor = Executor::new();
    let options = Options::new(Duration::from_secs(2));
    let runtime = Local::new(executor.world());
    if let Err(error) = AnyBackend::from_url(runtime, url, &options, &ConnectOptions::default()) {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(SECRET), "{shown}");
    }
}
