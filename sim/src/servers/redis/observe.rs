//! Watching a server from outside: for traces, histories and faults that wait for a command.

use super::effects::Effect;

/// Told of everything that a server does, in order. It is called while no lock is held, so it may use the server.
pub trait Observer: Send + Sync {
    /// What a command or script of `client` did to the keys. Keys that expired on their own come with the name of the
    /// server as the client.
    fn changed(&self, client: &str, effects: &[Effect]) {
        let _ = (client, effects);
    }

    /// A command of `client` was executed, and its reply has not been sent. Commands inside scripts are told too, the
    /// script's own EVALSHA first. `command` is in lower case.
    fn executed(&self, client: &str, command: &'static str) {
        let _ = (client, command);
    }
}

/// Watches nothing.
impl Observer for () {}
