//! Serving the clients that wait for elements.

use super::core::Core;
use super::state::Record;

impl Core {
    /// Gives the elements of new keys to the clients that wait for them, to those first that waited longest.
    /// Returns the names of the clients and their effects.
    pub(crate) fn serve_waiting(&mut self) -> Vec<(String, Record)> {
        let mut served = Vec::new();
        while let Some((database, key)) = self.state.wishes.next_new() {
            let mut at = 0;
            while at < self.state.wishes.len() {
                match self.serve_one(at, database, &key) {
                    Some(one) => served.push(one),
                    None => at += 1,
                }
            }
        }
        served
    }

    /// Serves the waiter at the place `at`. Returns `None` if it got no elements, and so goes on waiting.
    fn serve_one(&mut self, at: usize, database: usize, key: &[u8]) -> Option<(String, Record)> {
        let waiter = self.state.wishes.take_waiter(at, database, key)?;
        let Some(reply) = self.state.within(database, |state| waiter.serve(state, key)) else {
            self.state.wishes.put_back(at, waiter);
            return None;
        };
        let label = self.state.wishes.end(waiter, reply);
        self.publish();
        let mut record = Record::default();
        self.take_record(&mut record);
        Some((label, record))
    }
}
