//! The demand for a fencing token, as a type: a handle without one has no method that returns it.

use crate::token::FencingToken;

/// The token of a [`Handle`](crate::Handle) whose request demanded none: there is nothing to send to a
/// resource, so nothing stops a holder that writes after its lease has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfenced;

/// The demand of a [`Request`](crate::Request): a [`FencingToken`], or nothing ([`Unfenced`]).
pub trait Demand: Copy + Send + Sync + Unpin + 'static + sealed::Sealed {
    /// True if the grant must have a token.
    const FENCED: bool;

    /// Returns what the handle gets, or `None` if the demanded token is missing.
    fn given(token: Option<FencingToken>) -> Option<Self>;
}

impl Demand for FencingToken {
    const FENCED: bool = true;

    fn given(token: Option<FencingToken>) -> Option<Self> {
        token
    }
}

impl Demand for Unfenced {
    const FENCED: bool = false;

    fn given(_: Option<FencingToken>) -> Option<Self> {
        Some(Self)
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for crate::token::FencingToken {}
    impl Sealed for super::Unfenced {}
}
