//! The messages that clients send, in version 3.0 of PostgreSQL's protocol.
//!
//! Sources: the manual's chapter "Message Formats"; the lengths and the errors are those of `pqcomm.c`,
//! `pqformat.c` and `SocketBackend` in `postgres.c` of PostgreSQL 15.

use bytes::{Buf, Bytes, BytesMut};

/// The longest first packet (`MAX_STARTUP_PACKET_LENGTH`), its length included.
const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest message with a statement or its parameters (`PQ_LARGE_MESSAGE_LIMIT`).
const LARGE_BYTES_MAX: usize = 0x3fff_fffe;
/// The longest of all other messages (`PQ_SMALL_MESSAGE_LIMIT`).
const SMALL_BYTES_MAX: usize = 10_000;
/// The longest message of a login (`PG_MAX_AUTH_TOKEN_LENGTH`).
const LOGIN_BYTES_MAX: usize = 65_535;

/// Codes in the place of a protocol version in a first packet.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS_ENCRYPTION: u32 = 80_877_104;

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The client asks for encryption by TLS or by GSSAPI. Another first packet follows.
    Encryption,
    /// The client asks the server to cancel the statement that the process with this number runs.
    Cancel {
        /// The number of the process.
        process: u32,
        /// Its secret key.
        secret: u32,
    },
    /// A session begins.
    Startup {
        /// The version of the protocol: the major one in the upper 16 bits.
        version: u32,
        /// The names and the values of the parameters.
        parameters: Vec<(String, String)>,
    },
}

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frontend {
    Query(String),
    Parse {
        statement: String,
        sql: String,
        /// The object ids of the parameters' types; 0 leaves a type open.
        types: Vec<u32>,
    },
    Bind {
        portal: String,
        statement: String,
        /// The formats of the parameters: none for text, one for all, or one for each.
        formats: Vec<i16>,
        values: Vec<Option<Bytes>>,
        /// The formats of the result's columns, in the same way.
        results: Vec<i16>,
    },
    Describe(Target),
    Execute {
        portal: String,
        /// The most rows to return; 0 for all.
        limit: u32,
    },
    Close(Target),
    Flush,
    Sync,
    Terminate,
    FunctionCall,
    /// Data of a COPY, or its end. The server ignores them outside of a COPY.
    Copy,
    /// A password, or a step of SASL.
    Password(Bytes),
}

/// The object of Describe and Close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// The state of a connection, which decides on the messages that it may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Login,
    Session,
}

/// A message that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrontendError {
    /// The length is not allowed: PostgreSQL closes the connection without a word.
    #[error("invalid message length")]
    Length,
    /// There is no such message, or not in this phase.
    #[error("invalid frontend message type {0}")]
    Kind(u8),
    /// The contents are no message of this kind.
    #[error("{0}")]
    Malformed(&'static str),
    /// A text is not in UTF-8.
    #[error("invalid byte sequence for encoding \"UTF8\": {0}")]
    Encoding(String),
}

/// A message with its contents still to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

impl Frame {
    /// Takes the next message from `input`; `None` if it has not arrived whole.
    ///
    /// # Errors
    ///
    /// If its type is unknown, or its length is not allowed.
    pub(crate) fn take(input: &mut BytesMut, phase: Phase) -> Result<Option<Self>, FrontendError> {
        let Some(kind) = input.first().copied() else { return Ok(None) };
        let longest = match (phase, kind) {
            (Phase::Login, b'p') => LOGIN_BYTES_MAX,
            (Phase::Session, b'Q' | b'F' | b'B' | b'P' | b'd') => LARGE_BYTES_MAX,
            (Phase::Session, b'X' | b'C' | b'D' | b'E' | b'H' | b'S' | b'c' | b'f') => SMALL_BYTES_MAX,
            _ => return Err(FrontendError::Kind(kind)),
        };
        let Some(length) = length(&input[1..]) else { return Ok(None) };
        if !(4..=longest).contains(&length) {
            return Err(FrontendError::Length);
        }
        if input.len() <= length {
            return Ok(None);
        }
        let mut whole = input.split_to(1 + length);
        whole.advance(5);
        Ok(Some(Self { kind, body: whole.freeze() }))
    }

