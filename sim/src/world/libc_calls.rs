//! Functions of libc through which the standard library and blocking clients leave a program. Their
//! definitions here come before libc's. Inside the code of a process they fail, and the escape is kept;
//! elsewhere they are libc's own.
//!
//! Reading files is allowed, since libraries read their configuration and a backtrace reads the program. Not
//! found are system calls that bypass libc, as the crate rustix makes them, and writes to files that are open
//! already, such as a log.
#![allow(unsafe_code, reason = "functions that replace those of libc have the types of libc's")]

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{FILE, addrinfo, clockid_t, mode_t, msghdr, pid_t, pthread_attr_t, pthread_t, size_t, sockaddr};
use libc::{socklen_t, ssize_t, timespec};

use super::current;
use super::escape::{self, Outside, is_refused};
use super::getaddrinfo;

/// A function of libc, found when it is first called.
struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Returns its address; null if libc has no such function. Takes no lock, since an allocator may open
    /// files.
    fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Sets `errno` to "operation not permitted" and returns `result`.
fn refused<T>(result: T) -> T {
    // SAFETY: the pointer is valid for this thread.
    unsafe { *libc::__errno_location() = libc::EPERM };
    result
}

/// Defines functions that replace libc's. Each says what it reaches, the condition under which it does (if
/// not always), the result of a refused call, and the condition under which another function simulates it.
macro_rules! replace {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(; $dots:tt)?) -> $result:ty
        : $outside:ident $(if $reaches:expr)? => $failed:expr
        $(, or $simulated:expr => $call:expr)?;)*) => {$(
        /// Replaces libc's function of that name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            static REAL: Real = Real::new(match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            });
            $(if $simulated {
                // SAFETY: the arguments are the caller's own.
                #[allow(unused_unsafe, reason = "not every function has such arguments")]
                return unsafe { $call };
            })?
            if true $(&& $reaches)? && is_refused(Outside::$outside, stringify!($name)) {
                return $failed;
            }
            let real = REAL.address();
            if real.is_null() {
                return $failed;
            }
            // SAFETY: libc's function of this name has this type.
            let real = unsafe {
                mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),* $(, $dots)?) -> $result>(real)
            };
            // SAFETY: the arguments are the caller's own.
            unsafe { real($($arg),*) }
        }
    )*};
}

/// Replaces libc's `syscall`: a program that asks for random bytes by the number of the call, as the crate
/// `getrandom` does, gets those of the simulation.
///
/// # Safety
///
/// As for libc's. It takes integers only, six at most, so that they are passed as those of a function with
/// variable arguments are.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    first: c_long,
    second: c_long,
    third: c_long,
    fourth: c_long,
    fifth: c_long,
    sixth: c_long,
) -> c_long {
    static REAL: Real = Real::new(c"syscall");
    if number == libc::SYS_getrandom {
        // SAFETY: the arguments of this call have these types.
        return unsafe { libc::getrandom(first as *mut c_void, second as size_t, third as c_uint) as c_long };
    }
    let real = REAL.address();
    if real.is_null() {
        return refused(-1);
    }
    // SAFETY: libc's function has this type, and the arguments are the caller's own.
    unsafe {
        let real = mem::transmute::<*mut c_void, unsafe extern "C" fn(c_long, ...) -> c_long>(real);
        real(number, first, second, third, fourth, fifth, sixth)
    }
}

