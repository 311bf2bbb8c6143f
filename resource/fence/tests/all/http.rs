//! The answers and the extractor for axum, in routes that are called without a port.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::put;
use dlock::{AcquireError, BackendError, LostError, TryAcquireError};
use fence::http::{Guarded, NotDone, refusal};
use fence::{BodyDigest, Fence, Fencing, Refusal, Stop, WriteOutcome};
use tower_service::Service;

/// An answer: its status, its body, and the headers.
type Answer = (u16, String, HeaderMap);

async fn read(answer: impl IntoResponse) -> Answer {
    let (head, body) = answer.into_response().into_parts();
    let body = to_bytes(body, 4096).await.unwrap();
    (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap(), head.headers)
}

/// A service of its own: one seat, whose fence is beside its passenger.
fn seat() -> Router {
    async fn book(
        State(fence): State<Arc<Mutex<Fence>>>,
        guarded: Guarded,
        passenger: String,
    ) -> Result<&'static str, NotDone> {
        let digest = BodyDigest::of(passenger.as_bytes());
        let Guarded { guard, beside, owner } = guarded;
        let mut fence = fence.lock().unwrap();
        match fence.write_beside(guard, &beside, owner.as_ref(), digest, Fencing::On) {
            WriteOutcome::Accepted(_) => Ok("booked"),
            WriteOutcome::Repeated(_) => Ok("booked before"),
            WriteOutcome::Refused(refusal) => Err(refusal.into()),
        }
    }
    Router::new().route("/seats/12A", put(book)).with_state(Arc::default())
}

async fn send(seat: &mut Router, passenger: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::put("/seats/12A");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(passenger.to_owned())).unwrap();
    read(seat.call(request).await).await
}

