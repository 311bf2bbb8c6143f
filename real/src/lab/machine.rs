//! What the numbers were measured on.

use std::fmt;
use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// The machine of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// How many cores it has.
    pub cores: usize,
    /// What the processor calls itself.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// How many processes wanted to run when this began: the mean of one minute. Much above zero, others were at work too.
    pub load_average: f64,
    /// How this program was built: `release` or `debug`.
    pub build: String,
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        let kib = value_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let load = read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());
        Self {
            cores: available_parallelism().map_or(1, usize::from),
            processor: value_of("/proc/cpuinfo", "model name").unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_mib: kib.unwrap_or(0) / 1024,
            load_average: load.unwrap_or(0.0),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, kernel, memory_mib, load_average, build } = self;
        write!(
            f,
            "{cores} cores ({processor}), {memory_mib} MiB, Linux {kernel}, load average {load_average} at the start, \
             {build} build"
        )
    }
}

fn value_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
