//! A Redis server for the four scripts of a lock, and for the commands of newer servers that replace two of
//! them: it speaks RESP2 over streams in memory, with injected faults.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{Instant, Runtime};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::World;

/// The fault of one call. A `PUBLISH` takes none.
#[derive(Clone, Copy)]
pub enum Fault {
    /// No fault.
    None,
    /// The call is executed and never answered; the connection stays silent from then on.
    LoseAnswer,
    /// The call is executed and the connection closed.
    Reset,
    /// The call arrives after that time; later requests on the connection wait behind it.
    Delay(Duration),
    /// The connection is closed at once, but the call is executed after that time.
    Late(Duration),
    /// The server answers with this error.
    Error(&'static str),
}

#[derive(Clone)]
pub struct Server {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    faults: VecDeque<Fault>,
    /// Scripts by digest, once loaded.
    scripts: BTreeMap<String, &'static str>,
    values: BTreeMap<String, (String, Option<Instant>)>,
    connections: usize,
    refuse: bool,
    hang: bool,
    /// The server's ends of unread connections; `None` while it reads.
    unread: Option<Vec<DuplexStream>>,
    log: Vec<String>,
    /// The received commands.
    verbs: Vec<String>,
    /// The server's compare-and-delete, which scripts tell of; with it the server has compare-and-set.
    own: Option<&'static str>,
    /// True for a server before Redis 7, which has no `SET` with `NX` and `GET`.
    lacks_set_nx_get: bool,
    /// The channels of the messages that clients published by themselves.
    published: Vec<String>,
    /// The channels on which scripts that release have notified waiters.
    announced: Vec<String>,
}

impl Server {
    pub fn new(world: World) -> Self {
        Self { world, state: Arc::default() }
    }

    /// Sets the faults of the next script calls, one for each.
    pub fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults.extend(faults);
    }

    pub fn refuse_connections(&self, refuse: bool) {
        self.state.lock().unwrap().refuse = refuse;
    }

    /// Leaves new connections without an answer, as if packets were dropped.
    pub fn hang_connections(&self, hang: bool) {
        self.state.lock().unwrap().hang = hang;
    }

    /// Opens new connections but never reads from them; their buffers are full after 16 bytes.
    pub fn stop_reading(&self, stop: bool) {
        self.state.lock().unwrap().unread = stop.then(Vec::new);
    }

    pub fn forget_scripts(&self) {
        self.state.lock().unwrap().scripts.clear();
    }

    /// Gives the server compare-and-set, and a compare-and-delete of that name; `None` takes them away, from
    /// open connections as well.
    pub fn own_commands(&self, name: Option<&'static str>) {
        self.state.lock().unwrap().own = name;
    }

    /// Takes `SET` with `NX` and `GET` away, as before Redis 7.
    pub fn refuse_set_nx_get(&self) {
        self.state.lock().unwrap().lacks_set_nx_get = true;
    }

    /// Returns the channels of the messages that clients have published by themselves.
    pub fn published(&self) -> Vec<String> {
        self.state.lock().unwrap().published.clone()
    }

    /// Returns the number of messages by which scripts have notified waiters.
    pub fn announced(&self) -> usize {
        self.state.lock().unwrap().announced.len()
    }

    /// Returns the number of connection attempts.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// Returns the executed scripts, each as `connection script owner answer`.
    pub fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    /// Returns the commands received since the last call, with any answer.
    pub fn take_verbs(&self) -> String {
        std::mem::take(&mut self.state.lock().unwrap().verbs).join(" ")
    }

    /// Returns the value at `key`, unless it has expired.
    pub fn value(&self, key: &str) -> Option<String> {
        let now = self.world.now();
        self.state.lock().unwrap().live(key, now).map(|(value, _)| value)
    }

    pub fn set(&self, key: &str, value: &str) {
        self.state.lock().unwrap().values.insert(key.into(), (value.into(), None));
    }