    /// Returns true for the messages after whose errors the server ignores all others up to a Sync.
    pub(crate) fn is_extended(&self) -> bool {
        matches!(self.kind, b'B' | b'C' | b'D' | b'E' | b'H' | b'P')
    }

    /// Reads the contents.
    ///
    /// # Errors
    ///
    /// If they are no message of its kind.
    pub(crate) fn read(self) -> Result<Frontend, FrontendError> {
        let mut body = Body(self.body);
        let message = match self.kind {
            b'Q' => Frontend::Query(body.text()?),
            b'P' => parse(&mut body)?,
            b'B' => bind(&mut body)?,
            b'D' => Frontend::Describe(body.target("invalid DESCRIBE message subtype")?),
            b'C' => Frontend::Close(body.target("invalid CLOSE message subtype")?),
            b'E' => Frontend::Execute {
                portal: body.text()?,
                // PostgreSQL reads a negative limit as none.
                limit: u32::try_from(body.u32()?.cast_signed()).unwrap_or(0),
            },
            b'H' => Frontend::Flush,
            b'S' => Frontend::Sync,
            b'X' => return Ok(Frontend::Terminate),
            b'F' => return Ok(Frontend::FunctionCall),
            b'p' => return Ok(Frontend::Password(body.0)),
            _ => return Ok(Frontend::Copy),
        };
        match body.0.is_empty() {
            true => Ok(message),
            false => Err(FrontendError::Malformed("invalid message format")),
        }
    }
}

impl Opening {
    /// Takes a first packet from `input`; `None` if it has not arrived whole.
    ///
    /// # Errors
    ///
    /// If its length is not allowed, or it is malformed.
    pub(crate) fn take(input: &mut BytesMut) -> Result<Option<Self>, FrontendError> {
        let Some(length) = length(input) else { return Ok(None) };
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(FrontendError::Length);
        }
        if input.len() < length {
            return Ok(None);
        }
        let mut whole = input.split_to(length);
        whole.advance(4);
        let mut body = Body(whole.freeze());
        Ok(Some(match body.u32()? {
            TLS | GSS_ENCRYPTION => Self::Encryption,
            CANCEL => Self::Cancel { process: body.u32()?, secret: body.u32()? },
            version => Self::Startup { version, parameters: parameters(&mut body)? },
        }))
    }
}

/// Returns the length at the beginning of `bytes`, if it has arrived.
fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()
}

fn parameters(body: &mut Body) -> Result<Vec<(String, String)>, FrontendError> {
    let malformed =
        FrontendError::Malformed("invalid startup packet layout: expected terminator as last byte");
    let mut parameters = Vec::new();
    loop {
        let name = body.text().map_err(|_| malformed.clone())?;
        if name.is_empty() {
            break;
        }
        parameters.push((name, body.text().map_err(|_| malformed.clone())?));
    }
    if body.0.is_empty() { Ok(parameters) } else { Err(malformed) }
}

fn parse(body: &mut Body) -> Result<Frontend, FrontendError> {
    let (statement, sql) = (body.text()?, body.text()?);
    let types = (0..body.u16()?).map(|_| body.u32()).collect::<Result<_, _>>()?;
    Ok(Frontend::Parse { statement, sql, types })
}

fn bind(body: &mut Body) -> Result<Frontend, FrontendError> {
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = body.formats()?;
    let values = (0..body.u16()?).map(|_| body.value()).collect::<Result<_, _>>()?;
    Ok(Frontend::Bind { portal, statement, formats, values, results: body.formats()? })
}

/// The contents of a message that are left to read.
struct Body(Bytes);

