//! Joins the frames of a direction to messages.

use std::collections::BTreeMap;
use std::ops::Range;

use loona_hpack::Decoder;

use super::super::flow::Flow;
use super::super::words::{joined, text};
use super::super::{Part, Parts};
use super::frame::{self, Frame};
use super::text::method;
use super::{request, response};

/// The length of the prefix of a gRPC message: whether it is compressed, and its size.
const PREFIX_BYTES: usize = 5;

/// The path of the call on each stream, such as `/etcdserverpb.KV/Range`.
pub(super) type Methods = BTreeMap<u32, String>;

/// Splits the bytes of a client, and notes the path of each call.
pub(super) fn calls(client: &Flow, methods: &mut Methods) -> Parts {
    if !client.bytes().starts_with(frame::PREFACE) {
        return Parts::default();
    }
    let mut direction = Direction::new(client, false, frame::PREFACE.len());
    direction.run(methods);
    direction.parts
}

/// Splits the bytes of a server.
pub(super) fn answers(server: &Flow, methods: &Methods) -> Parts {
    let mut direction = Direction::new(server, true, 0);
    direction.run(&mut methods.clone());
    direction.parts
}

/// One direction of a connection, while it is read.
struct Direction<'a> {
    flow: &'a Flow,
    is_reply: bool,
    parts: Parts,
    hpack: Decoder<'a>,
    /// A block of headers whose last frame has not been read.
    block: Vec<u8>,
    streams: BTreeMap<u32, Stream>,
}

/// One direction of a stream, while it is read.
#[derive(Default)]
struct Stream {
    /// Bytes of messages that are not complete, and their places.
    data: Vec<u8>,
    places: Vec<Range<usize>>,
    /// The place of the headers, until the first message.
    headers: Vec<Range<usize>>,
    has_message: bool,
}

impl<'a> Direction<'a> {
    fn new(flow: &'a Flow, is_reply: bool, read: usize) -> Self {
        let (hpack, block, streams) = (Decoder::new(), Vec::new(), BTreeMap::new());
        Self { flow, is_reply, parts: Parts { parts: Vec::new(), read }, hpack, block, streams }
    }

    /// Reads frames as far as they are valid.
    fn run(&mut self, methods: &mut Methods) {
        while let Some(frame) = frame::read(self.flow.bytes(), self.parts.read) {
            if self.frame(&frame, methods).is_none() {
                return;
            }
            self.parts.read = frame.range.end;
        }
    }

    /// Reads one frame. `None` if it is invalid.
    fn frame(&mut self, frame: &Frame, methods: &mut Methods) -> Option<()> {
        let flow = self.flow;
        let payload = &flow.bytes()[frame.payload.clone()];
        let range = || vec![frame.range.clone()];
        match frame.kind {
            frame::HEADERS | frame::CONTINUATION => {
                self.block.extend_from_slice(payload);
                self.streams.entry(frame.stream).or_default().headers.push(frame.range.clone());
                if frame.ends_headers() {
                    self.headers(frame.stream, methods)?;
                }
            }
            frame::DATA => self.data(frame, payload, methods),
            frame::RST_STREAM => {
                let method = methods.get(&frame.stream).map_or("call", |path| method(path));
                self.push(range(), self.is_reply, format!("{method} cancelled"));
            }
            frame::PING => self.push(range(), frame.is_ack(), "HTTP/2 ping".to_owned()),
            frame::GOAWAY => self.push(range(), false, "HTTP/2 goes away".to_owned()),
            _ => {}
        }
        if frame.ends_stream() {
            self.streams.remove(&frame.stream);
        }
        Some(())
    }

    /// Reads a whole block of headers: those of a call name its path, trailers an error. `None` if it is
    /// invalid.
    fn headers(&mut self, number: u32, methods: &mut Methods) -> Option<()> {
        let block = std::mem::take(&mut self.block);
        let headers = self.hpack.decode(&block).ok()?;
        let value = |name: &str| {
            let found = headers.iter().find(|(header, _)| header == name.as_bytes());
            // HTTP allows no control characters in a header; HPACK can carry them.
            found.map(|(_, value)| String::from_utf8_lossy(value).replace(char::is_control, "\u{fffd}"))
        };
        if !self.is_reply
            && let Some(path) = value(":path")
        {
            methods.insert(number, path);
        }
        let status = value("grpc-status").filter(|status| status != "0");
        if let Some(status) = status {
            let message = value("grpc-message").unwrap_or_default();
            let method = methods.get(&number).map_or("call", |path| method(path));
            let words = joined([method, "failed:", &code(&status), &unescaped(&message)]);
            let stream = self.streams.entry(number).or_default();
            let ranges = std::mem::take(&mut stream.headers);
            self.push(ranges, true, words);
        }
        Some(())
    }

    /// Reads the messages that end within a frame of data.
    fn data(&mut self, frame: &Frame, payload: &[u8], methods: &Methods) {
        let mut stream = self.streams.remove(&frame.stream).unwrap_or_default();
        let path = methods.get(&frame.stream).map(String::as_str).unwrap_or_default();
        stream.data.extend_from_slice(payload);
        // The header of a frame belongs to the first message in it.
        let mut begin = frame.range.start;
        let end_of_data = |stream: &Stream| frame.payload.end - stream.data.len();
        while let Some(size) = stream.next_size() {
            let body: Vec<u8> = stream.data.drain(..size).skip(PREFIX_BYTES).collect();
            let end = end_of_data(&stream);
            let mut ranges = std::mem::take(&mut stream.places);
            ranges.push(begin..end);
            begin = end;
            self.with_headers(&mut stream, &mut ranges);
            let (is_reply, words) = if self.is_reply {
                (!response::is_event(path, &body), response::words(path, &body))
            } else {
                (false, request::words(path, &body))
            };
            self.push(ranges, is_reply, words);
        }
        if !stream.data.is_empty() {
            stream.places.push(begin..frame.payload.end);
        }
        self.streams.insert(frame.stream, stream);
    }

    /// Adds the headers of a call to its first message, if both were sent at the same time: those of a stream
    /// may be much older than its first message.
    fn with_headers(&self, stream: &mut Stream, ranges: &mut Vec<Range<usize>>) {
        let headers = std::mem::take(&mut stream.headers);
        let sent = |ranges: &[Range<usize>]| ranges.first().and_then(|range| self.flow.sent(range.start));
        if !stream.has_message && sent(&headers) == sent(ranges) {
            ranges.splice(0..0, headers);
        }
        stream.has_message = true;
    }

    fn push(&mut self, ranges: Vec<Range<usize>>, is_reply: bool, words: String) {
        self.parts.parts.push(Part { ranges, is_reply, words });
    }
}

impl Stream {
    /// Returns the size of the first message, with its prefix, if it is complete.
    fn next_size(&self) -> Option<usize> {
        let [_, a, b, c, d] = *self.data.first_chunk::<PREFIX_BYTES>()?;
        let size = (u32::from_be_bytes([a, b, c, d]) as usize).checked_add(PREFIX_BYTES)?;
        (self.data.len() >= size).then_some(size)
    }
}

/// Returns the name of a status code, such as `Unavailable`.
fn code(status: &str) -> String {
    let code = status.parse().map(tonic::Code::from_i32);
    code.map_or_else(|_| status.to_owned(), |code| format!("{code:?}"))
}

/// Formats the message of a status, which is percent-encoded.
fn unescaped(message: &str) -> String {
    text(message.replace("%20", " ").replace("%3A", ":").replace("%27", "'").as_bytes())
}
