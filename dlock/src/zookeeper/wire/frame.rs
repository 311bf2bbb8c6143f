//! Cuts a byte stream into frames.

use bytes::{Buf, Bytes, BytesMut};

use super::jute::WireError;

/// The longest frame, in bytes: ZooKeeper's own limit (`jute.maxbuffer`, 1 MiB less one) and the kilobyte that it lets
/// a record's other fields have.
pub const FRAME_BYTES_MAX: usize = 0xf_ffff + 1024;

/// What has arrived of a byte stream and was not taken yet.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: BytesMut,
}

impl Frames {
    /// Where what arrives is to be appended.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next frame, without its length, if all of it has arrived.
    ///
    /// # Errors
    ///
    /// [`WireError::Length`] for a length below zero or above [`FRAME_BYTES_MAX`]: the stream can't be read any further.
    pub fn take(&mut self) -> Result<Option<Bytes>, WireError> {
        let Some(&head) = self.buffer.first_chunk() else { return Ok(None) };
        let length = i32::from_be_bytes(head);
        let size = usize::try_from(length).ok().filter(|&size| size <= FRAME_BYTES_MAX);
        let size = size.ok_or(WireError::Length { length })?;
        if self.buffer.len() < 4 + size {
            self.buffer.reserve(4 + size - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(size).freeze()))
    }
}
