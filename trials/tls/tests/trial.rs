//! TLS by tokio-rustls 0.26, with ring: axum behind it, called by reqwest 0.12, with certificates by rcgen
//! 0.14.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::{Form, try_both};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest12 as reqwest;
use sim::Sim;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};

const TIMEOUT: Duration = Duration::from_secs(2);

type Root = CertifiedIssuer<'static, KeyPair>;

/// Returns the Ed25519 key of a seed, from PKCS #8 (RFC 8410). The key is fixed and so are its signatures:
/// the world is built outside of all processes, where random numbers are not the simulator's.
fn key(seed: u8) -> KeyPair {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    KeyPair::try_from([&head[..], &[seed; 32]].concat()).expect("a key")
}

fn root(seed: u8) -> Root {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, key(seed)).expect("a certificate")
}

/// Makes a server's configuration, with a certificate for `name` by `root`.
fn identity(name: &str, root: &Root) -> Result<ServerConfig, rustls::Error> {
    let key = key(3);
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, root).expect("a certificate");
    let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    builder.with_single_cert(vec![certificate.der().clone()], secret)
}

/// Serves on port 8443: each connection shakes hands in a task of its own.
async fn serve(config: Arc<ServerConfig>) -> std::io::Result<()> {
    let app = Router::new().route("/", get(|| async { "secret" }));
    let (listener, acceptor) = (TcpListener::bind("0.0.0.0:8443").await?, TlsAcceptor::from(config));
    loop {
        let (stream, _) = listener.accept().await?;
        let (shake, app) = (acceptor.accept(stream), app.clone());
        tokio::spawn(async move {
            // An error or a timeout ends the connection.
            let Ok(Ok(stream)) = tokio::time::timeout(TIMEOUT, shake).await else { return };
            let service = TowerToHyperService::new(app);
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// Makes a client that trusts `root`, or, in the wrong form, every certificate.
fn client(root: &[u8], form: Form) -> reqwest::Result<reqwest::Client> {
    let root = reqwest::Certificate::from_der(root)?;
    let builder = reqwest::Client::builder().add_root_certificate(root).timeout(TIMEOUT);
    // Each request shakes hands anew.
    builder.pool_max_idle_per_host(0).danger_accept_invalid_certs(form == Form::Wrong).build()
}

/// The server, and another one called `other` whose certificate is for `name` by `issuer`, and must be
/// refused.
fn world(sim: &mut Sim, form: Form, name: &str, issuer: &Root, refused: &'static str) {
    let trusted = root(1);
    sim.scale(TIMEOUT / 2);
    for (service, config) in [("server", identity("server", &trusted)), ("other", identity(name, issuer))] {
        let config = Arc::new(config.expect("a certificate"));
        sim.service(service, move |_| {
            let config = Arc::clone(&config);
            async move { serve(config).await.expect("a free port") }
        });
    }
    for name in ["a", "b"] {
        let root = trusted.der().to_vec();
        sim.process(name, move |_| {
            let root = root.clone();
            async move {
                let client = client(&root, form).expect("a client");
                for _ in 0..3 {
                    match ask(&client, "https://server:8443/").await {
                        Ok(answer) => {
                            sim::always!("the answer is the server's", answer == "secret");
                            sim::point("answered");
                        }
                        Err(_) => sim::point("not answered"),
                    }
                    let other = ask(&client, "https://other:8443/").await;
                    sim::always!(refused, other.is_err());
                }
            }
        });
    }
}

async fn ask(client: &reqwest::Client, url: &str) -> reqwest::Result<String> {
    client.get(url).send().await?.text().await
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let verdict = "a certificate for another name is refused";
    try_both("tls_name", verdict, move |sim, form| world(sim, form, "server", &root(1), verdict));
}

#[test]
fn an_unknown_root_is_refused() {
    let verdict = "an unknown root is refused";
    try_both("tls_root", verdict, move |sim, form| world(sim, form, "other", &root(2), verdict));
}
