//! Checks for mistakes of a lock that a fence hides: the writes are refused, and no verdict on writes shows
//! why.

mod holder_accepted;
mod own_key;
mod own_token;
mod seen;

pub use holder_accepted::holder_accepted;
pub use own_key::own_key;
pub use own_token::own_token;
