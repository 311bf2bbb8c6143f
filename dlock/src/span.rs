//! The spans of a lock: one around each acquire, hold and release, for tracing backends such as those of
//! OpenTelemetry. A span that no subscriber wants costs some nanoseconds.
//!
//! Names and fields follow OpenTelemetry's semantic conventions for clients: `otel.name` is the operation and
//! its target, of which there are few (`acquire orders`), attributes have the prefix `dlock.`, and a failure
//! has the status `ERROR` and an `error.type`. `tracing-opentelemetry` reads the fields `otel.*`. Keys and
//! owners appear as in [events](crate::event): hashed, and cut to a prefix.

use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::backend::Claim;
use crate::event::Outcome;
use crate::token::FencingToken;

/// The spans around one acquire: its own, and the caller's, which is also the parent of the hold.
pub(crate) struct AcquireSpan {
    span: Span,
    caller: Span,
    system: &'static str,
}

impl AcquireSpan {
    /// Begins the span of an acquire, as a child of the present one.
    pub(crate) fn begin(system: &'static str, claim: &Claim) -> Self {
        let span = info_span!(
            target: "dlock",
            "dlock.acquire",
            otel.name = %format_args!("acquire {}", claim.key.resource_type()),
            otel.kind = "client",
            otel.status_code = Empty,
            error.type = Empty,
            dlock.system = system,
            dlock.resource_type = claim.key.resource_type(),
            dlock.resource_id_hash = claim.key.id_hash(),
            dlock.owner_token_prefix = claim.owner.prefix(),
            dlock.ttl_millis = millis(claim.ttl),
            dlock.fencing_token = Empty,
            dlock.outcome = Empty,
        );
        let caller = if span.is_disabled() { Span::none() } else { Span::current() };
        Self { span, caller, system }
    }

    /// Returns the span, to be entered.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Records that the acquire goes on under another owner.
    pub(crate) fn retried(&self, claim: &Claim) {
        self.span.record("dlock.owner_token_prefix", claim.owner.prefix());
    }

    /// Records that the acquire ended without a grant.
    pub(crate) fn failed(&self, outcome: Outcome) {
        ended(&self.span, outcome);
    }

    /// Records the grant; begins the span of the hold. It has the same parent as that of the acquire, also if
    /// another task polls the acquire by now.
    pub(crate) fn granted(&self, claim: &Claim, token: Option<FencingToken>) -> Span {
        self.span.record("dlock.fencing_token", number(token));
        ended(&self.span, Outcome::Done);
        self.caller.in_scope(|| {
            info_span!(
                target: "dlock",
                "dlock.hold",
                otel.name = %format_args!("hold {}", claim.key.resource_type()),
                otel.kind = "internal",
                otel.status_code = Empty,
                error.type = Empty,
                dlock.system = self.system,
                dlock.resource_type = claim.key.resource_type(),
                dlock.resource_id_hash = claim.key.id_hash(),
                dlock.owner_token_prefix = claim.owner.prefix(),
                dlock.ttl_millis = millis(claim.ttl),
                dlock.fencing_token = number(token),
                dlock.outcome = Empty,
            )
        })
    }
}

/// Begins the span of a release, as a child of the present one and with a link to `hold`, the span of the
/// lease.
pub(crate) fn release(system: &'static str, claim: &Claim, token: Option<FencingToken>, hold: &Span) -> Span {
    let span = info_span!(
        target: "dlock",
        "dlock.release",
        otel.name = %format_args!("release {}", claim.key.resource_type()),
        otel.kind = "client",
        otel.status_code = Empty,
        error.type = Empty,
        dlock.system = system,
        dlock.resource_type = claim.key.resource_type(),
        dlock.resource_id_hash = claim.key.id_hash(),
        dlock.owner_token_prefix = claim.owner.prefix(),
        dlock.fencing_token = number(token),
        dlock.outcome = Empty,
    );
    span.follows_from(hold);
    span
}

/// Records the outcome of `span`. A lock that is taken and a call that its caller dropped are no errors.
pub(crate) fn ended(span: &Span, outcome: Outcome) {
    if span.is_disabled() {
        return;
    }
    span.record("dlock.outcome", outcome.as_str());
    if !matches!(outcome, Outcome::Done | Outcome::Contended | Outcome::Full | Outcome::Cancelled) {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", outcome.as_str());
    }
    // OpenTelemetry's layer takes the last exit as the end.
    span.in_scope(|| ());
}

/// Returns the token as the only kind of whole number that OpenTelemetry has; `None` if it is too large, or
/// if there is none.
fn number(token: Option<FencingToken>) -> Option<i64> {
    i64::try_from(token?.as_u64()).ok()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
