//! What the numbers were measured on.

use std::fs;
use std::thread::available_parallelism;

use serde::Serialize;

/// The machine of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// How many cores it has.
    pub cores: usize,
    /// What the processor calls itself.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// Whether this program was built with optimisation.
    pub optimised: bool,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kib = value_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cores: available_parallelism().map_or(1, usize::from),
            processor: value_of("/proc/cpuinfo", "model name").unwrap_or_default(),
            kernel: kernel.trim().to_owned(),
            memory_mib: kib.unwrap_or(0) / 1024,
            optimised: !cfg!(debug_assertions),
        }
    }
}

fn value_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
