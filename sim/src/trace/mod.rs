//! Runs for people and for other programs: [`text`] writes a line for each event, [`side_by_side`] compares
//! runs, [`messages`] reads what processes sent each other from the bytes.
//! [`pcap`] writes a run as a packet capture.

pub mod messages;
pub mod pcap;
mod side;

pub use history::text;
pub use side::side_by_side;
