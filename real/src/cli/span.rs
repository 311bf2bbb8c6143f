//! Parses durations on the command line: [`real::span`].

pub(crate) use real::span::parse;
