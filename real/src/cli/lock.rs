//! The flags that choose the lock servers, the source of fencing tokens and the TTL of a lease.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dlock::TokioRuntime;
use real::place::Place;
use real::primitive::Primitive;
use real::systems::System;
use real::tokens::Tokens;

use super::span;
use super::state::State;
use super::tls::ServersTls;

/// The lock servers.
#[derive(Args)]
pub(crate) struct ServerArgs {
    /// The lock system; by default that of the URL in --servers, or redis.
    #[arg(long, visible_alias = "backend", env = "DLOCK_SYSTEM", value_enum)]
    system: Option<System>,
    /// Its addresses, host:port, separated by commas; or one URL: redis://, etcd:// or zookeeper:// with
    /// user@ and several hosts if needed, rediss://, etcds:// or zookeepers:// over TLS, unix:///socket. By
    /// default the servers that `real up` has started.
    #[arg(long, env = "DLOCK_SERVERS", value_delimiter = ',', hide_env_values = true)]
    servers: Vec<String>,
    /// The user to log in with at the lock servers. The password is taken from DLOCK_PASSWORD, also for a
    /// user in the URL.
    #[arg(long, env = "DLOCK_USER", value_name = "NAME")]
    user: Option<String>,
    /// The database of a Redis; by default that of the URL, or 0.
    #[arg(long, env = "DLOCK_DATABASE", value_name = "NUMBER")]
    database: Option<u32>,
    /// The node of ZooKeeper below which the locks are; by default that of the URL, or /.
    #[arg(long, env = "DLOCK_ROOT", value_name = "PATH")]
    root: Option<String>,
    #[command(flatten)]
    tls: ServersTls,
    /// The state file of `real up`.
    #[arg(long, env = "DLOCK_STATE", value_name = "FILE")]
    state: Option<PathBuf>,
}

/// The lock servers, the source of tokens and the TTL.
#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    servers: ServerArgs,
    /// The source of the fencing tokens, on redis and redlock; by default the counter. All that lock the same
    /// keys must give the same one.
    #[arg(long, env = "DLOCK_TOKENS", value_enum, value_name = "SOURCE")]
    pub(crate) tokens: Option<Tokens>,
    /// The TTL of a lease.
    #[arg(long, env = "DLOCK_TTL", value_parser = span::parse, default_value = "2s")]
    pub(crate) ttl: Duration,
    /// The time for which a thread polls for an answer before it sleeps, as long as the server answers within
    /// it. It saves the time of a wake-up and takes a processor while it polls. At most 1ms; 0 never polls.
    #[arg(long, env = "DLOCK_BUSY_POLL", value_parser = busy_poll, default_value = "100us")]
    pub(crate) busy_poll: Duration,
}

impl LockArgs {
    /// Returns the lock servers, with the source of the tokens for `primitive`. No error shows a password.
    pub(crate) fn place(&self, primitive: Primitive) -> Result<Place, Box<dyn Error>> {
        if let Some(tokens) = self.tokens {
            tokens.check(self.servers.system()?, primitive)?;
        }
        Ok(Place { tokens: self.tokens.unwrap_or_default(), ..self.servers.place()? })
    }
}

/// Parses the time to poll.
fn busy_poll(text: &str) -> Result<Duration, String> {
    let most = TokioRuntime::BUSY_POLL_MAX;
    let busy_poll = span::parse(text).map_err(|error| error.to_string())?;
    match busy_poll <= most {
        true => Ok(busy_poll),
        false => Err(format!(
            "{busy_poll:?} is too long: give {most:?} or less, since no lease is renewed meanwhile"
        )),
    }
}

impl ServerArgs {
    /// Returns the lock system, whether its servers are known or not.
    pub(crate) fn system(&self) -> Result<System, Box<dyn Error>> {
        match self.url() {
            Some(url) => Ok(self.by_url(&url)?.system),
            None => Ok(self.system.unwrap_or(System::Redis)),
        }
    }

