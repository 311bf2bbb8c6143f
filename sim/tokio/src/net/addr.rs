//! Addresses, and the names of hosts.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::pin::Pin;

use send_wrapper::SendWrapper;

use crate::host;

/// Addresses to connect to or to listen on. As tokio's own, it can't be implemented elsewhere.
pub trait ToSocketAddrs: sealed::ToAddresses {}

impl<T: sealed::ToAddresses + ?Sized> ToSocketAddrs for T {}

/// Addresses, or the name of a host that is looked up.
pub(super) type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + Sync>>;

mod sealed {
    /// Gives addresses.
    pub trait ToAddresses {
        #[doc(hidden)]
        fn to_addresses(&self) -> super::Found;
    }
}

/// Looks up the addresses of a host of the world.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if the world has no such host, [`io::ErrorKind::InvalidInput`] if the port is
/// missing.
pub async fn lookup_host<T: ToSocketAddrs>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>> {
    Ok(find(host).await?.into_iter())
}

/// Returns the addresses of `host`.
pub(super) fn find(host: impl ToSocketAddrs) -> Found {
    host.to_addresses()
}

/// Looks up a host, and gives its addresses this port.
fn named(host: &str, port: u16) -> Found {
    // Shareable between threads, as tokio's own futures are.
    let found = SendWrapper::new(host::process().look_up(host));
    Box::pin(async move { Ok(found.await?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()) })
}

fn known(addresses: Vec<SocketAddr>) -> Found {
    Box::pin(std::future::ready(Ok(addresses)))
}

fn invalid(problem: &'static str) -> Found {
    Box::pin(std::future::ready(Err(io::Error::new(io::ErrorKind::InvalidInput, problem))))
}

impl sealed::ToAddresses for str {
    fn to_addresses(&self) -> Found {
        if let Ok(address) = self.parse() {
            return known(vec![address]);
        }
        let Some((host, port)) = self.rsplit_once(':') else { return invalid("invalid socket address") };
        match port.parse() {
            Ok(port) => named(host, port),
            Err(_) => invalid("invalid port value"),
        }
    }
}

impl sealed::ToAddresses for String {
    fn to_addresses(&self) -> Found {
        self.as_str().to_addresses()
    }
}

impl sealed::ToAddresses for (&str, u16) {
    fn to_addresses(&self) -> Found {
        named(self.0, self.1)
    }
}

impl sealed::ToAddresses for (String, u16) {
    fn to_addresses(&self) -> Found {
        named(&self.0, self.1)
    }
}

impl sealed::ToAddresses for &[SocketAddr] {
    fn to_addresses(&self) -> Found {
        known(self.to_vec())
    }
}

impl<T: ToSocketAddrs + ?Sized> sealed::ToAddresses for &T {
    fn to_addresses(&self) -> Found {
        (**self).to_addresses()
    }
}

macro_rules! one_address {
    ($($type:ty),*) => {$(
        impl sealed::ToAddresses for $type {
            fn to_addresses(&self) -> Found {
                known(vec![(*self).into()])
            }
        }
    )*};
}

one_address!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));
