//! The machine of a measurement.

use std::fmt;
use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use super::LabError;

/// The load average above which no result for a page is measured.
pub(crate) const LOAD_MAX: f64 = 1.0;

/// The machine of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The number of cores.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// The mean number of runnable processes in the minute before the start. If it is far above zero, the
    /// machine was busy.
    pub load_average: f64,
    /// The build profile of this program: `release` or `debug`.
    pub build: String,
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Self {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let load = read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());
        Self {
            cores: available_parallelism().map_or(1, usize::from),
            processor: value_of("/proc/cpuinfo", "model name").unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_mib: memory_bytes("MemTotal").unwrap_or(0) / 1024 / 1024,
            load_average: load.unwrap_or(0.0),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }

    /// Returns the memory, in bytes, that processes can still take without swapping; `None` if the kernel
    /// does not say.
    pub fn available_bytes() -> Option<u64> {
        memory_bytes("MemAvailable")
    }

    /// Refuses a busy machine.
    ///
    /// # Errors
    ///
    /// [`LabError::Busy`] if the load average is above 1.
    pub fn must_be_idle(&self) -> Result<(), LabError> {
        let Self { load_average: load, .. } = *self;
        if load > LOAD_MAX { Err(LabError::Busy { load, most: LOAD_MAX }) } else { Ok(()) }
    }

    /// Returns true if `other` is the same machine, at any load and in any build.
    pub fn is(&self, other: &Self) -> bool {
        let Self { cores, processor, kernel, memory_mib, load_average: _, build: _ } = self;
        (cores, processor, kernel, memory_mib)
            == (&other.cores, &other.processor, &other.kernel, &other.memory_mib)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, kernel, memory_mib, load_average, build } = self;
        write!(
            f,
            "{cores} cores ({processor}), {memory_mib} MiB, Linux {kernel}, load average {load_average} at \
             the start, {build} build"
        )
    }
}

fn memory_bytes(name: &str) -> Option<u64> {
    let kib: u64 = value_of("/proc/meminfo", name)?.split(' ').next()?.parse().ok()?;
    Some(kib * 1024)
}

fn value_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn a_busy_machine_is_refused() {
        let with = |load_average| Machine { load_average, ..Machine::this() };
        assert!(with(1.0).must_be_idle().is_ok());
        let error = with(1.01).must_be_idle().unwrap_err().to_string();
        assert!(error.contains("its load average is 1.01"), "{error}");
    }
}