#[tokio::test]
async fn a_stale_request_gets_409_with_the_body_of_the_resource() {
    let mut seat = seat();
    let bob = [("X-Fence-Token", "34"), ("X-Lock-Owner", "b:28999649")];
    assert_eq!(send(&mut seat, "Bob", &bob).await.1, "booked");
    assert_eq!(send(&mut seat, "Bob", &bob).await.1, "booked before");
    let ada = [("X-Fence-Token", "33"), ("X-Lock-Owner", "a:7f3c9e12")];
    let (status, body, headers) = send(&mut seat, "Ada", &ada).await;
    assert_eq!((status, &*body), (409, r#"{"error":"stale fencing token","seen":34,"got":33}"#));
    assert_eq!(headers["content-type"], "application/json");
    let eve = [("X-Fence-Token", "34"), ("X-Lock-Owner", "e:11111111")];
    let (status, body, _) = send(&mut seat, "Eve", &eve).await;
    assert_eq!((status, &*body), (409, r#"{"error":"fencing token of another owner","seen":34,"got":34}"#));
}

#[tokio::test]
async fn a_request_without_guard_gets_400_with_the_remedy() {
    let mut seat = seat();
    for (headers, error, help) in [
        (&[][..], "X-Fence-Token is missing", "send X-Fence-Token with the token of your lock"),
        (&[("x-fence-token", "0")][..], "X-Fence-Token can't be \\\"0\\\"", "a whole number from 1"),
        (&[("x-fence-token", "34"), ("x-fence-token", "35")][..], "sent more than once", "send one X-Fence"),
        (&[("x-fence-token", "34"), ("x-fence-seq", "0")][..], "X-Fence-Seq can't be", "counts the writes"),
        (
            &[("x-fence-token", "34"), ("x-lock-owner", "")][..],
            "owner token is empty",
            "leave X-Lock-Owner out",
        ),
        (&[("x-fence-token", "34"), ("if-match", "\"1\"")][..], "both a fencing token", "If-Match"),
        (
            &[("x-fence-token", "34"), ("x-fence-beside", "9;7")][..],
            "X-Fence-Beside is not valid: \\\"9;7\\\" is no fencing token",
            "leave X-Fence-Beside out",
        ),
        (&[("if-match", "\"1\""), ("x-fence-beside", "7")][..], "without X-Fence-Token", "ascending"),
    ] {
        let (status, body, _) = send(&mut seat, "Bob", headers).await;
        assert_eq!(status, 400, "{body}");
        assert!(body.contains(error) && body.contains(help), "{headers:?}: {body}");
    }
    // None of them has changed the fence.
    assert_eq!(send(&mut seat, "Bob", &[("x-fence-token", "1")]).await.1, "booked");
}

#[tokio::test]
async fn the_extractor_reads_the_permits_beside_the_token() {
    let mut seat = seat();
    let newest = [("x-fence-token", "34"), ("x-fence-beside", "7,33")];
    assert_eq!(send(&mut seat, "Bob", &newest).await.1, "booked");
    assert_eq!(send(&mut seat, "Ada", &[("x-fence-token", "33")]).await.1, "booked");
    assert_eq!(send(&mut seat, "Eve", &[("x-fence-token", "32")]).await.0, 409);
}

#[tokio::test]
async fn a_refusal_is_read_back_from_its_answer() {
    let (seen, got) = ("34".parse().unwrap(), "33".parse().unwrap());
    for sent in [
        Refusal::Stale { seen, got },
        Refusal::ForeignOwner { seen, got: seen },
        Refusal::Conflict { expected: 1, current: 2 },
        Refusal::Fenced { seen },
        Refusal::Jump { seen: Some(got), got: seen, max: 33 },
        Refusal::Jump { seen: None, got: seen, max: 33 },
    ] {
        let (status, body, _) = read(NotDone::from(sent)).await;
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(refusal(status, body.as_bytes()), Some(sent), "{status}: {body}");
        assert_eq!(refusal(StatusCode::OK, body.as_bytes()), None);
    }
}

#[tokio::test]
async fn a_taken_lock_gets_503_with_whole_seconds_rounded_up() {
    for (left, seconds) in [
        (Some(Duration::ZERO), "1"),
        (Some(Duration::from_millis(1)), "1"),
        (Some(Duration::from_secs(1)), "1"),
        (Some(Duration::from_nanos(1_000_000_001)), "2"),
        (None, "1"),
    ] {
        let (status, body, headers) = read(NotDone::from(TryAcquireError::Taken { retry_after: left })).await;
        assert_eq!((status, &headers["retry-after"]), (503, &seconds.parse().unwrap()), "{left:?}");
        assert!(body.contains("taken by another owner") && body.contains("nothing was done"), "{body}");
        let waited = NotDone::from(AcquireError::Taken { retry_after: left });
        assert_eq!(read(waited).await.2["retry-after"], seconds, "{left:?}");
    }
}

#[tokio::test]
async fn an_unreachable_lock_server_gets_503_and_is_not_named() {
    let address = "10.0.0.5:6379".to_owned();
    let unreachable = BackendError::Unreachable { address, reason: "refused".to_owned() };
    let answers =
        [AcquireError::Unavailable(unreachable.clone()).into(), TryAcquireError::Backend(unreachable).into()];
    for answer in answers {
        let answer: NotDone = answer;
        let (status, body, headers) = read(answer).await;
        assert_eq!((status, &headers["retry-after"]), (503, &"1".parse().unwrap()));
        assert!(!body.contains("10.0.0.5"), "{body}");
    }
    assert_eq!(read(NotDone::from(LostError::Expired)).await.0, 503);
}

#[tokio::test]
async fn a_lost_commit_gets_503_without_a_time_to_begin_anew() {
    let (status, body, headers) = read(NotDone::from(Stop::Failed("reset"))).await;
    assert_eq!((status, headers.get("retry-after")), (503, None));
    assert!(body.contains("send the very same request again"), "{body}");
    let (status, _, headers) = read(NotDone::from(Stop::Retry("40001"))).await;
    assert_eq!((status, &headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(read(NotDone::from(Stop::<&str>::Corrupt("negative"))).await.0, 500);
}