impl Body {
    fn take(&mut self, length: usize) -> Result<Bytes, FrontendError> {
        if self.0.len() < length {
            return Err(FrontendError::Malformed("insufficient data left in message"));
        }
        Ok(self.0.split_to(length))
    }

    fn u16(&mut self) -> Result<u16, FrontendError> {
        self.take(2).map(|mut bytes| bytes.get_u16())
    }

    fn u32(&mut self) -> Result<u32, FrontendError> {
        self.take(4).map(|mut bytes| bytes.get_u32())
    }

    /// Reads a text up to its zero byte.
    fn text(&mut self) -> Result<String, FrontendError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or(FrontendError::Malformed("invalid string in message"))?;
        let bytes = self.0.split_to(end);
        self.0.advance(1);
        utf8(&bytes).map(str::to_owned)
    }

    fn formats(&mut self) -> Result<Vec<i16>, FrontendError> {
        (0..self.u16()?).map(|_| self.u16().map(u16::cast_signed)).collect()
    }

    fn value(&mut self) -> Result<Option<Bytes>, FrontendError> {
        match self.u32()?.cast_signed() {
            -1 => Ok(None),
            length => {
                let insufficient = FrontendError::Malformed("insufficient data left in message");
                self.take(usize::try_from(length).map_err(|_| insufficient)?).map(Some)
            }
        }
    }

    fn target(&mut self, unknown: &'static str) -> Result<Target, FrontendError> {
        let kind = self.take(1)?;
        let name = self.text()?;
        match kind.first() {
            Some(b'S') => Ok(Target::Statement(name)),
            Some(b'P') => Ok(Target::Portal(name)),
            _ => Err(FrontendError::Malformed(unknown)),
        }
    }
}

/// Returns the bytes as text.
///
/// # Errors
///
/// Names the first bytes that are not UTF-8, as PostgreSQL does.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, FrontendError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let wrong = &bytes[error.valid_up_to()..];
        let length = error.error_len().unwrap_or(wrong.len()).max(1);
        let shown: Vec<String> = wrong.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
        FrontendError::Encoding(shown.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bytes: &[u8]) -> Result<Option<Frame>, FrontendError> {
        Frame::take(&mut BytesMut::from(bytes), Phase::Session)
    }

    #[test]
    fn a_message_is_taken_once_it_is_whole() {
        let bytes = b"Q\0\0\0\x0dSELECT 1\0S";
        assert_eq!(taken(&bytes[..13]), Ok(None));
        let frame = taken(bytes).unwrap().unwrap();
        assert_eq!(frame.read(), Ok(Frontend::Query("SELECT 1".to_owned())));
    }

    #[test]
    fn lengths_beyond_the_limits_are_refused() {
        // A Sync may have 10 000 bytes, a query nearly a gigabyte.
        assert_eq!(taken(b"S\0\0\x27\x11"), Err(FrontendError::Length));
        assert_eq!(taken(b"S\0\0\0\x03"), Err(FrontendError::Length));
        assert_eq!(taken(b"Q\0\0\x27\x11"), Ok(None));
        assert_eq!(taken(b"Q\x3f\xff\xff\xff"), Err(FrontendError::Length));
        assert_eq!(taken(b"!\0\0\0\x04"), Err(FrontendError::Kind(b'!')));
    }

    #[test]
    fn a_malformed_message_names_the_mistake() {
        let read = |bytes: &[u8]| taken(bytes).unwrap().unwrap().read();
        let left = FrontendError::Malformed("insufficient data left in message");
        assert_eq!(read(b"E\0\0\0\x06\0\0"), Err(left));
        assert_eq!(read(b"S\0\0\0\x05x"), Err(FrontendError::Malformed("invalid message format")));
        assert_eq!(read(b"Q\0\0\0\x07\xff\xfe\0"), Err(FrontendError::Encoding("0xff".to_owned())));
    }
}
