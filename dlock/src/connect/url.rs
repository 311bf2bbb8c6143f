//! Reads the URL of lock servers. Nothing of a user name or a password appears in an error.

use std::fmt;

use percent_encoding::percent_decode_str;

/// The lock servers that a URL names, in the forms of [`AnyBackend::from_url`](crate::AnyBackend::from_url).
/// `Debug` hides the login.
///
/// # Example
///
/// ```
/// use dlock::ServerUrl;
///
/// let url = ServerUrl::parse("rediss://app:secret@one,two:7000,three")?;
/// assert_eq!(url.system(), "redlock");
/// assert_eq!(url.addresses(), ["one:6379", "two:7000", "three:6379"]);
/// # Ok::<(), dlock::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub(super) scheme: Scheme,
    /// The name and the password to log in with; the name may be empty.
    pub(super) login: Option<(String, String)>,
    /// Each written `host:port`; for [`Scheme::Unix`] one, written `unix:/path`.
    pub(super) addresses: Vec<String>,
    /// The text after the hosts, without the first slash.
    pub(super) path: String,
    /// The number of the database of a Redis, from `?db=`.
    pub(super) database: Option<u32>,
}

/// The protocol of the servers, and how the client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Redis,
    RedisTls,
    Unix,
    Etcd,
    EtcdTls,
    ZooKeeper,
    ZooKeeperTls,
}

/// The schemes: their names, their default ports.
const SCHEMES: [(&str, Scheme, u16); 7] = [
    ("redis", Scheme::Redis, 6379),
    ("rediss", Scheme::RedisTls, 6379),
    ("unix", Scheme::Unix, 0),
    ("etcd", Scheme::Etcd, 2379),
    ("etcds", Scheme::EtcdTls, 2379),
    ("zookeeper", Scheme::ZooKeeper, 2181),
    ("zookeepers", Scheme::ZooKeeperTls, 2281),
];

/// A URL that names no lock server. Its text shows the URL without user and password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is no URL of a lock server: {problem}")]
pub struct UrlError {
    /// The URL, without user and password.
    pub url: String,
    /// The wrong part, and how to write it.
    pub problem: String,
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        SCHEMES.iter().find(|(_, scheme, _)| *scheme == self).map_or("", |(name, ..)| name)
    }

    pub(super) fn is_tls(self) -> bool {
        matches!(self, Self::RedisTls | Self::EtcdTls | Self::ZooKeeperTls)
    }

    fn port(self) -> u16 {
        SCHEMES.iter().find(|(_, scheme, _)| *scheme == self).map_or(0, |(.., port)| *port)
    }

    fn is_redis(self) -> bool {
        matches!(self, Self::Redis | Self::RedisTls | Self::Unix)
    }
}

impl ServerUrl {
    /// Parses `url`.
    ///
    /// # Errors
    ///
    /// [`UrlError`] shows nothing of a user or a password.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        Self::read(url).map_err(|problem| UrlError { url: redacted(url), problem })
    }

    /// Returns the lock system: `redis`, `redlock` for several hosts, `etcd` or `zookeeper`.
    pub fn system(&self) -> &'static str {
        match (self.scheme, self.addresses.len()) {
            (Scheme::Redis | Scheme::RedisTls | Scheme::Unix, 1) => "redis",
            (Scheme::Redis | Scheme::RedisTls | Scheme::Unix, _) => "redlock",
            (Scheme::Etcd | Scheme::EtcdTls, _) => "etcd",
            (Scheme::ZooKeeper | Scheme::ZooKeeperTls, _) => "zookeeper",
        }
    }

    /// Returns true if the servers are reached over TLS.
    pub fn is_tls(&self) -> bool {
        self.scheme.is_tls()
    }

    /// Returns the addresses of the servers, each `host:port`, or `unix:/path` for a socket.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Returns the user and the password, each of which may be empty.
    pub fn login(&self) -> Option<(&str, &str)> {
        self.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()))
    }

    /// Returns the database of a Redis, if the URL names one.
    pub fn database(&self) -> Option<u32> {
        self.database
    }

    /// Returns the node of ZooKeeper below which the locks are, if the URL names one.
    pub fn root(&self) -> Option<String> {
        let is_root =
            matches!(self.scheme, Scheme::ZooKeeper | Scheme::ZooKeeperTls) && !self.path.is_empty();
        is_root.then(|| format!("/{}", self.path.trim_end_matches('/')))
    }

    fn read(url: &str) -> Result<Self, String> {
        let names = || SCHEMES.map(|(name, ..)| format!("{name}://")).join(", ");
        let (name, rest) =
            url.split_once("://").ok_or_else(|| format!("begin it with one of {}", names()))?;
        let scheme = SCHEMES.iter().find(|(known, ..)| *known == name).map(|(_, scheme, _)| *scheme);
        let scheme = scheme.ok_or_else(|| format!("its scheme is none of {}", names()))?;
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(read_login(login)?), rest),
            None => (None, rest),
        };
        if rest.contains('#') {
            return Err("remove the part that begins with `#`".to_owned());
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let query = query.map(|query| read_query(scheme, query)).transpose()?;
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (addresses, path) = match scheme {
            Scheme::Unix => (vec![read_socket(hosts, path)?], String::new()),
            scheme => (read_hosts(scheme, hosts)?, decoded(path, "path")?),
        };
        let database = match (query, scheme, path.as_str()) {
            (query, Scheme::Unix, _) => query,
            (Some(_), _, _) => return Err("name the database as the path, `/2`, not as `?db=`".to_owned()),
            (None, scheme, path) if scheme.is_redis() && !path.is_empty() => Some(read_database(path)?),
            (None, Scheme::Etcd | Scheme::EtcdTls, path) if !path.is_empty() => {
                return Err(format!("etcd has no path: remove `/{path}`"));
            }
            (None, _, _) => None,
        };
        Ok(Self { scheme, login, addresses, path, database })
    }
}