// The network. A socket may have been opened outside, so that its later use counts, too. A simulated tokio
// opens sockets that it never uses: their options are set, and they stand for simulated ones.
replace! {
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int
        : Network if !current::is_guest() => refused(-1);
    fn listen(socket: c_int, backlog: c_int) -> c_int: Network => refused(-1);
    fn connect(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int: Network => refused(-1);
    fn bind(socket: c_int, address: *const sockaddr, length: socklen_t) -> c_int: Network => refused(-1);
    fn accept4(socket: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int
        : Network => refused(-1);
    fn send(socket: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t
        : Network => refused(-1);
    fn sendto(
        socket: c_int,
        bytes: *const c_void,
        length: size_t,
        flags: c_int,
        address: *const sockaddr,
        address_length: socklen_t
    ) -> ssize_t: Network => refused(-1);
    fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t: Network => refused(-1);
    fn recv(socket: c_int, bytes: *mut c_void, length: size_t, flags: c_int) -> ssize_t
        : Network => refused(-1);
    fn recvfrom(
        socket: c_int,
        bytes: *mut c_void,
        length: size_t,
        flags: c_int,
        address: *mut sockaddr,
        address_length: *mut socklen_t
    ) -> ssize_t: Network => refused(-1);
    fn recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t: Network => refused(-1);
    fn getaddrinfo(
        node: *const c_char,
        service: *const c_char,
        hints: *const addrinfo,
        found: *mut *mut addrinfo
    ) -> c_int: Lookup => libc::EAI_FAIL, or current::is_guest() && !escape::is_allowed()
        => getaddrinfo::find(node, service, hints, found);
}

// Files, where the call changes one.
replace! {
    fn open(path: *const c_char, flags: c_int, mode: mode_t; ...) -> c_int
        : File if changes(path, flags) => refused(-1);
    fn open64(path: *const c_char, flags: c_int, mode: mode_t; ...) -> c_int
        : File if changes(path, flags) => refused(-1);
    fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t; ...) -> c_int
        : File if changes(path, flags) => refused(-1);
    fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t; ...) -> c_int
        : File if changes(path, flags) => refused(-1);
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE
        : File if writes(mode) => refused(ptr::null_mut());
    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE
        : File if writes(mode) => refused(ptr::null_mut());
    fn mkdir(path: *const c_char, mode: mode_t) -> c_int: File => refused(-1);
    fn rmdir(path: *const c_char) -> c_int: File => refused(-1);
    fn unlink(path: *const c_char) -> c_int: File => refused(-1);
    fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int: File => refused(-1);
    fn rename(from: *const c_char, to: *const c_char) -> c_int: File => refused(-1);
    fn link(from: *const c_char, to: *const c_char) -> c_int: File => refused(-1);
    fn linkat(
        from_folder: c_int,
        from: *const c_char,
        to_folder: c_int,
        to: *const c_char,
        flags: c_int
    ) -> c_int: File => refused(-1);
    fn symlink(from: *const c_char, to: *const c_char) -> c_int: File => refused(-1);
    fn chmod(path: *const c_char, mode: mode_t) -> c_int: File => refused(-1);
}

// Sleeps. A refused one returns at once as if it had slept, since callers don't expect that it fails. A sleep
// of no time is allowed: by it mimalloc gives way to another thread of the program, which runs another world.
replace! {
    fn nanosleep(length: *const timespec, left: *mut timespec) -> c_int: Sleep => 0;
    fn clock_nanosleep(clock: clockid_t, flags: c_int, length: *const timespec, left: *mut timespec) -> c_int
        : Sleep => 0;
    fn usleep(micros: c_uint) -> c_int: Sleep => 0;
    fn sleep(seconds: c_uint) -> c_uint: Sleep if seconds > 0 => 0;
}

// Threads and programs. `pthread_attr_init` comes before madsim's, which refuses it without naming the line.
replace! {
    fn pthread_attr_init(attributes: *mut pthread_attr_t) -> c_int: Thread if false => libc::EAGAIN;
    fn pthread_create(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        main: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void
    ) -> c_int: Thread => libc::EAGAIN;
    fn getpid() -> pid_t: Program if false => -1, or current::is_in_process() => current::pid();
    fn fork() -> pid_t: Program => refused(-1);
    fn execve(path: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int
        : Program => refused(-1);
    fn execvp(path: *const c_char, arguments: *const *const c_char) -> c_int: Program => refused(-1);
    fn posix_spawn(
        pid: *mut pid_t,
        path: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        variables: *const *mut c_char
    ) -> c_int: Program => libc::EPERM;
    fn posix_spawnp(
        pid: *mut pid_t,
        path: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        variables: *const *mut c_char
    ) -> c_int: Program => libc::EPERM;
    fn system(command: *const c_char) -> c_int: Program => refused(-1);
    fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE: Program => refused(ptr::null_mut());
}

/// Returns true if opening `path` with these flags can change a file. A device that keeps nothing is none.
fn changes(path: *const c_char, flags: c_int) -> bool {
    let writing = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    // SAFETY: the caller of `open` passes a C string.
    flags & writing != 0 && !path.is_null() && unsafe { CStr::from_ptr(path) } != c"/dev/null"
}

/// Returns true if a stream that is opened in this mode can be written.
fn writes(mode: *const c_char) -> bool {
    // SAFETY: the caller of `fopen` passes a C string.
    let mode = unsafe { CStr::from_ptr(mode) };
    mode.to_bytes().iter().any(|letter| b"wa+".contains(letter))
}
