//! TLS over a pipe in memory: whom each side trusts, and the words with which it refuses.
#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "support/certificates.rs"]
mod certificates;

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use certificates::Authority;
use dlock_runtime::tls::{
    Identity, TlsAcceptor, TlsConnector, TlsError, TlsOptions, TlsServerOptions, TlsStream,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex, join, sink};

/// The years of certificates that have expired.
const PAST: Range<i32> = 2000..2001;

/// A client that trusts `authority`.
fn trusting(authority: &Authority) -> TlsOptions {
    let mut options = TlsOptions::default();
    options.roots = Some(authority.root.clone());
    options
}

/// Connects a client to a server at `address`; returns the results of both.
async fn shake(
    client: &TlsOptions,
    server: &TlsServerOptions,
    address: &str,
) -> (io::Result<TlsStream<DuplexStream>>, io::Result<TlsStream<DuplexStream>>) {
    let (near, far) = duplex(1 << 16);
    let (connector, acceptor) = (TlsConnector::new(client).unwrap(), TlsAcceptor::new(server).unwrap());
    tokio::join!(connector.connect(near, address), acceptor.accept(far))
}

/// Returns the error of a client that connects.
async fn refused(client: &TlsOptions, server: &TlsServerOptions, address: &str) -> String {
    shake(client, server, address).await.0.expect_err("the client refuses the server").to_string()
}

#[tokio::test]
async fn bytes_pass_in_both_directions() {
    let authority = Authority::new("an authority");
    let server = TlsServerOptions::new(authority.issue(&["redis.example", "127.0.0.1"]));
    for address in ["redis.example:6379", "127.0.0.1:6379"] {
        let (client, server) = shake(&trusting(&authority), &server, address).await;
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        client.write_all(b"ping").await.unwrap();
        client.flush().await.unwrap();
        let mut heard = [0; 4];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"ping");
        server.write_all(b"pong").await.unwrap();
        server.flush().await.unwrap();
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"pong");
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut heard).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new("an authority");
    let server = TlsServerOptions::new(authority.issue(&["redis.example"]));
    let error = refused(&trusting(&authority), &server, "redis.test:6379").await;
    assert!(error.contains("for another name than `redis.test`: for DnsName(\"redis.example\")"), "{error}");
    // The name that the options give counts, and not the host.
    let mut options = trusting(&authority);
    options.server_name = Some("redis.example".to_owned());
    assert!(shake(&options, &server, "redis.test:6379").await.0.is_ok());
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let authority = Authority::new("an authority");
    let server = TlsServerOptions::new(authority.issue_for(&["redis.example"], PAST));
    let error = refused(&trusting(&authority), &server, "redis.example:6379").await;
    assert!(error.starts_with("its certificate has expired, "), "{error}");
}

#[tokio::test]
async fn an_unknown_issuer_is_refused() {
    let server = TlsServerOptions::new(Authority::new("a stranger").issue(&["redis.example"]));
    let error = refused(&trusting(&Authority::new("an authority")), &server, "redis.example:6379").await;
    assert!(error.contains("of an unknown issuer: add the issuer to the roots"), "{error}");
}

