//! A growing array in Lua's memory.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use mlua::ffi::{self, lua_State};

/// The elements that a new buffer has room for.
const INITIAL: usize = 64;

/// A growing array in a block of Lua's memory, which the running function keeps in an upvalue.
///
/// It needs no dropping: if an error passes by, the block stays in the upvalue until the next call.
pub(super) struct Buffer<T> {
    state: *mut lua_State,
    /// The index of the upvalue.
    slot: i32,
    start: *mut T,
    length: usize,
    capacity: usize,
}

impl<T: Copy> Buffer<T> {
    /// Creates an empty buffer.
    ///
    /// # Safety
    ///
    /// `state` runs a function with an upvalue at `slot` for as long as the buffer is used, and with room on
    /// its stack for one more whenever something is pushed; *may throw*.
    pub(super) unsafe fn new(state: *mut lua_State, slot: i32) -> Self {
        let mut buffer = Self { state, slot, start: std::ptr::null_mut(), length: 0, capacity: 0 };
        // SAFETY: the caller's promise.
        unsafe { buffer.grow(INITIAL) };
        buffer
    }

    /// Moves the elements to a larger block.
    unsafe fn grow(&mut self, capacity: usize) {
        // SAFETY: the promise of `new`. Both blocks are alive until the new one takes the old one's place.
        // Lua aligns blocks for every type.
        unsafe {
            let block = ffi::lua_newuserdata(self.state, capacity.saturating_mul(size_of::<T>())).cast::<T>();
            if self.length > 0 {
                std::ptr::copy_nonoverlapping(self.start, block, self.length);
            }
            ffi::lua_replace(self.state, self.slot);
            self.start = block;
            self.capacity = capacity;
        }
    }

    /// Appends `elements`, which must be outside of this buffer.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new); *may throw*.
    pub(super) unsafe fn extend(&mut self, elements: &[T]) {
        let length = self.length.saturating_add(elements.len());
        // SAFETY: the promise of `new`; after `grow` there is room.
        unsafe {
            if length > self.capacity {
                self.grow(length.max(self.capacity.saturating_mul(2)));
            }
            std::ptr::copy_nonoverlapping(elements.as_ptr(), self.start.add(self.length), elements.len());
        }
        self.length = length;
    }

    /// Appends an element.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new); *may throw*.
    pub(super) unsafe fn push(&mut self, element: T) {
        // SAFETY: the caller's promise.
        unsafe { self.extend(&[element]) }
    }

    pub(super) fn pop(&mut self) {
        self.length = self.length.saturating_sub(1);
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        // SAFETY: the first `length` elements of the block are set, and it is alive.
        self.length.checked_sub(1).map(|last| unsafe { &mut *self.start.add(last) })
    }

    /// Returns the elements, which stay where they are until the next push.
    pub(super) fn elements(&self) -> &[T] {
        // SAFETY: as above; a buffer has a block from its creation.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// Gives the block to Lua's collector. A buffer that never grows large may stay for the next call.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new).
    pub(super) unsafe fn free(self) {
        // SAFETY: the caller's promise; it owns nothing else.
        unsafe {
            ffi::lua_pushboolean(self.state, 0);
            ffi::lua_replace(self.state, self.slot);
        }
    }
}

impl Buffer<u8> {
    /// Pushes the bytes as a text of Lua's, and frees the buffer.
    ///
    /// # Safety
    ///
    /// The promise of [`new`](Self::new); *may throw*.
    pub(super) unsafe fn push_text(self) {
        // SAFETY: the caller's promise; Lua copies the bytes.
        unsafe {
            ffi::lua_pushlstring_(self.state, self.start.cast(), self.length);
            self.free();
        }
    }
}