/// Returns the URL without user and password: the part up to the last `@` is left out.
fn redacted(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        (None, Some((_, rest))) => format!("***@{rest}"),
        (_, None) => url.to_owned(),
    }
}

fn read_login(login: &str) -> Result<(String, String), String> {
    if login.contains(['/', '?', '#']) {
        let which = "`/`, `?`, `#` and `@`";
        return Err(format!("in user, password and path write {which} as %2F, %3F, %23 and %40"));
    }
    let (name, password) = login.split_once(':').unwrap_or((login, ""));
    Ok((decoded(name, "user")?, decoded(password, "password")?))
}

/// Decodes `%` and two digits.
fn decoded(text: &str, part: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let is_escape = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_wrong = bytes.iter().enumerate().any(|(at, byte)| *byte == b'%' && !is_escape(at));
    let text = percent_decode_str(text).decode_utf8().ok().filter(|_| !is_wrong);
    text.map(String::from)
        .ok_or_else(|| format!("the {part} has a `%` without two digits of a byte of UTF-8"))
}

/// Reads `?db=2`.
fn read_query(scheme: Scheme, query: &str) -> Result<u32, String> {
    let database = query.strip_prefix("db=").filter(|_| scheme.is_redis());
    database.map_or_else(|| Err(format!("`?{query}` means nothing here: remove it")), read_database)
}

fn read_database(text: &str) -> Result<u32, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| format!("the database `{text}` is no number: write 0 or more"))
}

fn read_socket(host: &str, path: &str) -> Result<String, String> {
    if !host.is_empty() || path.is_empty() {
        return Err("write the path of the socket with three slashes: unix:///run/redis.sock".to_owned());
    }
    Ok(format!("{}/{}", crate::setup::UNIX, decoded(path, "path")?))
}

/// Reads `host`, `host:port` or several, with commas between them.
fn read_hosts(scheme: Scheme, hosts: &str) -> Result<Vec<String>, String> {
    if hosts.is_empty() {
        return Err("name a host after `://`".to_owned());
    }
    hosts.split(',').map(|host| read_host(scheme, host)).collect()
}