    /// Returns the lock servers. No error shows a password.
    pub(crate) fn place(&self) -> Result<Place, Box<dyn Error>> {
        let mut place = match self.url() {
            Some(url) => self.by_url(&url)?,
            None => self.by_addresses()?,
        };
        place.login = login(place.login, self.user.as_deref(), std::env::var("DLOCK_PASSWORD").ok())?;
        place.database = self.database.unwrap_or(place.database);
        place.root = self.root.clone().unwrap_or(place.root);
        self.tls.read(place.tls.as_mut())?;
        Ok(place)
    }

    /// Returns the URL of the servers, if they are given by one, or by what looks like a part of one: its
    /// error shows no password, and that of an address would.
    fn url(&self) -> Option<String> {
        let has_login = |server: &String| server.contains('@') && !server.starts_with("unix:");
        let is_url = self.servers.iter().any(|server| server.contains("://") || has_login(server));
        is_url.then(|| self.servers.join(","))
    }

    fn by_url(&self, url: &str) -> Result<Place, Box<dyn Error>> {
        let place = Place::from_url(url)?;
        let of_url = place.system.as_str();
        match self.system.filter(|system| *system != place.system) {
            None => Ok(place),
            Some(system) => Err(format!(
                "the URL in --servers is that of {of_url}, but --system is {}: leave one of them out",
                system.as_str()
            )
            .into()),
        }
    }

    fn by_addresses(&self) -> Result<Place, Box<dyn Error>> {
        let system = self.system.unwrap_or(System::Redis);
        if !self.servers.is_empty() {
            return Ok(Place::new(system, self.servers.clone()));
        }
        let name = system.as_str();
        let state = State::load(self.state.as_deref())?;
        let servers = state.and_then(|state| state.servers.get(name).cloned());
        let none = || format!("no {name} is running: run `real up {name}` first, or give --servers");
        Ok(Place::new(system, servers.ok_or_else(none)?))
    }
}

/// Returns the user and the password to log in with: those of a URL, completed by the flag and by the
/// variable. The password is no flag: other users of the machine see those of a process.
fn login(
    of_url: Option<(String, String)>,
    user: Option<&str>,
    password: Option<String>,
) -> Result<Option<(String, String)>, String> {
    let (url_user, url_password) = of_url.unwrap_or_default();
    let user = match (user, url_user.as_str()) {
        (Some(user), "") => user.to_owned(),
        (Some(user), url_user) if user != url_user => {
            return Err(format!("--user is {user}, and the URL in --servers has another: leave one out"));
        }
        _ => url_user,
    };
    let password = if url_password.is_empty() { password } else { Some(url_password) };
    match password {
        Some(password) => Ok(Some((user, password))),
        None if user.is_empty() => Ok(None),
        None => Err(format!("the user {user} needs a password: set DLOCK_PASSWORD")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(user: &str, password: &str) -> Option<(String, String)> {
        Some((user.to_owned(), password.to_owned()))
    }

    #[test]
    fn a_login_is_completed_by_flag_and_variable() {
        let password = || Some("secret".to_owned());
        assert_eq!(login(None, None, None), Ok(None));
        assert_eq!(login(None, None, password()), Ok(pair("", "secret")));
        assert_eq!(login(None, Some("app"), password()), Ok(pair("app", "secret")));
        assert_eq!(login(pair("app", ""), None, password()), Ok(pair("app", "secret")));
        assert_eq!(login(pair("app", "own"), Some("app"), password()), Ok(pair("app", "own")));
        assert_eq!(login(pair("", "own"), Some("app"), None), Ok(pair("app", "own")));
    }

    #[test]
    fn two_users_or_one_without_a_password_are_refused() {
        let error = login(pair("app", "secret"), Some("other"), None).unwrap_err();
        assert!(error.contains("--user is other") && !error.contains("secret"), "{error}");
        assert!(login(pair("app", ""), None, None).unwrap_err().contains("DLOCK_PASSWORD"));
    }
}
