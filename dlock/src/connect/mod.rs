//! Locks on the servers that a URL names.

mod error;
mod options;
mod url;

use dlock_runtime::Runtime;

pub use self::error::ConnectError;
pub use self::options::ConnectOptions;
use self::url::Scheme;
pub use self::url::{ServerUrl, UrlError};
use crate::any::AnyBackend;
use crate::options::Options;

impl<R: Runtime> AnyBackend<R> {
    /// Creates a client of the servers that `url` names, for leases of `options.ttl`. Sends nothing yet.
    ///
    /// | URL | lock servers |
    /// |---|---|
    /// | `redis://user:password@host:6379/0` | one Redis; login, port and database may be left out |
    /// | `redis://one,two,three` | a majority of several Redis (Redlock), at least three |
    /// | `unix:///run/redis.sock?db=0` | one Redis, by a socket of this machine |
    /// | `etcd://user:password@one:2379,two:2379` | an etcd cluster |
    /// | `zookeeper://user:password@one:2181,two:2181/path` | a ZooKeeper ensemble; all nodes are below the path |
    ///
    /// `rediss://`, `etcds://` and `zookeepers://` (port 2281) are the same over TLS. In user, password and
    /// path, `/`, `?`, `#`, `@` and `%` are written as `%` and two hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], before anything is sent.
    pub fn from_url(
        runtime: R,
        url: &str,
        options: &Options,
        servers: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let url = ServerUrl::parse(url)?;
        if !url.scheme.is_tls() {
            return client(runtime, &url, options, servers);
        }
        secured(runtime, &url, options, servers)
    }
}

/// Creates the client over TLS.
#[cfg(feature = "tls")]
fn secured<R: Runtime>(
    runtime: R,
    url: &ServerUrl,
    options: &Options,
    servers: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    use dlock_runtime::tls::{Tls, TlsConnector};

    let connector = TlsConnector::new(&servers.tls)?;
    // The servers of etcd refuse a client that does not ask for HTTP/2.
    let connector = if url.scheme == Scheme::EtcdTls { connector.with_protocol("h2") } else { connector };
    let backend = client(Tls::new(runtime, connector), url, options, servers)?;
    Ok(AnyBackend::new(crate::secured::Secured(backend)))
}

#[cfg(not(feature = "tls"))]
fn secured<R: Runtime>(
    _: R,
    url: &ServerUrl,
    _: &Options,
    _: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    Err(ConnectError::NoFeature { scheme: url.scheme.name(), feature: "tls" })
}

/// Creates the client of the servers, whose streams `runtime` opens as the URL says.
fn client<R: Runtime>(
    runtime: R,
    url: &ServerUrl,
    options: &Options,
    servers: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    match url.scheme {
        Scheme::Redis | Scheme::RedisTls | Scheme::Unix => redis(runtime, url, servers),
        Scheme::Etcd | Scheme::EtcdTls => etcd(runtime, url, options, servers),
        Scheme::ZooKeeper | Scheme::ZooKeeperTls => zookeeper(runtime, url, options, servers),
    }
}

#[cfg(feature = "redis")]
fn redis<R: Runtime>(
    runtime: R,
    url: &ServerUrl,
    servers: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    use crate::redis::{Redis, RedisOptions};
    use crate::redlock::{Redlock, RedlockOptions};

    let (username, password) = url.login.clone().unwrap_or_default();
    let given = |text: String| if text.is_empty() { None } else { Some(text) };
    let (username, password) = (given(username), given(password));
    let database = url.database.unwrap_or_default();
    Ok(match &url.addresses[..] {
        [address] => {
            let mut options = RedisOptions { username, password, database, ..RedisOptions::default() };
            (options.tokens, options.waiting) = (servers.tokens, servers.waiting);
            AnyBackend::new(Redis::new(runtime, address, options)?)
        }
        addresses => {
            let mut options = RedlockOptions { username, password, database, ..RedlockOptions::default() };
            options.tokens = servers.tokens;
            AnyBackend::new(Redlock::new(runtime, addresses, options)?)
        }
    })
}

#[cfg(feature = "etcd")]
fn etcd<R: Runtime>(
    runtime: R,
    url: &ServerUrl,
    options: &Options,
    servers: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    let mut of_etcd = crate::etcd::EtcdOptions::new(servers.session(options, std::time::Duration::ZERO));
    of_etcd.user.clone_from(&url.login);
    Ok(AnyBackend::new(crate::etcd::Etcd::new(runtime, &url.addresses, of_etcd)?))
}

#[cfg(feature = "zookeeper")]
fn zookeeper<R: Runtime>(
    runtime: R,
    url: &ServerUrl,
    options: &Options,
    servers: &ConnectOptions,
) -> Result<AnyBackend<R>, ConnectError> {
    // See `ConnectOptions::session_ttl`.
    let session = servers.session(options, std::time::Duration::from_millis(1500));
    let mut of_zookeeper = crate::zookeeper::ZooKeeperOptions::new(session);
    of_zookeeper.login.clone_from(&url.login);
    if let Some(root) = url.root() {
        of_zookeeper.root = root;
    }
    Ok(AnyBackend::new(crate::zookeeper::ZooKeeper::new(runtime, &url.addresses, of_zookeeper)?))
}

/// Refuses a URL whose client was not compiled.
macro_rules! without {
    ($feature:literal, fn $name:ident($($argument:ty),*)) => {
        #[cfg(not(feature = $feature))]
        fn $name<R: Runtime>(_: R, url: &ServerUrl, $(_: $argument),*) -> Result<AnyBackend<R>, ConnectError> {
            Err(ConnectError::NoFeature { scheme: url.scheme.name(), feature: $feature })
        }
    };
}

without!("redis", fn redis(&ConnectOptions));
without!("etcd", fn etcd(&Options, &ConnectOptions));
without!("zookeeper", fn zookeeper(&Options, &ConnectOptions));
