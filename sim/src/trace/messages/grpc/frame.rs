//! Frames of HTTP/2 (RFC 9113, section 6), and the messages of gRPC in their data.

use std::ops::Range;

/// The bytes with which a client begins a connection.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
const HEADER_BYTES: usize = 9;

/// The types of the frames that are read.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;

/// The highest type of the RFC, and the largest frame without other settings, in bytes.
const TYPE_MAX: u8 = 9;
const LENGTH_MAX: usize = 1 << 24;

const END_STREAM: u8 = 1;
/// Of a ping, the same bit says that it is an answer.
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    flags: u8,
    pub(super) stream: u32,
    /// The place of the whole frame.
    pub(super) range: Range<usize>,
    /// The place of its payload, without padding and priority.
    pub(super) payload: Range<usize>,
}

impl Frame {
    /// Returns true if it is the last of its direction on its stream.
    pub(super) const fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Returns true if the block of headers ends with it.
    pub(super) const fn ends_headers(&self) -> bool {
        self.flags & END_HEADERS != 0
    }

    /// Returns true if it answers a ping.
    pub(super) const fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }
}

/// Reads the frame at `start`. `None` if it is invalid or incomplete.
pub(super) fn read(bytes: &[u8], start: usize) -> Option<Frame> {
    let header = bytes.get(start..start.checked_add(HEADER_BYTES)?)?;
    let [l2, l1, l0, kind, flags, s3, s2, s1, s0] = *header else { return None };
    let length = u32::from_be_bytes([0, l2, l1, l0]) as usize;
    let end = start + HEADER_BYTES + length;
    if kind > TYPE_MAX || length > LENGTH_MAX || end > bytes.len() {
        return None;
    }
    let mut payload = start + HEADER_BYTES..end;
    if matches!(kind, DATA | HEADERS) && flags & PADDED != 0 {
        let padding = usize::from(*bytes.get(payload.start).filter(|_| !payload.is_empty())?);
        payload = payload.start + 1..payload.end.checked_sub(padding)?;
    }
    if kind == HEADERS && flags & PRIORITY != 0 {
        payload.start += 5;
    }
    if payload.start > payload.end {
        return None;
    }
    let stream = u32::from_be_bytes([s3 & 0x7f, s2, s1, s0]);
    Some(Frame { kind, flags, stream, range: start..end, payload })
}
