//! Counts the memory of the program, so that a target can tell if an input takes too much of it or leaves
//! some behind. libFuzzer's own memory is not counted: it does not come from Rust's allocator.
#![allow(unsafe_code, reason = "an allocator is unsafe to implement; this one passes every call on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes that one input may take. Inputs have a few kilobytes. The largest known use is that of a
/// Lua script, which has up to 256 MiB where it is not limited for fuzzing.
const PEAK_BYTES_MAX: usize = if cfg!(fuzzing) { 64 } else { 320 } << 20;

/// The most bytes that all inputs together may leave behind, such as caches of a fixed size. A million inputs
/// that leave 64 bytes each exceed it.
const LEFT_BYTES_MAX: usize = 48 << 20;

/// The inputs before the first measurement. They fill caches and thread-local state.
const WARM_UP: usize = 64;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static INPUTS: AtomicUsize = AtomicUsize::new(0);
static BASE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes that are allocated now.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Runs `target` on one input, and checks the memory that it took and left.
///
/// # Panics
///
/// If it took more than 64 MiB under fuzzing, or if all inputs so far have left more than 48 MiB.
pub fn measured(target: impl FnOnce()) {
    let before = live();
    PEAK.store(before, Ordering::Relaxed);
    target();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    assert!(taken <= PEAK_BYTES_MAX, "the input took {taken} bytes of memory");
    if INPUTS.fetch_add(1, Ordering::Relaxed) < WARM_UP {
        BASE.store(live(), Ordering::Relaxed);
    }
    let left = live().saturating_sub(BASE.load(Ordering::Relaxed));
    assert!(left <= LEFT_BYTES_MAX, "the inputs so far have left {left} bytes of memory behind");
}

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: `System` does the work; the counters don't touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}