/// Returns the error that a client gets which must show a certificate, at its first read.
async fn refusal_of(identity: Option<Identity>, issuer: &Authority) -> String {
    let authority = Authority::new("an authority");
    let mut server = TlsServerOptions::new(authority.issue(&["redis.example"]));
    server.client_roots = Some(issuer.root.clone());
    let mut client = trusting(&authority);
    client.identity = identity;
    let (client, server) = shake(&client, &server, "redis.example:6379").await;
    assert!(server.is_err());
    client.unwrap().read(&mut [0]).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_client_without_the_certificate_that_is_demanded_is_told() {
    let (issuer, stranger) = (Authority::new("clients"), Authority::new("strangers"));
    let none = refusal_of(None, &issuer).await;
    assert_eq!(none, "it demands a certificate of the client: give an identity");
    let unknown = refusal_of(Some(stranger.issue(&["worker"])), &issuer).await;
    assert_eq!(unknown, "it refuses the certificate of the client: its issuer is unknown there");
    let expired = refusal_of(Some(issuer.issue_for(&["worker"], PAST)), &issuer).await;
    assert_eq!(expired, "it refuses the certificate of the client: expired");
}

#[tokio::test]
async fn a_client_with_the_certificate_that_is_demanded_is_served() {
    let authority = Authority::new("an authority");
    let mut server = TlsServerOptions::new(authority.issue(&["redis.example"]));
    server.client_roots = Some(authority.root.clone());
    let mut client = trusting(&authority);
    client.identity = Some(authority.issue(&["worker"]));
    let (client, server) = shake(&client, &server, "redis.example:6379").await;
    assert!(client.is_ok() && server.is_ok());
}

#[tokio::test]
async fn a_server_without_tls_is_named() {
    let (near, mut far) = duplex(1 << 16);
    let connector = TlsConnector::new(&trusting(&Authority::new("an authority"))).unwrap();
    far.write_all(b"-ERR unknown command\r\n").await.unwrap();
    let error = connector.connect(near, "redis:6379").await.unwrap_err().to_string();
    assert!(error.contains("does this port speak TLS?"), "{error}");
}

/// A server that closes with bytes unread resets the connection: its answer may be lost.
#[tokio::test]
async fn a_server_that_closes_in_the_handshake_is_named() {
    for kind in [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe] {
        let connector = TlsConnector::new(&trusting(&Authority::new("an authority"))).unwrap();
        let error = connector.connect(join(Broken(kind), sink()), "etcd:2379").await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains("does this port speak TLS?"), "{error}");
    }
}

/// A connection whose reads fail.
#[derive(Debug)]
struct Broken(ErrorKind);

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(self.0.into()))
    }
}

#[tokio::test]
async fn the_protocol_is_agreed_on() {
    let authority = Authority::new("an authority");
    let mut server = TlsServerOptions::new(authority.issue(&["etcd"]));
    server.protocols = vec!["h2".to_owned()];
    let acceptor = TlsAcceptor::new(&server).unwrap();
    let connector = TlsConnector::new(&trusting(&authority)).unwrap();
    for (protocol, is_spoken) in [("h2", true), ("http/1.1", false)] {
        let (near, far) = duplex(1 << 16);
        let connector = connector.clone().with_protocol(protocol);
        let (client, _) = tokio::join!(connector.connect(near, "etcd:2379"), acceptor.accept(far));
        assert_eq!(client.is_ok(), is_spoken, "{protocol}");
        if let Err(error) = client {
            assert!(error.to_string().contains("does not speak the protocol"), "{error}");
        }
    }
}

#[test]
fn options_that_tls_cannot_use_are_named() {
    let authority = Authority::new("an authority");
    let refused = |change: &dyn Fn(&mut TlsOptions)| {
        let mut options = trusting(&authority);
        change(&mut options);
        TlsConnector::new(&options).unwrap_err()
    };
    for roots in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = refused(&|options| options.roots = Some(roots.to_owned()));
        assert!(matches!(error, TlsError::Roots { .. }), "{roots}: {error}");
    }
    let Identity { certificates, key } = authority.issue(&["worker"]);
    let other = authority.issue(&["worker"]);
    for (certificates, key) in
        [("", key.as_str()), (&certificates, ""), (&certificates, &other.key), (&certificates, "no PEM")]
    {
        let identity = Identity { certificates: certificates.to_owned(), key: key.to_owned() };
        let error = refused(&|options| options.identity = Some(identity.clone()));
        assert!(matches!(error, TlsError::Identity { .. }), "{error}");
    }
    let error = refused(&|options| options.server_name = Some("not a name".to_owned()));
    assert_eq!(error, TlsError::ServerName { name: "not a name".to_owned() });
}

#[test]
fn no_key_is_printed() {
    let authority = Authority::new("an authority");
    let mut options = trusting(&authority);
    options.identity = Some(authority.issue(&["worker"]));
    let printed = format!("{options:?} {:?}", TlsServerOptions::new(authority.issue(&["redis"])));
    assert!(!printed.contains("BEGIN"), "{printed}");
    assert!(printed.contains("roots: \"own\""), "{printed}");
}
