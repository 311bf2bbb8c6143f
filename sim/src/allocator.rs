//! The allocator of the simulator's programs: mimalloc, asked by its shortest way.

#![allow(unsafe_code, reason = "an allocator is `unsafe` by its trait; each method hands over to mimalloc")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys as mi;

/// What mimalloc aligns to by itself, if the size is no less.
const ALIGNED: usize = 16;

/// mimalloc, as the crate of that name has it, but for one thing: that asks for an alignment with each
/// request, and mimalloc then finds out each time that it needs to do nothing for it.
#[derive(Debug)]
pub struct Allocator;

/// Whether what mimalloc gives for this size is aligned well enough anyway.
fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= size_of::<usize>() || (align <= ALIGNED && size >= align)
}

// SAFETY: mimalloc is an allocator; a request for more than its natural alignment names it.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any alignment that is a power of two may be asked for.
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
        // SAFETY: the caller's promise: the block is from here.
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, align) = (layout.size(), layout.align());
        // SAFETY: the caller's promise: the block is from here. mimalloc may leave it where it is, so it must
        // have been aligned well enough, too.
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
    fn blocks_of_every_size_are_aligned_as_asked() {
        let mut kept = Vec::new();
        for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
            for size in (1..200).chain([1000, 4096, 100_000]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not zero; each block is given back below with its last layout.
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
