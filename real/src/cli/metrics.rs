//! The flag that serves the metrics of this process.

use std::error::Error;

use clap::Args;
use real::serve::{count, listen, serve_metrics};
use tokio::runtime::Runtime;

/// The flag for serving `/metrics`.
#[derive(Args)]
pub(crate) struct MetricsArgs {
    /// Serves /metrics in Prometheus' format on this port of 127.0.0.1, or on HOST:PORT. Port 0 picks a free
    /// one and prints it.
    #[arg(long = "metrics", env = "DLOCK_METRICS", value_name = "PORT")]
    address: Option<String>,
}

impl MetricsArgs {
    /// Starts counting, and serves the metrics for as long as `executor` runs.
    pub(crate) fn serve(&self, executor: &Runtime) -> Result<(), Box<dyn Error>> {
        let Some(address) = &self.address else { return Ok(()) };
        let counts = count()?;
        let is_port = address.parse::<u16>().is_ok();
        let address = if is_port { format!("127.0.0.1:{address}") } else { address.clone() };
        let listener = executor.block_on(listen(&address))?;
        eprintln!("metrics on http://{}/metrics", listener.local_addr()?);
        executor.spawn(serve_metrics(listener, counts));
        Ok(())
    }
}
