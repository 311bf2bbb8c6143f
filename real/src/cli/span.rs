//! Spans of time on the command line: [`real::span`].

pub(crate) use real::span::parse;
