//! Outcomes as answers over HTTP, and the headers of a fenced request, for a service on axum.
//!
//! [`Guarded`] is an extractor: it reads `X-Fence-Token`, `X-Fence-Seq`, `X-Fence-Beside`, `X-Lock-Owner`,
//! `If-Match` and `If-None-Match`, and refuses a request without a guard by a text that names the header and
//! the remedy.
//! [`NotDone`] is the error of a handler: 409 if the work was refused, 503 with `Retry-After` if the lock is
//! taken or a server can't be reached. The bodies are those of the service in the crate `resource`, so that
//! its clients read them; [`refusal`] reads them back.
//!
//! # Example
//!
//! ```
//! use axum::Router;
//! use axum::routing::put;
//! use fence::http::{Guarded, NotDone};
//! use fence::{BodyDigest, Fence, Fencing, WriteOutcome};
//!
//! /// Judges a write by a fence. A service of its own keeps the fence beside the value.
//! async fn book(guarded: Guarded, body: String) -> Result<&'static str, NotDone> {
//!     let mut fence = Fence::default();
//!     let digest = BodyDigest::of(body.as_bytes());
//!     let Guarded { guard, beside, owner } = guarded;
//!     match fence.write_beside(guard, &beside, owner.as_ref(), digest, Fencing::On) {
//!         WriteOutcome::Refused(refusal) => Err(refusal.into()),
//!         _ => Ok("booked"),
//!     }
//! }
//!
//! let routes: Router = Router::new().route("/seats/12A", put(book));
//! assert!(routes.has_routes());
//! ```

mod body;
mod headers;
mod not_done;

pub use self::body::refusal;
#[doc(hidden)]
pub use self::body::{Explained, json};
pub use self::headers::{BadHeader, Guarded, beside, lock_owner, token};
pub use self::not_done::NotDone;

/// The header with the fencing token: a whole number from 1 to 18446744073709551615.
pub const FENCE_TOKEN: &str = "x-fence-token";
/// The header with the number of a write among those of its grant: 1 to 18446744073709551614.
pub const FENCE_SEQ: &str = "x-fence-seq";
/// The header with the tokens of the other permits that were live when the permit of the request was granted,
/// in ascending order with commas: `7,9`. Left out for a mutex.
pub const FENCE_BESIDE: &str = "x-fence-beside";
/// The header with the owner token of the grant; of a conditional write, any name that its writer gave to it.
pub const LOCK_OWNER: &str = "x-lock-owner";
