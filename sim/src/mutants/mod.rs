//! Mutants: locks with one mistake that real libraries made. The simulator must convict each of them.

mod get_then_del;

pub use get_then_del::GetThenDel;