fn read_host(scheme: Scheme, host: &str) -> Result<String, String> {
    let has_port =
        host.rsplit_once(':').is_some_and(|(before, _)| !host.starts_with('[') || before.ends_with(']'));
    let address = if has_port { host.to_owned() } else { format!("{host}:{}", scheme.port()) };
    match crate::setup::is_address(&address) {
        true => Ok(address),
        false => {
            Err(format!("`{host}` is no host: write a name or an address, with `:` and a port if needed"))
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.login.as_ref().map(|_| "***");
        f.debug_struct("ServerUrl")
            .field("scheme", &self.scheme.name())
            .field("login", &login)
            .field("addresses", &self.addresses)
            .field("path", &self.path)
            .field("database", &self.database)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(url: &str) -> ServerUrl {
        ServerUrl::parse(url).unwrap()
    }

    fn problem(url: &str) -> String {
        ServerUrl::parse(url).unwrap_err().problem
    }

    #[test]
    fn hosts_and_ports_are_read() {
        assert_eq!(read("redis://localhost").addresses, ["localhost:6379"]);
        assert_eq!(read("rediss://cache:6380").addresses, ["cache:6380"]);
        assert_eq!(
            read("redis://a,b:7000,[::1],[::1]:1").addresses,
            ["a:6379", "b:7000", "[::1]:6379", "[::1]:1"]
        );
        assert_eq!(read("etcd://etcd-1,etcd-2").addresses, ["etcd-1:2379", "etcd-2:2379"]);
        assert_eq!(read("zookeepers://z").addresses, ["z:2281"]);
        assert_eq!(read("unix:///run/redis%20.sock").addresses, ["unix:/run/redis .sock"]);
    }

    #[test]
    fn logins_databases_and_paths_are_read() {
        assert_eq!(read("redis://h/3").database, Some(3));
        assert_eq!(read("redis://h/").database, None);
        assert_eq!(read("unix:///s?db=2").database, Some(2));
        let login = |url| read(url).login.unwrap();
        assert_eq!(login("redis://app:s%2Fc%40t@h"), ("app".to_owned(), "s/c@t".to_owned()));
        assert_eq!(login("redis://:secret@h"), (String::new(), "secret".to_owned()));
        assert_eq!(login("redis://app@h"), ("app".to_owned(), String::new()));
        assert_eq!(login("redis://app:a:b@c@h"), ("app".to_owned(), "a:b@c".to_owned()));
        assert_eq!(read("zookeeper://h/prod/eu").path, "prod/eu");
    }

    #[test]
    fn a_url_names_its_system() {
        for (url, system) in [
            ("rediss://h", "redis"),
            ("unix:///s", "redis"),
            ("redis://a,b,c", "redlock"),
            ("etcds://a,b", "etcd"),
            ("zookeeper://a,b/prod/eu/", "zookeeper"),
        ] {
            assert_eq!(read(url).system(), system, "{url}");
        }
        assert_eq!(read("zookeeper://a,b/prod/eu/").root().as_deref(), Some("/prod/eu"));
        assert_eq!((read("zookeeper://a").root(), read("redis://a/3").root()), (None, None));
    }

    #[test]
    fn a_wrong_url_is_told_its_wrong_part() {
        for (url, part) in [
            ("", "begin it with one of redis://"),
            ("localhost:6379", "begin it with"),
            ("http://h", "its scheme is none of"),
            ("redis://", "name a host"),
            ("redis://a,,b", "`` is no host"),
            ("redis://h:port", "`h:port` is no host"),
            ("redis://h:70000", "`h:70000` is no host"),
            ("redis://h/x", "the database `x` is no number"),
            ("redis://h/+1", "the database `+1`"),
            ("redis://h?db=1", "not as `?db=`"),
            ("redis://h?ttl=5", "`?ttl=5` means nothing here"),
            ("etcd://h?db=1", "`?db=1` means nothing here"),
            ("etcd://h/locks", "etcd has no path"),
            ("redis://h#x", "begins with `#`"),
            ("unix://run/redis.sock", "three slashes"),
            ("unix:///", "three slashes"),
            ("zookeeper://h/a%zz", "the path has a `%`"),
            ("zookeeper://h/a%ff", "the path has a `%`"),
        ] {
            assert!(problem(url).contains(part), "{url}: {}", problem(url));
        }
    }

    #[test]
    fn nothing_of_a_login_is_printed() {
        for url in [
            "redis://app:secret@h:port",
            "redis://app:secret@h/x",
            "redis://secret@h/x",
            "redis://app:sec/ret@h",
            "redis://app:secret/@h",
            "redis://app:s%ecret@h",
            "redis://app:x#secret@h",
            "htp://app:secret@h",
            "app:secret@h",
        ] {
            let error = ServerUrl::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("ecret"), "{url}: {error}");
            assert!(!format!("{error}").contains("app:"), "{url}: {error}");
        }
        assert!(!format!("{:?}", read("redis://app:secret@h")).contains("secret"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "\\PC{0,40}", rest in "[a-z:/@,?#%\\[\\]0-9]{0,30}") {
            let _ = ServerUrl::parse(&text);
            for (name, ..) in SCHEMES {
                let _ = ServerUrl::parse(&format!("{name}://{rest}"));
            }
        }
    }
}
