//! The flag that serves the metrics of this process.

use std::error::Error;

use clap::Args;
use real::metrics::{Targets, count, serve_metrics, serve_metrics_aside};
use real::serve::listen;
use tokio::runtime::Runtime;

/// The flag for serving `/metrics`.
#[derive(Args)]
pub(crate) struct MetricsArgs {
    /// Serves /metrics in Prometheus' format on this port of 127.0.0.1, or on HOST:PORT. Port 0 picks a free
    /// one and prints it.
    #[arg(long = "metrics", env = real::metrics::VARIABLE, value_name = "PORT")]
    address: Option<String>,
}

impl MetricsArgs {
    /// Starts counting, and serves the metrics of `command` for as long as `executor` runs.
    pub(crate) fn serve(&self, command: &'static str, executor: &Runtime) -> Result<(), Box<dyn Error>> {
        let Some(address) = self.address() else { return Ok(()) };
        let counts = count(command)?;
        let listener = executor.block_on(listen(&address))?;
        announce(&listener.local_addr()?.to_string());
        executor.spawn(serve_metrics(listener, counts, Targets::default()));
        Ok(())
    }

    /// Starts counting, and serves the metrics of `command` in a thread of its own until the process ends.
    /// Returns the list of its children with metrics of their own, if it serves any.
    pub(crate) fn serve_aside(&self, command: &'static str) -> Result<Option<Targets>, Box<dyn Error>> {
        let Some(address) = self.address() else { return Ok(None) };
        let targets = Targets::default();
        announce(&serve_metrics_aside(&address, count(command)?, targets.clone())?);
        Ok(Some(targets))
    }

    fn address(&self) -> Option<String> {
        let address = self.address.as_ref()?;
        let is_port = address.parse::<u16>().is_ok();
        Some(if is_port { format!("127.0.0.1:{address}") } else { address.clone() })
    }
}

fn announce(address: &str) {
    eprintln!("metrics on http://{address}/metrics");
}
