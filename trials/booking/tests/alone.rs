//! Tests of a service under `#[tokio::test]`, as any crate has them: each is a world with one process.

use std::time::Duration;

use sim as _;
use tokio::time::Instant;

/// Serves a greeting on a free port. Returns its URL.
async fn service() -> std::io::Result<String> {
    let greet = || async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        "hello"
    };
    let app = axum::Router::new().route("/", axum::routing::get(greet));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(url)
}

#[tokio::test]
async fn a_slow_service_answers_at_once() {
    let (url, began) = (service().await.unwrap(), Instant::now());
    assert_eq!(reqwest::get(url).await.unwrap().text().await.unwrap(), "hello");
    // In simulated time.
    assert!(began.elapsed() >= Duration::from_secs(600));
}

#[tokio::test]
async fn a_client_gives_a_slow_service_up() {
    let request = reqwest::Client::new().get(service().await.unwrap()).timeout(Duration::from_secs(60));
    assert!(request.send().await.unwrap_err().is_timeout());
}