    pub async fn accept(&self) -> io::Result<DuplexStream> {
        let (number, refuse, hang) = {
            let mut state = self.state.lock().unwrap();
            state.connections += 1;
            (state.connections, state.refuse, state.hang)
        };
        // Opening a connection takes a round trip of 100 µs.
        self.world.sleep_until(self.world.now() + Duration::from_micros(100)).await;
        if hang {
            std::future::pending::<()>().await;
        }
        if refuse {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if let Some(unread) = &mut self.state.lock().unwrap().unread {
            let (near, far) = tokio::io::duplex(16);
            unread.push(far);
            return Ok(near);
        }
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server = self.clone();
        self.world.spawn(async move {
            let _ = server.serve(number, far).await;
        });
        Ok(near)
    }

    async fn serve(&self, number: usize, stream: DuplexStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let request = read_request(&mut stream).await?;
            if let Some(answer) = self.answer_early(&request) {
                stream.get_mut().write_all(answer.as_bytes()).await?;
                continue;
            }
            let fault = self.state.lock().unwrap().faults.pop_front().unwrap_or(Fault::None);
            match fault {
                Fault::Delay(time) => self.world.sleep_until(self.world.now() + time).await,
                Fault::Late(time) => {
                    drop(stream);
                    self.world.sleep_until(self.world.now() + time).await;
                    self.state.lock().unwrap().execute(number, &request, self.world.now());
                    return Ok(());
                }
                Fault::Error(text) => {
                    stream.get_mut().write_all(format!("-{text}\r\n").as_bytes()).await?;
                    continue;
                }
                Fault::None | Fault::LoseAnswer | Fault::Reset => {}
            }
            let answer = self.state.lock().unwrap().execute(number, &request, self.world.now());
            match fault {
                Fault::LoseAnswer => return stream.read_to_end(&mut Vec::new()).await.map(|_| ()),
                Fault::Reset => return Ok(()),
                _ => stream.get_mut().write_all(answer.as_bytes()).await?,
            }
        }
    }

    /// Returns the answer to a message, to an unknown command, and `NOSCRIPT` if the script is unknown. EVAL
    /// loads the script.
    fn answer_early(&self, request: &[String]) -> Option<String> {
        let mut state = self.state.lock().unwrap();
        let verb = &*request[0];
        state.verbs.push(verb.into());
        match verb {
            "EVAL" => {
                state.scripts.insert(digest(&request[1]), script_name(&request[1]));
                None
            }
            "EVALSHA" => {
                let missing = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
                (!state.scripts.contains_key(&request[1])).then(|| missing.into())
            }
            "PUBLISH" => {
                state.published.push(request[1].clone());
                Some(":0\r\n".into())
            }
            "PTTL" => None,
            "SET" if request[3] == "NX" && !state.lacks_set_nx_get => None,
            "SET" if state.own.is_none() || request[3] == "NX" => Some("-ERR syntax error\r\n".into()),
            "SET" => None,
            other if Some(other) == state.own => None,
            other => Some(format!("-ERR unknown command '{other}', with args beginning with: \r\n")),
        }
    }
}

fn digest(script: &str) -> String {
    sha1_smol::Sha1::from(script).digest().to_string()
}

impl State {
    fn live(&self, key: &str, now: Instant) -> Option<(String, Option<Instant>)> {
        self.values.get(key).filter(|(_, end)| end.is_none_or(|end| end > now)).cloned()
    }

    fn execute(&mut self, number: usize, request: &[String], now: Instant) -> String {
        let name = match &*request[0] {
            "EVAL" => script_name(&request[1]),
            "EVALSHA" => self.scripts[&request[1]],
            _ => return self.execute_own(number, request, now),
        };
        let keys: usize = request[2].parse().unwrap();
        let (keys, args) = request[3..].split_at(keys);
        let keys_of_each = match name {
            "acquire_many" => 2,
            "release_many" => 1,
            _ => return self.execute_one(number, name, keys, args, now),
        };
        let answers = keys.chunks(keys_of_each).zip(args.chunks(2));
        let answers: Vec<_> =
            answers.map(|(keys, args)| self.execute_one(number, name, keys, args, now)).collect();
        format!("*{}\r\n{}", answers.len(), answers.concat())
    }

