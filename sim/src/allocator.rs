//! The allocator of the simulator's programs: mimalloc, called without an alignment where none is needed.

#![allow(unsafe_code, reason = "the trait of allocators is `unsafe`; each method calls mimalloc")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys as mi;

/// Natural alignment of mimalloc's blocks that are at least this large, in bytes.
const ALIGNED: usize = 16;

/// mimalloc. Unlike the crate `mimalloc`, it passes an alignment only if the natural one does not suffice:
/// for every alignment that is passed, mimalloc checks anew whether it has to do anything.
#[derive(Debug)]
pub struct Allocator;

/// mimalloc's option `mi_option_purge_delay`, for which its crate has no name.
const PURGE_DELAY: mi::mi_option_t = 15;

impl Allocator {
    /// Keeps freed memory in this program instead of returning it to the operating system. For the start of
    /// `main`, before there are other threads.
    ///
    /// mimalloc returns memory once it has been free for a second. Inside a simulated process it reads that
    /// process's clock, which jumps ahead with each event: so it returned memory in nearly every run, and a
    /// search had three times the page faults.
    pub fn keep_freed_memory() {
        // SAFETY: mimalloc only stores the number. A negative delay turns the return of memory off.
        unsafe { mi::mi_option_set(PURGE_DELAY, -1) }
    }
}

/// Returns whether mimalloc's natural alignment of a block of this size suffices.
fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= size_of::<usize>() || (align <= ALIGNED && size >= align)
}

// SAFETY: mimalloc is an allocator; a request for more than its natural alignment passes the alignment.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: mimalloc takes any size and any alignment that is a power of two.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi::mi_malloc(size)
            } else {
                mi::mi_malloc_aligned(size, align)
            }
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as for `alloc`.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi::mi_zalloc(size)
            } else {
                mi::mi_zalloc_aligned(size, align)
            }
        };
        block.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller promises that the block is from this allocator.
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, align) = (layout.size(), layout.align());
        // SAFETY: the caller promises that the block is from this allocator. mimalloc may leave it in place,
        // so its old alignment must suffice, too.
        let block = unsafe {
            if is_aligned_anyway(old, align) && is_aligned_anyway(size, align) {
                mi::mi_realloc(block.cast(), size)
            } else {
                mi::mi_realloc_aligned(block.cast(), size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_for_the_return_of_freed_memory_has_this_number() {
        // SAFETY: mimalloc only reads the number. No other option has this default.
        assert_eq!(unsafe { mi::mi_option_get(PURGE_DELAY) }, 1000, "in milliseconds");
    }

    #[test]
    fn blocks_of_every_size_are_aligned_as_asked() {
        let mut kept = Vec::new();
        for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
            for size in (1..200).chain([1000, 4096, 100_000]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not zero; each block is freed below with its last layout.
                let block = unsafe { Allocator.realloc(Allocator.alloc(layout), layout, 2 * size) };
                assert_eq!(block.addr() % align, 0, "{layout:?}");
                kept.push((block, Layout::from_size_align(2 * size, align).unwrap()));
                // SAFETY: as above.
                let block = unsafe { Allocator.alloc_zeroed(layout) };
                assert_eq!(block.addr() % align, 0, "{layout:?}, zeroed");
                // SAFETY: `size` bytes of it are there.
                assert!(unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|byte| *byte == 0));
                kept.push((block, layout));
            }
        }
        for (block, layout) in kept {
            // SAFETY: from `Allocator`, once.
            unsafe { Allocator.dealloc(block, layout) };
        }
    }
}
