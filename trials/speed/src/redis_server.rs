//! A server with as much of Redis as the lock needs: SET with NX and PX, GET, DEL. turmoil has none.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::Instant;

use crate::net::Net;

/// Values with the ends of their lives.
type Table = Arc<Mutex<BTreeMap<String, (String, Instant)>>>;

/// Serves on port 6379.
pub async fn redis_server<N: Net>() -> io::Result<()> {
    let mut listener = N::listen(6379).await?;
    let table = Table::default();
    loop {
        let (stream, _) = N::accept(&mut listener).await?;
        tokio::spawn(answer(BufReader::new(stream), table.clone()));
    }
}

async fn answer<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    mut stream: BufReader<S>,
    table: Table,
) -> io::Result<()> {
    while let Some(command) = command(&mut stream).await? {
        let reply = execute(&command, &table);
        stream.write_all(reply.as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// Reads a command: an array of bulk strings.
async fn command<S: tokio::io::AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
) -> io::Result<Option<Vec<String>>> {
    let Some(count) = number(stream).await? else { return Ok(None) };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut word = vec![0; length + 2];
        stream.read_exact(&mut word).await?;
        word.truncate(length);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Ok(Some(words))
}

/// Reads the number of a line such as `*3` or `$5`.
async fn number<S: tokio::io::AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Option<usize>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let number = line.trim_end().get(1..).and_then(|number| number.parse().ok());
    number.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn execute(command: &[String], table: &Table) -> String {
    let mut table = table.lock().unwrap();
    let now = Instant::now();
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words[..] {
        ["SET", key, value, "NX", "PX", millis] => {
            if table.get(key).is_some_and(|(_, end)| *end > now) {
                return "$-1\r\n".to_owned();
            }
            let end = now + Duration::from_millis(millis.parse().unwrap());
            table.insert(key.to_owned(), (value.to_owned(), end));
            "+OK\r\n".to_owned()
        }
        ["GET", key] => match table.get(key).filter(|(_, end)| *end > now) {
            Some((value, _)) => format!("${}\r\n{value}\r\n", value.len()),
            None => "$-1\r\n".to_owned(),
        },
        ["DEL", key] => format!(":{}\r\n", u8::from(table.remove(key).is_some())),
        // A client names itself when it connects.
        ["CLIENT", ..] => "+OK\r\n".to_owned(),
        _ => format!("-ERR unknown command {words:?}\r\n"),
    }
}
