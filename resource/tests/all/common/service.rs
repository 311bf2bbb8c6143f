//! The service and a plain HTTP/1.1 client, for the tests.

use std::sync::Arc;

use resource::Fencing;
use resource::http::{App, Config, serve_connection};
use resource::store::MemoryStore;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

pub(crate) fn app() -> App {
    App::new(Arc::new(MemoryStore::new()), Config::default())
}

pub(crate) fn unfenced() -> App {
    App::new(Arc::new(MemoryStore::new()), Config { fencing: Fencing::Off, ..Config::default() })
}

/// An answer: status, head and body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {} {:?}", self.status, self.body))
    }

    pub(crate) fn pair(&self) -> (u16, Value) {
        (self.status, self.json())
    }
}

/// Sends a request on a connection of its own and returns the answer.
pub(crate) fn ask(app: &App, line: &str, headers: &[&str], body: &[u8]) -> Answer {
    let mut request = format!("{line} HTTP/1.1\r\nHost: resource\r\nConnection: close\r\n").into_bytes();
    for header in headers {
        request.extend(header.as_bytes());
        request.extend(b"\r\n");
    }
    if !headers
        .iter()
        .any(|header| header.starts_with("Content-Length") || header.starts_with("Transfer-Encoding"))
    {
        request.extend(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    request.extend(b"\r\n");
    request.extend(body);
    exchange(app, &request)
}

pub(crate) fn exchange(app: &App, request: &[u8]) -> Answer {
    let (mut near, far) = duplex(1 << 20);
    let mut bytes = Vec::new();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    executor.block_on(async {
        near.write_all(request).await.unwrap();
        near.shutdown().await.unwrap();
        // The connection ends in an error if the request does.
        let _ = serve_connection(far, app).await;
        near.read_to_end(&mut bytes).await.unwrap();
    });
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

pub(crate) fn put(app: &App, token: u64, owner: Option<&str>, body: &str) -> Answer {
    let mut headers = vec![format!("X-Fence-Token: {token}")];
    headers.extend(owner.map(|owner| format!("X-Lock-Owner: {owner}")));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    ask(app, "PUT /r/orders:42", &headers, body.as_bytes())
}

pub(crate) fn read(app: &App) -> Value {
    ask(app, "GET /r/orders:42", &[], b"").json()
}
