//! Calls that would leave the simulation end the run with an error that names the line.

use std::os::fd::AsFd;

use sim::Sim;
use tokio::io::unix::{AsyncFd, AsyncFdRegisterError, TryIoError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::process::{Child, Command};

/// Runs a process `a`, and checks the error of the run.
fn refused<F: Future<Output = ()> + Send + 'static>(
    call: &str,
    instead: &str,
    main: impl Fn() -> F + Send + Sync + 'static,
) {
    let mut sim = Sim::new(7);
    sim.process("a", move |_| main());
    let error = sim.run().unwrap_err().to_string();
    for words in [call, instead, "tests/all/refused.rs"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// Uses all that tokio has for a program, to see that it compiles.
async fn program() -> std::io::Result<()> {
    let mut command = Command::new("true");
    command.arg("-x").args(["-y", "-z"]).env("A", "B").envs([("C", "D")]).env_remove("E").env_clear();
    command.current_dir("/").uid(1).gid(2).arg0("t").process_group(0).kill_on_drop(true);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut child: Child = command.spawn()?;
    if let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) {
        input.write_all(b"x").await?;
        output.read_to_end(&mut Vec::new()).await?;
        command.stdin(std::process::Stdio::try_from(output)?);
    }
    child.start_kill()?;
    child.kill().await?;
    assert!(child.wait().await?.success() && child.id().is_none() && child.try_wait()?.is_some());
    assert!(child.wait_with_output().await?.status.success());
    let (status, output) = (command.status(), command.output());
    assert_eq!(status.await?, output.await?.status);
    Ok(())
}

/// Waits for a descriptor, as libraries do.
async fn readable(descriptor: AsyncFd<std::net::UdpSocket>) -> std::io::Result<usize> {
    loop {
        let mut guard = descriptor.readable().await?;
        match guard.try_io(|inner| inner.get_ref().recv(&mut [0])) {
            Ok(result) => return result,
            Err(TryIoError { .. }) => continue,
        }
    }
}

#[test]
fn a_program_is_refused() {
    let instead = "add the program as a process of the world";
    refused("tokio::process::Command", instead, || async { program().await.unwrap() });
    refused("tokio::process::Command", instead, || async {
        drop(Command::from(std::process::Command::new("true")));
    });
}

#[test]
fn a_descriptor_of_the_real_machine_is_refused() {
    let instead = "connect through tokio::net, whose sockets are simulated";
    refused("tokio::io::unix::AsyncFd", instead, || async {
        if let Ok(descriptor) =
            AsyncFd::with_interest(std::net::UdpSocket::from(socket()), Interest::READABLE)
        {
            readable(descriptor).await.unwrap();
        }
    });
    refused("tokio::io::unix::AsyncFd", instead, || async {
        let error: AsyncFdRegisterError<_> = AsyncFd::try_new(socket()).unwrap_err();
        let words = error.to_string();
        let (_, cause) = error.into_parts();
        assert_eq!(cause.to_string(), words);
    });
}

/// Returns a socket of the real machine that is not connected.
fn socket() -> std::os::fd::OwnedFd {
    tokio::net::TcpSocket::new_v4().unwrap().as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn a_simulated_file_has_no_descriptor() {
    refused("tokio::fs::File::as_fd", "open the file through tokio::fs", || async {
        let file = tokio::fs::File::create("/tmp/data").await.unwrap();
        let _ = file.as_fd();
    });
}

#[test]
fn a_file_of_the_real_machine_is_refused() {
    use std::os::fd::{FromRawFd as _, IntoRawFd as _};

    refused("tokio::fs::File of a real file", "open the file through tokio::fs", || async {
        #[allow(unsafe_code, reason = "the descriptor is given away")]
        // SAFETY: nothing else closes it.
        let file = unsafe { tokio::fs::File::from_raw_fd(socket().into_raw_fd()) };
        drop(file.metadata().await);
    });
}
