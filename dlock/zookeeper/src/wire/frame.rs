//! Splits a byte stream into frames.

use bytes::{Buf, Bytes, BytesMut};

use super::jute::WireError;

/// The longest frame that a server accepts, in bytes: `jute.maxbuffer`, 1 MiB less one.
pub const REQUEST_BYTES_MAX: usize = 0xf_ffff;

/// The longest frame that a client accepts, in bytes: the reply to a read contains the data of a longest
/// request and a stat.
pub const FRAME_BYTES_MAX: usize = REQUEST_BYTES_MAX + 1024;

/// The bytes of a stream that have arrived and are not consumed.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    bytes_max: usize,
}

impl Default for Frames {
    /// Accepts the frames that a client accepts.
    fn default() -> Self {
        Self::up_to(FRAME_BYTES_MAX)
    }
}

impl Frames {
    /// Accepts frames of at most `bytes_max` bytes.
    pub fn up_to(bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), bytes_max }
    }

    /// Returns the buffer to which received bytes are appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the next frame, without its length, if it is complete.
    ///
    /// # Errors
    ///
    /// [`WireError::Length`] for a length below zero or above the maximum: the rest of the stream can't be
    /// read.
    pub fn take(&mut self) -> Result<Option<Bytes>, WireError> {
        let Some(&head) = self.buffer.first_chunk() else { return Ok(None) };
        let length = i32::from_be_bytes(head);
        let size = usize::try_from(length).ok().filter(|&size| size <= self.bytes_max);
        let size = size.ok_or(WireError::Length { length })?;
        if self.buffer.len() < 4 + size {
            self.buffer.reserve(4 + size - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(size).freeze()))
    }
}
