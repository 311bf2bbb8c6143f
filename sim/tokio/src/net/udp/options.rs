//! The options of a UDP socket, which change nothing. Broadcast and multicast are not simulated.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::UdpSocket;
use crate::host;

const INSTEAD: &str = "send a datagram to each receiver";

/// Defines options of the real socket.
macro_rules! options {
    ($($(#[$cfg:meta])? $get:ident, $set:ident: $type:ty = $real:ident, $set_real:ident;)*) => {$(
        /// Returns the option, which changes nothing.
        ///
        /// # Errors
        ///
        /// Those of the real machine.
        $(#[$cfg])?
        pub fn $get(&self) -> io::Result<$type> {
            self.placeholder.socket().$real()
        }

        /// Sets the option, which changes nothing.
        ///
        /// # Errors
        ///
        /// Those of the real machine.
        $(#[$cfg])?
        pub fn $set(&self, value: $type) -> io::Result<()> {
            self.placeholder.socket().$set_real(value)
        }
    )*};
}

/// Defines calls that are refused.
macro_rules! refused {
    ($($name:ident($($arg:ty),*);)*) => {$(
        /// Refused: broadcast and multicast are not simulated.
        ///
        /// # Errors
        ///
        /// Always: the run ends with an error that names the line.
        pub fn $name(&self, $(_: $arg),*) -> io::Result<()> {
            Err(host::refused(concat!("tokio::net::UdpSocket::", stringify!($name)), INSTEAD))
        }
    )*};
}

impl UdpSocket {
    options! {
        multicast_loop_v4, set_multicast_loop_v4: bool = multicast_loop_v4, set_multicast_loop_v4;
        multicast_ttl_v4, set_multicast_ttl_v4: u32 = multicast_ttl_v4, set_multicast_ttl_v4;
        multicast_loop_v6, set_multicast_loop_v6: bool = multicast_loop_v6, set_multicast_loop_v6;
        ttl, set_ttl: u32 = ttl_v4, set_ttl_v4;
        tos_v4, set_tos_v4: u32 = tos_v4, set_tos_v4;
        tos, set_tos: u32 = tos_v4, set_tos_v4;
        #[cfg(target_os = "linux")]
        tclass_v6, set_tclass_v6: u32 = tclass_v6, set_tclass_v6;
    }

    refused! {
        join_multicast_v4(Ipv4Addr, Ipv4Addr);
        join_multicast_v6(&Ipv6Addr, u32);
        leave_multicast_v4(Ipv4Addr, Ipv4Addr);
        leave_multicast_v6(&Ipv6Addr, u32);
    }

    /// Returns false.
    ///
    /// # Errors
    ///
    /// None.
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Refuses to allow broadcast, which is not simulated.
    ///
    /// # Errors
    ///
    /// For `true`: the run ends with an error that names the line.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        if on { Err(host::refused("tokio::net::UdpSocket::set_broadcast", INSTEAD)) } else { Ok(()) }
    }

    /// Returns `None`: it is bound to no interface.
    ///
    /// # Errors
    ///
    /// None.
    #[cfg(target_os = "linux")]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Refuses an interface: the hosts of a world have only one.
    ///
    /// # Errors
    ///
    /// For an interface: the run ends with an error that names the line.
    #[cfg(target_os = "linux")]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        match interface {
            Some(_) => Err(host::refused("tokio::net::UdpSocket::bind_device", "bind an address")),
            None => Ok(()),
        }
    }
}
