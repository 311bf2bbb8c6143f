//! Reads one value of RESP2 or RESP3. The two are read alike: no byte means different things in them.
//!
//! Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

/// The deepest nesting of lists that is read, so that no bytes can exhaust the stack.
const DEPTH_MAX: usize = 16;

/// A value, borrowed from the bytes of its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A simple or bulk string, a number, or another scalar as its text.
    Text(&'a [u8]),
    Error(&'a [u8]),
    Nil,
    /// An array or a set.
    List(Vec<Value<'a>>),
    /// Keys and values in turns.
    Map(Vec<Value<'a>>),
    /// A message that answers no command.
    Push(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// Returns the bytes of a scalar.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Text(bytes) | Self::Error(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Reads the value at `start`; returns it and its end. `None` if it is invalid or incomplete.
pub(super) fn read(bytes: &[u8], start: usize) -> Option<(Value<'_>, usize)> {
    let mut cursor = Cursor { bytes, at: start };
    let value = cursor.value(0)?;
    Some((value, cursor.at))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (kind, line) = self.line()?.split_first()?;
        Some(match kind {
            b'+' | b':' | b',' | b'#' | b'(' => Value::Text(line),
            b'-' => Value::Error(line),
            b'_' => Value::Nil,
            b'$' => match length(line)? {
                None => Value::Nil,
                Some(length) => Value::Text(self.bulk(length)?),
            },
            b'!' => Value::Error(self.bulk(length(line)??)?),
            // A text after its format, such as `txt:`.
            b'=' => Value::Text(self.bulk(length(line)??)?.get(4..)?),
            b'*' => match length(line)? {
                None => Value::Nil,
                Some(length) => Value::List(self.values(length, depth)?),
            },
            b'~' => Value::List(self.values(length(line)??, depth)?),
            b'>' => Value::Push(self.values(length(line)??, depth)?),
            b'%' => Value::Map(self.values(length(line)??.checked_mul(2)?, depth)?),
            // Attributes describe the value that follows.
            b'|' => {
                self.values(length(line)??.checked_mul(2)?, depth)?;
                self.value(depth + 1)?
            }
            _ => return None,
        })
    }

    fn values(&mut self, count: usize, depth: usize) -> Option<Vec<Value<'a>>> {
        // No capacity in advance, since the count may be wrong.
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth + 1)?);
        }
        Some(values)
    }

    /// Reads a line without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += end + 2;
        Some(&rest[..end])
    }

    fn bulk(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bulk = self.bytes.get(self.at..end)?;
        if self.bytes.get(end..end + 2)? != b"\r\n" {
            return None;
        }
        self.at = end + 2;
        Some(bulk)
    }
}

/// Reads a length; `Some(None)` for that of RESP2's null.
fn length(line: &[u8]) -> Option<Option<usize>> {
    let text = std::str::from_utf8(line).ok()?;
    if text == "-1" { Some(None) } else { text.parse().ok().map(Some) }
}
