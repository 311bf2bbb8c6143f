//! The service.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};

use crate::net::Net;

/// A listener of axum.
struct Listener<N: Net>(N::Listener);

impl<N: Net> axum::serve::Listener for Listener<N> {
    type Io = N::Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        N::accept(&mut self.0).await.expect("a connection")
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(([0, 0, 0, 0], 8080).into())
    }
}

/// Serves bookings on port 8080, under locks of the Redis at `redis:6379`.
pub async fn booking<N: Net>() -> io::Result<()> {
    let stream = N::connect("redis", 6379).await?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let info = RedisConnectionInfo::default();
    let connected = MultiplexedConnection::new_with_config(&info, stream, config).await;
    let (redis, driver) = connected.map_err(io::Error::other)?;
    tokio::spawn(driver);
    let app = Router::new().route("/seats/{seat}/{number}", post(book)).with_state(redis);
    axum::serve(Listener::<N>(N::listen(8080).await?), app).await
}

async fn book(
    State(mut redis): State<MultiplexedConnection>,
    Path((seat, number)): Path<(String, String)>,
) -> StatusCode {
    match locked(&mut redis, &seat, &number).await {
        Ok(true) => StatusCode::OK,
        Ok(false) => StatusCode::CONFLICT,
        Err(_) => StatusCode::BAD_GATEWAY,
    }
}

/// Takes and releases the lock of the seat. Returns true if it was free.
async fn locked(redis: &mut MultiplexedConnection, seat: &str, owner: &str) -> RedisResult<bool> {
    let set = redis::cmd("SET").arg(seat).arg(owner).arg(&["NX", "PX", "2000"]).to_owned();
    if set.query_async::<Option<String>>(redis).await?.is_none() {
        return Ok(false);
    }
    let holder: Option<String> = redis::cmd("GET").arg(seat).query_async(redis).await?;
    if holder.as_deref() == Some(owner) {
        redis::cmd("DEL").arg(seat).query_async::<u64>(redis).await?;
    }
    Ok(true)
}
