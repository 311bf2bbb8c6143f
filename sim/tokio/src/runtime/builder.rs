//! The settings of a runtime. A simulated process has neither threads nor queues, so that they change
//! nothing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::local::{LocalOptions, LocalRuntime};
use super::{Kind, Runtime};

/// The settings of a runtime.
#[derive(Debug)]
pub struct Builder {
    flavor: Kind,
    name: Option<Arc<str>>,
}

/// Defines settings that change nothing.
macro_rules! ignored {
    ($($(#[$attribute:meta])* $name:ident($($argument:ty)?);)*) => {$(
        $(#[$attribute])*
        /// Changes nothing.
        pub fn $name(&mut self $(, _: $argument)?) -> &mut Self {
            self
        }
    )*};
}

/// Defines settings of functions that no thread calls.
macro_rules! uncalled {
    ($($name:ident;)*) => {$(
        /// Changes nothing: a simulated process has no threads.
        pub fn $name<F: Fn() + Send + Sync + 'static>(&mut self, _: F) -> &mut Self {
            self
        }
    )*};
}

impl Builder {
    /// Returns the settings of a runtime with one thread.
    pub fn new_current_thread() -> Self {
        Self { flavor: Kind::CurrentThread, name: None }
    }

    /// Returns the settings of a runtime with several threads.
    #[cfg(feature = "rt-multi-thread")]
    pub fn new_multi_thread() -> Self {
        Self { flavor: Kind::MultiThread, name: None }
    }

    ignored! {
        enable_all();
        enable_io();
        enable_time();
        worker_threads(usize);
        max_blocking_threads(usize);
        thread_stack_size(usize);
        thread_keep_alive(Duration);
        global_queue_interval(u32);
        event_interval(u32);
        max_io_events_per_tick(usize);
        max_io_events_per_busy_tick(usize);
        #[cfg(feature = "test-util")]
        start_paused(bool);
    }

    uncalled! {
        on_thread_start;
        on_thread_stop;
        on_thread_park;
        on_thread_unpark;
    }

    /// Changes nothing.
    pub fn thread_name(&mut self, _: impl Into<String>) -> &mut Self {
        self
    }

    /// Changes nothing: a simulated process has no threads.
    pub fn thread_name_fn<F: Fn() -> String + Send + Sync + 'static>(&mut self, _: F) -> &mut Self {
        self
    }

    /// Names the runtime for `Handle::name`.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.name = Some(name.into().into());
        self
    }

    /// Returns the runtime, in the process of the caller.
    ///
    /// # Errors
    ///
    /// None.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let mut runtime = super::here(self.flavor);
        if let Some(handle) = &mut runtime.handle {
            handle.set_name(self.name.clone());
        }
        Ok(runtime)
    }

    /// Returns a runtime for tasks that stay on its thread, in the process of the caller.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process; as tokio's own, if the runtime is to have several threads.
    #[track_caller]
    pub fn build_local(&mut self, _: LocalOptions) -> io::Result<LocalRuntime> {
        assert!(
            matches!(self.flavor, Kind::CurrentThread),
            "multi_thread is not supported for LocalRuntime: use Builder::new_current_thread"
        );
        Ok(LocalRuntime::with_handle(self.build()?.handle().clone()))
    }
}