    /// Executes `SET key owner NX PX ttl GET`, `PTTL key`, `SET key owner IFEQ owner PX ttl`, `DELEX key IFEQ
    /// owner` or `DELIFEQ key owner`.
    fn execute_own(&mut self, number: usize, request: &[String], now: Instant) -> String {
        let words: Vec<&str> = request.iter().map(String::as_str).collect();
        let (name, args) = match *words {
            ["SET", key, owner, "NX", "PX", ttl, "GET"] => {
                let holder = self.live(key, now).map(|(holder, _)| holder);
                let answer = match &holder {
                    Some(holder) => format!("${}\r\n{holder}\r\n", holder.len()),
                    None => "$-1\r\n".into(),
                };
                if holder.is_none() {
                    self.put(key, &[owner.into(), ttl.into()], now);
                }
                return answer;
            }
            ["PTTL", key] => {
                let end = self.live(key, now).map(|(_, end)| end);
                let left = |end: Instant| i64::try_from(end.saturating_since(now).as_millis()).unwrap();
                return format!(":{}\r\n", end.map_or(-2, |end| end.map_or(-1, left)));
            }
            ["SET", _, owner, "IFEQ", same, "PX", ttl] if owner == same => ("renew", vec![owner, ttl]),
            ["DELEX", _, "IFEQ", owner] | ["DELIFEQ", _, owner] => ("release", vec![owner]),
            _ => panic!("{words:?}"),
        };
        let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
        match (name, &*self.execute_one(number, name, &request[1..2], &args, now)) {
            ("renew", ":1\r\n") => "+OK\r\n".into(),
            ("renew", _) => "$-1\r\n".into(),
            (_, answer) => answer.into(),
        }
    }

    fn execute_one(
        &mut self,
        number: usize,
        name: &str,
        keys: &[String],
        args: &[String],
        now: Instant,
    ) -> String {
        let owner_key = &keys[0];
        let holder = self.live(owner_key, now);
        let owned = holder.as_ref().is_some_and(|(value, _)| *value == args[0]);
        let answer = match name {
            "acquire" | "acquire_many" => self.acquire(owner_key, &keys[1], args, holder, now),
            "renew" if owned => {
                self.put(owner_key, args, now);
                ":1\r\n".into()
            }
            "release" | "release_many" if owned => {
                self.announced.extend(args.get(1).filter(|channel| !channel.is_empty()).cloned());
                self.values.remove(owner_key);
                ":1\r\n".into()
            }
            _ => ":0\r\n".into(),
        };
        self.log.push(format!("{number} {name} {} {}", args[0], answer.trim_end().replace("\r\n", " ")));
        match self.own {
            Some(own) if args.get(2).is_some() => format!("*2\r\n{answer}${}\r\n{own}\r\n", own.len()),
            _ => answer,
        }
    }

    fn acquire(
        &mut self,
        owner_key: &str,
        fence_key: &str,
        args: &[String],
        holder: Option<(String, Option<Instant>)>,
        now: Instant,
    ) -> String {
        let fence = self.values.get(fence_key).map_or(Ok(0), |(value, _)| value.parse::<u64>());
        let Ok(fence) = fence else {
            return "-ERR value is not an integer or out of range\r\n".into();
        };
        let Some((holder, end)) = holder else {
            self.put(owner_key, args, now);
            self.values.insert(fence_key.into(), ((fence + 1).to_string(), None));
            return format!(":{}\r\n", fence + 1);
        };
        let left = end.map_or("-1".into(), |end| end.saturating_since(now).as_millis().to_string());
        if holder == args[0] {
            return format!("*3\r\n:1\r\n:{fence}\r\n:{left}\r\n");
        }
        format!("*2\r\n:0\r\n:{left}\r\n")
    }

    fn put(&mut self, key: &str, args: &[String], now: Instant) {
        let end = now + Duration::from_millis(args[1].parse().unwrap());
        self.values.insert(key.into(), (args[0].clone(), Some(end)));
    }
}

fn script_name(text: &str) -> &'static str {
    match text {
        _ if text.contains("function acquire(i)") => "acquire_many",
        _ if text.contains("function release(i)") => "release_many",
        _ if text.contains("'INCR'") => "acquire",
        _ if text.contains("'PEXPIRE'") => "renew",
        _ => "release",
    }
}

async fn read_request(stream: &mut BufReader<DuplexStream>) -> io::Result<Vec<String>> {
    let mut request = Vec::new();
    for _ in 0..read_number(stream).await? {
        let mut text = vec![0; read_number(stream).await? + 2];
        stream.read_exact(&mut text).await?;
        text.truncate(text.len() - 2);
        request.push(String::from_utf8(text).unwrap());
    }
    Ok(request)
}

async fn read_number(stream: &mut BufReader<DuplexStream>) -> io::Result<usize> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line[1..].trim_end().parse().unwrap())
}
