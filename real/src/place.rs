//! The lock servers of a command, and how it logs in and connects.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use dlock::etcd::{Etcd, EtcdOptions};
use dlock::redis::{Redis, RedisOptions, Waiting};
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::tls::{TlsConnector, TlsOptions};
use dlock::zookeeper::{ZooKeeper, ZooKeeperOptions};
use dlock::{AnyBackend, ConnectOptions, Options, Runtime, ServerUrl, SetupError, TokioRuntime, UrlError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::systems::{System, SystemError};
use crate::tokens::Tokens;

/// The lock servers of a command. `Debug` hides the password.
#[derive(Clone)]
pub struct Place {
    /// The lock system.
    pub system: System,
    /// The addresses of the servers, each `host:port`, or `unix:/path` for a socket.
    pub addresses: Vec<String>,
    /// The user (may be empty) and the password to log in with.
    pub login: Option<(String, String)>,
    /// The database of a Redis.
    pub database: u32,
    /// The node of ZooKeeper below which the locks are; `/` for none.
    pub root: String,
    /// The certificates, if the servers are reached over TLS.
    pub tls: Option<TlsOptions>,
    /// The source of the fencing tokens of a lock on Redis or Redlock. The other systems have none to choose.
    pub tokens: Tokens,
}

/// The TTL of the sessions of etcd and ZooKeeper is that of the leases here, so that a dead holder blocks
/// others for no longer than its lease.
impl Place {
    /// Returns servers without a login and without TLS, with the default source of tokens.
    pub fn new(system: System, addresses: Vec<String>) -> Self {
        let (root, tokens) = ("/".to_owned(), Tokens::default());
        Self { system, addresses, login: None, database: 0, root, tls: None, tokens }
    }

    /// Returns the servers of a URL, in the forms of [`AnyBackend::from_url`].
    ///
    /// # Errors
    ///
    /// [`UrlError`] shows nothing of a user or a password.
    ///
    /// # Example
    ///
    /// ```
    /// use real::place::Place;
    /// use real::systems::System;
    ///
    /// let place = Place::from_url("rediss://app:secret@one,two,three/2")?;
    /// assert_eq!((place.system, place.database), (System::Redlock, 2));
    /// assert!(place.tls.is_some());
    /// # Ok::<(), dlock::UrlError>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Self, UrlError> {
        let url = ServerUrl::parse(url)?;
        let known = System::value_variants().iter().find(|system| system.as_str() == url.system());
        let mut place = Self::new(known.copied().unwrap_or(System::Redis), url.addresses().to_vec());
        place.login = url.login().map(|(user, password)| (user.to_owned(), password.to_owned()));
        place.database = url.database().unwrap_or_default();
        place.root = url.root().unwrap_or(place.root);
        place.tls = url.is_tls().then(TlsOptions::default);
        Ok(place)
    }

    /// Returns a backend on these servers.
    ///
    /// If a lease is tied to the client's session (etcd, ZooKeeper), `ttl` is also the session's timeout, so
    /// that a dead holder blocks others for no longer than its lease.
    ///
    /// # Errors
    ///
    /// [`SystemError`] if the number of servers does not fit the system, or an address or a file with
    /// certificates is invalid.
    pub fn backend(
        &self,
        ttl: Duration,
        waiting: Waiting,
        runtime: TokioRuntime,
    ) -> Result<AnyBackend<TokioRuntime>, SystemError> {
        self.check_number()?;
        let Some(tls) = &self.tls else { return self.plain(ttl, waiting, runtime) };
        let mut servers = ConnectOptions::default();
        servers.tls = tls.clone();
        (servers.tokens, servers.waiting) = (self.tokens.source(), waiting);
        servers.session_ttl = Some(ttl);
        Ok(AnyBackend::from_url(runtime, &self.url(), &Options::new(ttl), &servers)?)
    }

    /// Returns the connector of TLS, if the servers are reached over it.
    ///
    /// # Errors
    ///
    /// [`dlock::tls::TlsError`] if the certificates can't be used.
    pub fn connector(&self) -> Result<Option<TlsConnector>, dlock::tls::TlsError> {
        let Some(options) = &self.tls else { return Ok(None) };
        let connector = TlsConnector::new(options)?;
        // The servers of etcd refuse a client that does not ask for HTTP/2.
        Ok(Some(if self.system == System::Etcd { connector.with_protocol("h2") } else { connector }))
    }

    /// Returns a client of the only Redis, whose streams `runtime` opens.
    ///
    /// # Errors
    ///
    /// As [`Place::backend`].
    pub(crate) fn redis<R: Runtime>(&self, runtime: R) -> Result<Redis<R>, SystemError> {
        self.check_number()?;
        let (username, password) = self.login.clone().unzip();
        let mut options = RedisOptions::default();
        options.username = username.filter(|name| !name.is_empty());
        (options.password, options.database) = (password, self.database);
        Ok(Redis::new(runtime, &self.addresses[0], options)?)
    }

    fn check_number(&self) -> Result<(), SystemError> {
        let given = self.addresses.len();
        let wanted = |wanted| Err(SystemError::Servers { system: self.system, wanted, given });
        match (self.system, given) {
            (System::Redis, 0 | 2..) => wanted("one server"),
            (System::Zookeeper, 0) => wanted("at least one server"),
            // A URL with one host would be one Redis.
            (System::Redlock, 1) => Err(SetupError::TooFewNodes { nodes: 1 }.into()),
            _ => Ok(()),
        }
    }

    fn plain(
        &self,
        ttl: Duration,
        waiting: Waiting,
        runtime: TokioRuntime,
    ) -> Result<AnyBackend<TokioRuntime>, SystemError> {
        let (username, password) = self.login.clone().unzip();
        let (username, database) = (username.filter(|name| !name.is_empty()), self.database);
        Ok(match self.system {
            System::Redis => {
                let mut options = RedisOptions::default();
                (options.username, options.password, options.database) = (username, password, database);
                (options.tokens, options.waiting) = (self.tokens.source(), waiting);
                AnyBackend::new(Redis::new(runtime, &self.addresses[0], options)?)
            }
            System::Redlock => {
                let mut options = RedlockOptions::default();
                (options.username, options.password, options.database) = (username, password, database);
                options.tokens = self.tokens.source();
                AnyBackend::new(Redlock::new(runtime, &self.addresses, options)?)
            }
            System::Etcd => {
                let mut options = EtcdOptions::new(ttl);
                options.user.clone_from(&self.login);
                AnyBackend::new(Etcd::new(runtime, &self.addresses, options)?)
            }
            System::Zookeeper => {
                let mut options = ZooKeeperOptions::new(ttl);
                options.login.clone_from(&self.login);
                options.root.clone_from(&self.root);
                AnyBackend::new(ZooKeeper::new(runtime, &self.addresses, options)?)
            }
        })
    }

    /// Returns the URL of the servers over TLS. It has the password: never printed.
    fn url(&self) -> String {
        let scheme = match self.system {
            System::Redis | System::Redlock => "rediss",
            System::Etcd => "etcds",
            System::Zookeeper => "zookeepers",
        };
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let login = self.login.as_ref().map(|(user, password)| (encoded(user), encoded(password)));
        let login = login.map(|(user, password)| format!("{user}:{password}@")).unwrap_or_default();
        let path = match self.system {
            System::Redis | System::Redlock => self.database.to_string(),
            System::Etcd => String::new(),
            System::Zookeeper => {
                let names = self.root.split('/').filter(|name| !name.is_empty());
                names.map(encoded).collect::<Vec<_>>().join("/")
            }
        };
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{scheme}://{login}{}{slash}{path}", self.addresses.join(","))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("system", &self.system)
            .field("addresses", &self.addresses)
            .field("login", &self.login.as_ref().map(|_| "***"))
            .field("database", &self.database)
            .field("root", &self.root)
            .field("tls", &self.tls.is_some())
            .field("tokens", &self.tokens)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_over_tls_is_written_as_it_was_read() {
        for url in [
            "rediss://app:s%2Fcr%40t@h:7000/3",
            "rediss://a:1,b:2,c:3/0",
            "etcds://app:secret@a:1,b:2",
            "zookeepers://a:1/prod/eu",
        ] {
            let place = Place::from_url(url).unwrap();
            assert_eq!(place.url(), url);
            assert!(!format!("{place:?}").contains("s/cr@t") && !format!("{place:?}").contains("secret"));
        }
    }

    #[test]
    fn a_number_of_servers_that_does_not_fit_is_refused() {
        let place = |system, count| Place::new(system, vec!["h:1".to_owned(); count]);
        for (system, count) in
            [(System::Redis, 2), (System::Redis, 0), (System::Redlock, 1), (System::Zookeeper, 0)]
        {
            assert!(place(system, count).check_number().is_err(), "{system:?} {count}");
        }
        assert!(place(System::Redlock, 3).check_number().is_ok());
    }
}
