//! Reads requests: RESP2 arrays of bulk strings, and the inline commands that people type.
//!
//! A hand-written parser: it must refuse the same requests as Redis, with the same texts, and it runs for
//! every command. Source: `networking.c` of Redis 7.0 (`processMultibulkBuffer`, `processInlineBuffer`) and
//! `sdssplitargs`.

use super::number::parse_i64;

/// The longest inline command, and the longest line that announces a length, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The most arguments of a command.
const ARGUMENTS_MAX: i64 = i32::MAX as i64;
/// The longest argument, in bytes (Redis' `proto-max-bulk-len`).
const BULK_BYTES_MAX: i64 = 512 * 1024 * 1024;

/// The arguments of one command, its name first, borrowed from the buffer that they arrived in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

/// The place of an argument in its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: usize,
    end: usize,
}

/// A list of arguments that is refilled without allocating.
#[derive(Debug, Default)]
pub(crate) struct ArgBuffer {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// A request that breaks the protocol. The connection ends after the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Protocol error: {0}")]
pub(crate) struct ProtocolError(String);

/// Finds requests in a byte stream that arrives in pieces of any size.
///
/// It remembers its position: a request of a million arguments in a thousand pieces is read only once.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    spans: Vec<Span>,
    inline: ArgBuffer,
    is_inline: bool,
    /// The start of the next unread line or argument of the current request.
    position: usize,
    /// Arguments of the current request that are still to come.
    missing: usize,
    /// The size of the argument whose length was read and whose bytes were not.
    bulk: Option<usize>,
}

impl<'a> Args<'a> {
    pub(crate) fn len(self) -> usize {
        self.spans.len()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the argument at `index`; the command's name is at 0. Callers stay within the arity, which was
    /// checked before.
    pub(crate) fn at(self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.bytes[span.start..span.end]
    }

    /// Returns the arguments from `index` on.
    pub(crate) fn skip(self, index: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(index..).unwrap_or_default() }
    }

    /// Returns the first `count` arguments, or all if there are fewer.
    pub(crate) fn take(self, count: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(..count).unwrap_or(self.spans) }
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator {
        let Args { bytes, spans } = self;
        spans.iter().map(move |span| &bytes[span.start..span.end])
    }
}

impl ArgBuffer {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(crate) fn push(&mut self, argument: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(argument));
    }

    /// Adds the argument that `write` appends.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.spans.push(Span { start, end: self.bytes.len() });
    }

    pub(crate) fn args(&self) -> Args<'_> {
        Args { bytes: &self.bytes, spans: &self.spans }
    }
}

impl RequestParser {
    /// Looks for a whole request at the start of `buffer` and returns its length in bytes, or `None` if bytes
    /// are missing. After `None`, the next call must pass the same bytes again, followed by more.
    pub(crate) fn parse(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        if self.position == 0 {
            self.spans.clear();
            self.is_inline = false;
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') if !self.begin(buffer)? => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.parse_inline(buffer),
            }
        }
        while self.missing > 0 {
            if !self.parse_argument(buffer)? {
                return Ok(None);
            }
        }
        Ok(Some(std::mem::take(&mut self.position)))
    }

    /// Returns the arguments of the request that [`RequestParser::parse`] found at the start of `buffer`.
    pub(crate) fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        if self.is_inline { self.inline.args() } else { Args { bytes: buffer, spans: &self.spans } }
    }

    fn begin(&mut self, buffer: &[u8]) -> Result<bool, ProtocolError> {
        let Some((line, next)) = line_at(buffer, 0, "too big mbulk count string")? else { return Ok(false) };
        let count = parse_i64(&line[1..]).filter(|count| *count <= ARGUMENTS_MAX);
        let count = count.ok_or_else(|| ProtocolError("invalid multibulk length".into()))?;
        self.missing = usize::try_from(count).unwrap_or(0);
        self.position = next;
        Ok(true)
    }

    fn parse_argument(&mut self, buffer: &[u8]) -> Result<bool, ProtocolError> {
        let size = match self.bulk {
            Some(size) => size,
            None => {
                let (size, next) = match short_bulk_at(buffer, self.position) {
                    Some(found) => found,
                    None => match line_at(buffer, self.position, "too big bulk count string")? {
                        Some((line, next)) => (bulk_size(line)?, next),
                        None => return Ok(false),
                    },
                };
                self.position = next;
                self.bulk = Some(size);
                size
            }
        };
        if buffer.len() - self.position < size + 2 {
            return Ok(false);
        }
        self.spans.push(Span { start: self.position, end: self.position + size });
        self.position += size + 2;
        self.bulk = None;
        self.missing -= 1;
        Ok(true)
    }

    fn parse_inline(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
            if buffer.len() > LINE_BYTES_MAX {
                return Err(ProtocolError("too big inline request".into()));
            }
            return Ok(None);
        };
        let line = &buffer[..end];
        self.inline.clear();
        self.is_inline = true;
        split_line(line.strip_suffix(b"\r").unwrap_or(line), &mut self.inline)
            .ok_or_else(|| ProtocolError("unbalanced quotes in request".into()))?;
        Ok(Some(end + 1))
    }
}

