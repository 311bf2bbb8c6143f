//! Cuts a byte stream into frames.

use bytes::{Buf, Bytes, BytesMut};

use super::jute::WireError;

/// The longest frame that a server takes, in bytes: `jute.maxbuffer`, 1 MiB less one.
pub const REQUEST_BYTES_MAX: usize = 0xf_ffff;

/// The longest frame that a client takes, in bytes: a request may be as long as the above, and the reply to a
/// read holds a stat besides the same data.
pub const FRAME_BYTES_MAX: usize = REQUEST_BYTES_MAX + 1024;

/// What has arrived of a byte stream and was not taken yet.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    bytes_max: usize,
}

impl Default for Frames {
    /// Those that a client takes.
    fn default() -> Self {
        Self::up_to(FRAME_BYTES_MAX)
    }
}

impl Frames {
    /// Frames of at most `bytes_max` bytes each.
    pub fn up_to(bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), bytes_max }
    }

    /// Where what arrives is to be appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next frame, without its length, if all of it has arrived.
    ///
    /// # Errors
    ///
    /// [`WireError::Length`] for a length below zero or above what was set: the stream can't be read any
    /// further.
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
