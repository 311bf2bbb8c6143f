//! A run as a packet capture (pcapng), which Wireshark and tshark dissect: Redis, HTTP, gRPC and ZooKeeper on
//! their usual ports.
//!
//! - Each process has an address, `10.0.0.1` for the first, and a record with its name.
//! - A packet is captured at its sender, at the true time of sending, counted from the same epoch as the wall
//!   clocks of the simulation. The receiver acknowledges a segment when it arrives, by a packet of its own or
//!   with what it sends at once, so that the capture has the time of the arrival, too. No acknowledgements
//!   travel in the simulation.
//! - A segment that a cut link holds is there twice: when it was first sent, and as a retransmission when the
//!   link healed. A lost segment is never acknowledged. A comment on the packet says so.

mod tcp;

use std::borrow::Cow;
use std::time::Duration;

use etherparse::{PacketBuilder, TcpOptionElement};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::name_resolution::{Ipv4Record, NameResolutionBlock, Record};
use pcap_file::{DataLink, Endianness, PcapResult};

use self::tcp::Packet;
use crate::world::capture::Capture;
use crate::world::clock::EPOCH_NANOS;

/// The most bytes of a packet's payload: what fits into an IPv4 packet beside its headers.
const PAYLOAD_BYTES_MAX: usize = 65_495;

/// The window of every packet, and the power of two that it counts: 8 MiB, so that no window is ever full.
const WINDOW: u16 = u16::MAX;
const WINDOW_SCALE: u8 = 7;

/// Hops that a packet may take.
const HOPS_MAX: u8 = 64;

/// The resolution of timestamps: ten to the minus ninth second.
const NANOSECONDS: u8 = 9;

/// Returns the capture as a pcapng file, with the same bytes on every machine.
pub fn pcap(capture: &Capture) -> Vec<u8> {
    // Writing to a vector can't fail.
    written(capture).unwrap_or_default()
}

fn written(capture: &Capture) -> PcapResult<Vec<u8>> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little)?;
    let options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed("simulation")),
        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
    ];
    // Packets begin with their IP header, as no process has a hardware address.
    writer.write_pcapng_block(InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options })?;
    writer.write_pcapng_block(names(capture))?;
    for packet in tcp::packets(capture) {
        write(&mut writer, &packet)?;
    }
    Ok(writer.into_inner())
}

/// Returns the address of the process with this number.
fn address(process: usize) -> [u8; 4] {
    // A world of more than 2^24 processes has no names either.
    let [_, b, c, d] = u32::try_from(process + 1).unwrap_or(u32::MAX).to_be_bytes();
    [10, b, c, d]
}

fn names(capture: &Capture) -> NameResolutionBlock<'_> {
    let record = |(number, name)| {
        let (ip_addr, names) = (Cow::Owned(address(number).to_vec()), vec![Cow::Borrowed(name)]);
        Record::Ipv4(Ipv4Record { ip_addr, names })
    };
    let names = capture.processes.iter().map(String::as_str).enumerate();
    NameResolutionBlock { records: names.map(record).collect(), options: Vec::new() }
}

/// Writes a segment as one packet, or as several if it is too long for one.
fn write(writer: &mut PcapNgWriter<Vec<u8>>, packet: &Packet<'_>) -> PcapResult<()> {
    let mut chunks: Vec<&[u8]> = packet.payload.chunks(PAYLOAD_BYTES_MAX).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    let mut seq = packet.seq;
    for chunk in chunks {
        let data = bytes(packet, seq, chunk);
        seq = seq.wrapping_add(chunk.len() as u32);
        let comment = packet.comment.as_deref().map(|text| EnhancedPacketOption::Comment(text.into()));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(EPOCH_NANOS.saturating_add(packet.at)),
            original_len: data.len() as u32,
            data: data.into(),
            options: comment.into_iter().collect(),
        };
        writer.write_pcapng_block(block)?;
    }
    Ok(())
}

/// Returns the bytes of a packet, with its checksums.
fn bytes(packet: &Packet<'_>, seq: u32, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (address(packet.from.process), address(packet.to.process));
    let mut builder =
        PacketBuilder::ipv4(from, to, HOPS_MAX).tcp(packet.from.port, packet.to.port, seq, WINDOW);
    if packet.flags.syn {
        let options = [
            TcpOptionElement::MaximumSegmentSize(PAYLOAD_BYTES_MAX as u16),
            TcpOptionElement::WindowScale(WINDOW_SCALE),
        ];
        builder = builder.syn();
        // Two short options always fit into a header.
        builder = match builder.options(&options) {
            Ok(builder) => builder,
            Err(_) => return Vec::new(),
        };
    }
    if let Some(ack) = packet.ack {
        builder = builder.ack(ack);
    }
    if packet.flags.fin {
        builder = builder.fin();
    }
    if packet.flags.rst {
        builder = builder.rst();
    }
    if !payload.is_empty() {
        builder = builder.psh();
    }
    let mut bytes = Vec::with_capacity(builder.size(payload.len()));
    // Writing to a vector can't fail, and the payload fits.
    let _ = builder.write(&mut bytes, payload);
    bytes
}