/// Returns the line that begins at `start`, without its end, and the start of the next one.
fn line_at<'a>(
    buffer: &'a [u8],
    start: usize,
    oversized: &str,
) -> Result<Option<(&'a [u8], usize)>, ProtocolError> {
    let rest = &buffer[start..];
    match rest.iter().position(|byte| *byte == b'\r') {
        // The line feed after the carriage return is not checked, as in Redis.
        Some(end) if end + 2 <= rest.len() => Ok(Some((&rest[..end], start + end + 2))),
        Some(_) => Ok(None),
        None if rest.len() > LINE_BYTES_MAX => Err(ProtocolError(oversized.into())),
        None => Ok(None),
    }
}

/// As [`line_at`] and [`bulk_size`], for the lengths of one or two digits that nearly all arguments have.
fn short_bulk_at(buffer: &[u8], start: usize) -> Option<(usize, usize)> {
    let digit = |byte: &u8| usize::from(byte - b'0');
    match &buffer[start..] {
        [b'$', one @ b'1'..=b'9', b'\r', _, ..] => Some((digit(one), start + 4)),
        [b'$', ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', _, ..] => {
            Some((10 * digit(ten) + digit(one), start + 5))
        }
        _ => None,
    }
}

fn bulk_size(line: &[u8]) -> Result<usize, ProtocolError> {
    match line.first() {
        Some(b'$') => parse_i64(&line[1..])
            .filter(|size| (0..=BULK_BYTES_MAX).contains(size))
            .and_then(|size| usize::try_from(size).ok())
            .ok_or_else(|| ProtocolError("invalid bulk length".into())),
        other => {
            let got = char::from(other.copied().unwrap_or(b'\r'));
            Err(ProtocolError(format!("expected '$', got '{got}'")))
        }
    }
}

/// Splits a line at its spaces. Arguments may be quoted: `"\x00\n"` with escapes, `'as it is'` without.
/// `None` if a quote stays open, or is followed by anything but a space.
fn split_line(line: &[u8], args: &mut ArgBuffer) -> Option<()> {
    let mut rest = line;
    let mut word = Vec::new();
    loop {
        while let [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() || rest[0] == 0 {
            return Some(());
        }
        word.clear();
        rest = split_word(rest, &mut word)?;
        args.push(&word);
    }
}

fn split_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [0 | b' ' | b'\t' | b'\n' | b'\r', ..] => return Some(rest),
            [b'"', tail @ ..] => return closed(split_double_quoted(tail, word)?),
            [b'\'', tail @ ..] => return closed(split_single_quoted(tail, word)?),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

/// Checks that a closing quote is followed by a space or the end, and returns the rest.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [] | [0 | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => Some(rest),
        _ => None,
    }
}

fn split_double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex_digit(*high) << 4 | hex_digit(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn split_single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                rest = tail;
            }
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}
