//! `getaddrinfo` inside a process that runs on another runtime's interface: blocking resolvers, as that of
//! hyper-util, find the hosts of the world.
#![allow(unsafe_code, reason = "a function that replaces one of libc has the types of libc's")]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::mem;
use std::net::IpAddr;
use std::ptr;
use std::task::{Context, Poll, Waker};

use libc::{addrinfo, sockaddr_in};

use super::{blocking, guest};

/// An answer and its address in one piece of memory, as glibc allocates them, so that libc's own
/// `freeaddrinfo` frees it.
#[repr(C)]
struct Answer {
    info: addrinfo,
    address: sockaddr_in,
}

/// Looks a host up in the world, and writes the answer to `found`. Returns libc's code.
///
/// # Safety
///
/// As for libc's `getaddrinfo`: the first two are C strings or null, `hints` is valid or null, and `found` is
/// valid for writes.
pub(super) unsafe fn find(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    found: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller passes C strings or null.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().ok());
    let Some(Some(host)) = text(node) else { return libc::EAI_NONAME };
    let port = text(service).flatten().map_or(Ok(0), str::parse::<u16>);
    let Ok(port) = port else { return libc::EAI_SERVICE };
    let addresses = match look_up(host) {
        Ok(addresses) => addresses,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return libc::EAI_NONAME,
        Err(_) => return libc::EAI_AGAIN,
    };
    // SAFETY: the caller passes hints or null.
    let kind = if hints.is_null() { 0 } else { unsafe { (*hints).ai_socktype } };
    let mut list = ptr::null_mut();
    for address in addresses.iter().rev() {
        let IpAddr::V4(address) = address else { continue };
        // SAFETY: plain data, for which zeros are valid.
        let mut answer: Answer = unsafe { mem::zeroed() };
        answer.address.sin_family = libc::AF_INET as libc::sa_family_t;
        answer.address.sin_port = port.to_be();
        answer.address.sin_addr.s_addr = u32::from(*address).to_be();
        answer.info.ai_family = libc::AF_INET;
        answer.info.ai_socktype = if kind == 0 { libc::SOCK_STREAM } else { kind };
        answer.info.ai_addrlen = mem::size_of::<sockaddr_in>() as libc::socklen_t;
        answer.info.ai_next = list;
        // SAFETY: the size is not zero.
        let place = unsafe { libc::malloc(mem::size_of::<Answer>()) }.cast::<Answer>();
        if place.is_null() {
            return libc::EAI_MEMORY;
        }
        // SAFETY: the memory is fresh, and large enough; the pointer to the address stays within it.
        unsafe {
            place.write(answer);
            (*place).info.ai_addr = (&raw mut (*place).address).cast();
            list = &raw mut (*place).info;
        }
    }
    if list.is_null() {
        return libc::EAI_NONAME;
    }
    // SAFETY: the caller passes a place that can be written.
    unsafe { found.write(list) };
    0
}

/// Looks a host up. Waits, if the code may block; else fails if that takes time.
fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let process = guest::current().ok_or(io::ErrorKind::NotConnected)?;
    let mut lookup = process.look_up(host);
    let mut answer = None;
    let mut poll = |cx: &mut Context<'_>| match lookup.as_mut().poll(cx) {
        Poll::Ready(found) => {
            answer = Some(found);
            Poll::Ready(())
        }
        Poll::Pending => Poll::Pending,
    };
    if blocking::block_on(blocking::Caller::C, &mut poll).is_err() {
        let _ = poll(&mut Context::from_waker(Waker::noop()));
    }
    answer.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}
