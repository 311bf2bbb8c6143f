//! Lock servers over TLS: their hosts, and the library's lock on them.

use std::sync::Arc;

use dlock::tls::{Identity, TlsOptions, TlsServerOptions};
use dlock::{AnyBackend, ConnectOptions};
use sim::servers::host::Host;
use sim::servers::tls::{Secured, TlsMachine};
use sim::world::machine::WorldMachine;
use sim::world::runtime::SimRuntime;

use super::super::given::Workplace;

/// The certificate of all lock servers, which is its own root. Made once and kept, so that a run does not
/// depend on a key that is drawn outside of it; valid from 1970 to 2999, since clocks are set by faults.
const CERTIFICATE: &str = include_str!("tls/servers.pem");
const KEY: &str = include_str!("tls/servers.key");

/// Returns servers without TLS as hosts.
pub(super) fn plain<H: Host>(hosts: Vec<(String, H)>) -> Vec<(String, Arc<dyn Host>)> {
    hosts.into_iter().map(|(name, host)| (name, Arc::new(host) as Arc<dyn Host>)).collect()
}

/// Returns servers over TLS as hosts. Servers of HTTP/2 name it in `protocols`.
pub(super) fn secured<H: Host<TlsMachine<WorldMachine>>>(
    hosts: Vec<(String, H)>,
    protocols: &[&str],
) -> Vec<(String, Arc<dyn Host>)> {
    let secured = |(name, host)| {
        let identity = Identity { certificates: CERTIFICATE.to_owned(), key: KEY.to_owned() };
        let mut server = TlsServerOptions::new(identity);
        server.protocols = protocols.iter().map(|&protocol| protocol.to_owned()).collect();
        #[allow(clippy::expect_used, reason = "the certificate is part of the program, and tests use it")]
        let host = Secured::new(host, server, client()).expect("the certificate of the laboratory");
        (name, Arc::new(host) as Arc<dyn Host>)
    };
    hosts.into_iter().map(secured).collect()
}

/// Makes the library's lock on servers over TLS, whose URLs begin with `scheme`.
pub(super) fn lock(scheme: &str, place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    let redis = place.options.redis_lock();
    let mut servers = ConnectOptions::default();
    servers.tls = client();
    (servers.tokens, servers.waiting) = (redis.tokens, redis.waiting);
    servers.session_ttl = Some(place.lock.ttl);
    let url = format!("{scheme}://{}", place.servers.join(","));
    AnyBackend::from_url(place.runtime.clone(), &url, &place.lock, &servers).ok()
}

fn client() -> TlsOptions {
    let mut options = TlsOptions::default();
    options.roots = Some(CERTIFICATE.to_owned());
    options
}
