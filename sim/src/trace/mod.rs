//! A run as a person reads it.

pub mod text;
