//! Checks for mistakes of a lock that a fence hides: the fence refuses the writes, so that no verdict on
//! writes shows the mistake.

mod holder_accepted;
mod own_key;
mod own_token;
mod seen;

pub use holder_accepted::holder_accepted;
pub use own_key::own_key;
pub use own_token::own_token;
