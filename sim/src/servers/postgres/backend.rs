//! The messages that the server sends.

use sql::{Column, Fields};

/// The newest version of the protocol that PostgreSQL 15 speaks: 3.0, the major version in the upper 16 bits.
const VERSION: u32 = 3 << 16;

/// The output of a connection: encoded messages that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Output(Vec<u8>);

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes the messages, and keeps the memory for later ones.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Answers a request for encryption: none.
    pub(super) fn no_encryption(&mut self) {
        self.0.push(b'N');
    }

    /// Adds a message of authentication: its code, and its data.
    pub(super) fn authentication(&mut self, code: i32, data: &[u8]) {
        self.message(b'R', |body| {
            body.extend_from_slice(&code.to_be_bytes());
            body.extend_from_slice(data);
        });
    }

    pub(super) fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| texts(body, &[name, value]));
    }

    pub(super) fn key(&mut self, process: u32, secret: u32) {
        self.message(b'K', |body| {
            body.extend_from_slice(&process.to_be_bytes());
            body.extend_from_slice(&secret.to_be_bytes());
        });
    }

    /// Says that the server speaks version 3.0 at most, and which options of the protocol it does not know.
    pub(super) fn negotiate(&mut self, unknown: &[&str]) {
        self.message(b'v', |body| {
            body.extend_from_slice(&VERSION.to_be_bytes());
            body.extend_from_slice(&count32(unknown.len()).to_be_bytes());
            texts(body, unknown);
        });
    }

    /// Adds ReadyForQuery with the state of the transaction: `I`, `T` or `E`.
    pub(super) fn ready(&mut self, state: u8) {
        self.message(b'Z', |body| body.push(state));
    }

    /// Adds a message without contents: `1` ParseComplete, `2` BindComplete, `3` CloseComplete, `I`
    /// EmptyQueryResponse, `n` NoData, `s` PortalSuspended.
    pub(super) fn plain(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    pub(super) fn complete(&mut self, tag: &str) {
        self.message(b'C', |body| texts(body, &[tag]));
    }

    pub(super) fn parameters(&mut self, types: &[u32]) {
        self.message(b't', |body| {
            body.extend_from_slice(&count16(types.len()).to_be_bytes());
            types.iter().for_each(|id| body.extend_from_slice(&id.to_be_bytes()));
        });
    }

    /// Adds the description of the columns of a result, with their formats.
    pub(super) fn columns(&mut self, columns: &[Column], format: impl Fn(usize) -> i16) {
        self.message(b'T', |body| {
            body.extend_from_slice(&count16(columns.len()).to_be_bytes());
            for (number, column) in columns.iter().enumerate() {
                texts(body, &[&column.name]);
                // No table and no column of one.
                body.extend_from_slice(&[0; 6]);
                body.extend_from_slice(&column.r#type.oid().to_be_bytes());
                body.extend_from_slice(&column.r#type.size().to_be_bytes());
                // No modifier of the type.
                body.extend_from_slice(&(-1_i32).to_be_bytes());
                body.extend_from_slice(&format(number).to_be_bytes());
            }
        });
    }

    /// Adds a row of encoded values; `None` is NULL.
    pub(super) fn row(&mut self, values: &[Option<Vec<u8>>]) {
        self.message(b'D', |body| {
            body.extend_from_slice(&count16(values.len()).to_be_bytes());
            for value in values {
                let length = value.as_ref().map_or(-1, |value| count32(value.len()));
                body.extend_from_slice(&length.to_be_bytes());
                body.extend_from_slice(value.as_deref().unwrap_or_default());
            }
        });
    }

    pub(super) fn notification(&mut self, process: u32, channel: &str, payload: &str) {
        self.message(b'A', |body| {
            body.extend_from_slice(&process.to_be_bytes());
            texts(body, &[channel, payload]);
        });
    }

    /// Adds an error (`E`) or a notice (`N`).
    pub(super) fn report(&mut self, kind: u8, report: &Fields) {
        let position = report.position.map(|position| position.to_string());
        let fields = [
            (b'S', Some(report.severity)),
            (b'V', Some(report.severity)),
            (b'C', Some(report.code.as_str())),
            (b'M', Some(report.message.as_str())),
            (b'D', report.detail.as_deref()),
            (b'H', report.hint.as_deref()),
            (b'P', position.as_deref()),
            (b's', report.schema.as_deref()),
            (b't', report.table.as_deref()),
            (b'c', report.column.as_deref()),
            (b'd', report.data_type.as_deref()),
            (b'n', report.constraint.as_deref()),
        ];
        self.message(kind, |body| {
            for (name, value) in fields {
                if let Some(value) = value {
                    body.push(name);
                    texts(body, &[value]);
                }
            }
            body.push(0);
        });
    }

    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.push(kind);
        let at = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        write(&mut self.0);
        let length = count32(self.0.len() - at);
        self.0[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends texts, each with a zero byte at its end.
fn texts(body: &mut Vec<u8>, texts: &[&str]) {
    for text in texts {
        // A zero byte would end the text early.
        body.extend(text.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
}

/// Returns a number of 16 bits without a sign: a statement has up to 65,535 parameters.
fn count16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn count32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
