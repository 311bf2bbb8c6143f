// Copyright 2017 Thomas Keh.
//
// Licensed under the Apache License, Version 2.0 <LICENSE-APACHE or
// http://www.apache.org/licenses/LICENSE-2.0> or the MIT license
// <LICENSE-MIT or http://opensource.org/licenses/MIT>, at your
// option. This file may not be copied, modified, or distributed
// except according to those terms.

//! The types of the crate send_wrapper 0.6.0, without its tests and without its support for streams.
// To build docs locally use `RUSTDOCFLAGS="--cfg docsrs" cargo doc --open --all-features`
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "futures")]
#[cfg_attr(docsrs, doc(cfg(feature = "futures")))]
mod futures;

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, DerefMut, Drop};
use std::thread::{self, ThreadId};

/// A wrapper which allows you to move around non-[`Send`]-types between threads, as long as you access
/// the contained value only from within the original thread and make sure that it is dropped from within the
/// original thread.
pub struct SendWrapper<T> {
    data: ManuallyDrop<T>,
    thread_id: ThreadId,
}

impl<T> SendWrapper<T> {
    /// Create a `SendWrapper<T>` wrapper around a value of type `T`.
    /// The wrapper takes ownership of the value.
    pub fn new(data: T) -> SendWrapper<T> {
        SendWrapper { data: ManuallyDrop::new(data), thread_id: thread::current().id() }
    }

    /// Returns `true` if the value can be safely accessed from within the current thread.
    pub fn valid(&self) -> bool {
        self.thread_id == thread::current().id()
    }

    /// Takes the value out of the `SendWrapper<T>`.
    ///
    /// # Panics
    ///
    /// Panics if it is called from a different thread than the one the `SendWrapper<T>` instance has
    /// been created with.
    #[track_caller]
    pub fn take(self) -> T {
        self.assert_valid_for_deref();

        // Prevent drop() from being called, as it would drop `self.data` twice
        let mut this = ManuallyDrop::new(self);

        // Safety:
        // - We've just checked that it's valid to access `T` from the current thread
        // - We only move out from `self.data` here and in drop, so `self.data` is present
        unsafe { ManuallyDrop::take(&mut this.data) }
    }

    #[track_caller]
    fn assert_valid_for_deref(&self) {
        if !self.valid() {
            invalid_deref()
        }
    }

    #[track_caller]
    fn assert_valid_for_poll(&self) {
        if !self.valid() {
            invalid_poll()
        }
    }
}

unsafe impl<T> Send for SendWrapper<T> {}
unsafe impl<T> Sync for SendWrapper<T> {}

impl<T> Deref for SendWrapper<T> {
    type Target = T;

    /// Returns a reference to the contained value.
    ///
    /// # Panics
    ///
    /// Dereferencing panics if it is done from a different thread than the one the `SendWrapper<T>` instance
    /// has been created with.
    #[track_caller]
    fn deref(&self) -> &T {
        self.assert_valid_for_deref();

        // Access the value.
        //
        // Safety: We just checked that it is valid to access `T` on the current thread.
        &*self.data
    }
}

impl<T> DerefMut for SendWrapper<T> {
    /// Returns a mutable reference to the contained value.
    ///
    /// # Panics
    ///
    /// Dereferencing panics if it is done from a different thread than the one the `SendWrapper<T>` instance
    /// has been created with.
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        self.assert_valid_for_deref();

        // Access the value.
        //
        // Safety: We just checked that it is valid to access `T` on the current thread.
        &mut *self.data
    }
}

impl<T> Drop for SendWrapper<T> {
    /// Drops the contained value.
    ///
    /// # Panics
    ///
    /// Dropping panics if it is done from a different thread than the one the `SendWrapper<T>` instance
    /// has been created with.
    ///
    /// Exceptions:
    /// - There is no extra panic if the thread is already panicking/unwinding.
    ///   This is because otherwise there would be double panics (usually resulting in an abort)
    ///   when dereferencing from a wrong thread.
    /// - If `T` has a trivial drop ([`needs_drop::<T>()`] is false) then this method never panics.
    ///
    /// [`needs_drop::<T>()`]: std::mem::needs_drop
    #[track_caller]
    fn drop(&mut self) {
        // If the drop is trivial (`needs_drop` = false), then dropping `T` can't access it
        // and so it can be safely dropped on any thread.
        if !mem::needs_drop::<T>() || self.valid() {
            unsafe {
                // Drop the inner value
                //
                // Safety:
                // - We've just checked that it's valid to drop `T` on this thread
                // - We only move out from `self.data` here and in drop, so `self.data` is present
                ManuallyDrop::drop(&mut self.data);
            }
        } else {
            invalid_drop()
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for SendWrapper<T> {
    /// Formats the value using the given formatter.
    ///
    /// # Panics
    ///
    /// Formatting panics if it is done from a different thread than the one
    /// the `SendWrapper<T>` instance has been created with.
    #[track_caller]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendWrapper").field("data", self.deref()).field("thread_id", &self.thread_id).finish()
    }
}

impl<T: Clone> Clone for SendWrapper<T> {
    /// Returns a copy of the value.
    ///
    /// # Panics
    ///
    /// Cloning panics if it is done from a different thread than the one
    /// the `SendWrapper<T>` instance has been created with.
    #[track_caller]
    fn clone(&self) -> Self {
        Self::new(self.deref().clone())
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn invalid_deref() -> ! {
    const DEREF_ERROR: &'static str = "Dereferenced SendWrapper<T> variable from a thread \
		different to the one it has been created with.";

    panic!("{}", DEREF_ERROR)
}

#[cold]
#[inline(never)]
#[track_caller]
fn invalid_poll() -> ! {
    const POLL_ERROR: &'static str = "Polling SendWrapper<T> variable from a thread \
		different to the one it has been created with.";

    panic!("{}", POLL_ERROR)
}

#[cold]
#[inline(never)]
#[track_caller]
fn invalid_drop() {
    const DROP_ERROR: &'static str = "Dropped SendWrapper<T> variable from a thread \
		different to the one it has been created with.";

    if !std::thread::panicking() {
        // panic because of dropping from wrong thread
        // only do this while not unwinding (could be caused by deref from wrong thread)
        panic!("{}", DROP_ERROR)
    }
}
