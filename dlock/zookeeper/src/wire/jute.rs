//! Jute: ZooKeeper's encoding of numbers, texts and lists.

/// Why bytes are not a message of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A record ends before its last field.
    #[error("a ZooKeeper record ends too early: is the other end a ZooKeeper?")]
    Truncated,
    /// A frame, a text or a list has a length that is negative or too large.
    #[error("a ZooKeeper record has the length {length}: is the other end a ZooKeeper?")]
    Length {
        /// The length as received.
        length: i32,
    },
    /// A text is not UTF-8.
    #[error("a text in a ZooKeeper record is not UTF-8")]
    NotUtf8,
    /// A number has no meaning in its field.
    #[error("a ZooKeeper record holds the number {number}, which has no meaning there")]
    Unknown {
        /// The number.
        number: i32,
    },
}

/// Writes one frame: its length, filled in at the end, and its contents.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { bytes: vec![0; 4] }
    }
}

impl Writer {
    /// Writes a 32-bit number.
    pub fn int(&mut self, number: i32) -> &mut Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Writes a 64-bit number.
    pub fn long(&mut self, number: i64) -> &mut Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Writes a boolean as one byte.
    pub fn boolean(&mut self, truth: bool) -> &mut Self {
        self.bytes.push(u8::from(truth));
        self
    }

    /// Writes bytes after their length.
    pub fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len());
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes a text as UTF-8 bytes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    /// Writes a list of texts after its length.
    pub fn texts<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) -> &mut Self {
        self.length(texts.len());
        texts.for_each(|text| {
            self.text(text);
        });
        self
    }

    /// Returns the frame.
    pub fn finish(mut self) -> Vec<u8> {
        let length = i32::try_from(self.bytes.len() - 4).unwrap_or(i32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }

    /// Writes a length. It may saturate: the other end refuses frames above [`super::FRAME_BYTES_MAX`].
    fn length(&mut self, length: usize) {
        self.int(i32::try_from(length).unwrap_or(i32::MAX));
    }
}

/// Reads the records of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, a frame without its length.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Reads a 32-bit number.
    ///
    /// # Errors
    ///
    /// [`WireError::Truncated`] if the frame ends too early, as for every method here.
    pub fn int(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a 64-bit number.
    ///
    /// # Errors
    ///
    /// As [`Reader::int`].
    pub fn long(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads a boolean.
    ///
    /// # Errors
    ///
    /// As [`Reader::int`].
    pub fn boolean(&mut self) -> Result<bool, WireError> {
        self.array().map(|[byte]| byte != 0)
    }

    /// Reads bytes; a null buffer reads as an empty one.
    ///
    /// # Errors
    ///
    /// As [`Reader::int`], and [`WireError::Length`].
    pub fn buffer(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        self.take(length)
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// As [`Reader::buffer`], and [`WireError::NotUtf8`].
    pub fn text(&mut self) -> Result<String, WireError> {
        let bytes = self.buffer()?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| WireError::NotUtf8)
    }

    /// Reads a list of texts.
    ///
    /// # Errors
    ///
    /// As [`Reader::text`].
    pub fn texts(&mut self) -> Result<Vec<String>, WireError> {
        let length = self.length()?;
        (0..length).map(|_| self.text()).collect()
    }

    /// Reads the length of a buffer or list; -1 means null.
    pub(super) fn length(&mut self) -> Result<usize, WireError> {
        match self.int()? {
            -1 => Ok(0),
            length => usize::try_from(length).map_err(|_| WireError::Length { length }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.take(N)?.try_into().map_err(|_| WireError::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }
}
