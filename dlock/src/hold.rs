//! A lease while it is held, as spans and metrics show it.

use std::mem;
use std::sync::Arc;

use dlock_runtime::Instant;
use tracing::Span;

use crate::backend::Claim;
use crate::event::Outcome;
use crate::metrics::Meter;
use crate::span;
use crate::sync::Guarded;
use crate::token::FencingToken;

/// The observation of a lease: its span and its metrics last from the grant until the lease is lost, left or
/// about to be released, whichever task does that.
pub(crate) struct Hold {
    meter: Arc<Meter>,
    began: Instant,
    state: Guarded<State>,
}

struct State {
    phase: Phase,
    /// The span of the present phase.
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Held,
    /// Held for longer than its first TTL.
    PastTtl,
    Over,
}

impl Hold {
    /// Begins to observe a lease whose validity counts from `began`; `span` is that of the hold.
    pub(crate) fn begin(meter: Arc<Meter>, span: Span, began: Instant) -> Self {
        meter.hold_began();
        Self { meter, began, state: Guarded::new(State { phase: Phase::Held, span }) }
    }

    /// Returns the metrics of the lease's resource type.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the span of the hold, then that of the release; a disabled one otherwise.
    pub(crate) fn span(&self) -> Span {
        self.state.lock().span.clone()
    }

    /// Counts a renewal that was answered at `now`.
    pub(crate) fn renewed(&self, claim: &Claim, now: Instant) {
        self.meter.extended(Outcome::Done);
        let mut state = self.state.lock();
        if state.phase == Phase::Held && now.saturating_since(self.began) >= claim.ttl {
            state.phase = Phase::PastTtl;
            self.meter.passed_ttl();
        }
    }

    /// Ends the hold at `now`, since the lease is lost, for the reason `outcome`.
    pub(crate) fn lost(&self, now: Instant, outcome: Outcome) {
        self.meter.lost();
        self.end(now, outcome, Span::none());
    }

    /// Ends the hold at `now` without a release.
    pub(crate) fn left(&self, now: Instant) {
        self.end(now, Outcome::Done, Span::none());
    }

    /// Ends the hold at `now`, unless the lease was lost before, and begins the span of the release.
    pub(crate) fn releasing(&self, claim: &Claim, token: Option<FencingToken>, now: Instant) {
        let release = span::release(self.meter.system(), claim, token, &self.span());
        self.end(now, Outcome::Done, release);
    }

    /// Ends the release.
    pub(crate) fn released(&self, outcome: Outcome) {
        self.meter.released(outcome);
        let release = mem::replace(&mut self.state.lock().span, Span::none());
        span::ended(&release, outcome);
    }

    fn end(&self, now: Instant, outcome: Outcome, next: Span) {
        let mut state = self.state.lock();
        let span = mem::replace(&mut state.span, next);
        let phase = mem::replace(&mut state.phase, Phase::Over);
        drop(state);
        if phase != Phase::Over {
            span::ended(&span, outcome);
            self.meter.hold_ended(now.saturating_since(self.began), phase == Phase::PastTtl);
        }
    }
}
