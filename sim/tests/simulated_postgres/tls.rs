//! A server over TLS: its clients ask for TLS in clear text first.

use std::sync::{Arc, Mutex};

use dlock_runtime::tls::{Identity, TlsConnector, TlsOptions, TlsServerOptions};
use sim::servers::postgres::PostgresHost;
use sim::servers::tls::Secured;
use sim::{Process, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::protocol::STARTUP;

/// The certificate of the laboratory's servers, which is its own root.
const CERTIFICATE: &str = include_str!("../../lab/src/laboratory/systems/tls/servers.pem");
const KEY: &str = include_str!("../../lab/src/laboratory/systems/tls/servers.key");

#[test]
fn a_client_asks_for_tls_before_the_handshake() {
    let mut client = TlsOptions::default();
    client.roots = Some(CERTIFICATE.to_owned());
    client.server_name = Some("redis".to_owned());
    let server =
        TlsServerOptions::new(Identity { certificates: CERTIFICATE.to_owned(), key: KEY.to_owned() });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let result = Arc::clone(&seen);
    let mut sim = Sim::new(7);
    sim.host("db", Secured::new(PostgresHost::new(), server, client.clone()).unwrap());
    sim.process("a", move |process: Process| {
        let (client, result) = (client.clone(), Arc::clone(&result));
        async move {
            let mut stream = process.connect("db:5432").await.unwrap();
            // For encryption by GSSAPI, and for TLS.
            stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x30\0\0\0\x08\x04\xd2\x16\x2f").await.unwrap();
            let answers = [stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap()];
            let connector = TlsConnector::new(&client).unwrap();
            let mut stream = connector.connect(stream, "db:5432").await.unwrap();
            stream.write_all(STARTUP).await.unwrap();
            stream.flush().await.unwrap();
            let authenticated = stream.read_u8().await.unwrap();
            result.lock().unwrap().extend([answers[0], answers[1], authenticated]);
        }
    });
    sim.run().unwrap();
    assert_eq!(*seen.lock().unwrap(), b"NSR");
}
