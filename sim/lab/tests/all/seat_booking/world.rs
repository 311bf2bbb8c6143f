//! The world of the seat booking: a lock on Redis, the seat in the resource, a payment service with a disk of
//! its own, and two buyers, whose records are on their disks.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use dlock::redis::{Redis, RedisOptions};
use dlock::{Handle, Lock, LockKey, Options, timeout_at};
use resource::client::{Client, PutAnswer, ReadAnswer, Retry};
use resource::fence::{Fencing, Guard, NextStep};
use resource::http::Config;
use resource::store::Write;
use resource::{OwnerToken, ResourceKey};
use sim::servers::redis::{Persistence, RedisHost};
use sim::servers::resource::ResourceHost;
use sim::world::disk::File;
use sim::world::runtime::SimRuntime;
use sim::world::stream::SimStream;
use sim::{Process, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::booking::{POLICY, Record, Seat, Shop, book};
use super::checks;

const TTL: Duration = Duration::from_millis(500);

/// The longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(1);

/// The time for a write to a disk.
const DISK: Duration = Duration::from_millis(2);

/// The port of the payment service.
const PORT: u16 = 7000;

/// A mistake of the compensation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    /// The booking is closed as soon as it is refused; the refund that is due is known to its process alone.
    RefundFromMemory,
    /// The payment service pays for each request: a refund has no key.
    RefundWithoutKey,
    /// A write without an answer is taken for a refused one.
    RefundOnSilence,
}

/// Builds the world.
pub fn seats(sim: &mut Sim, fencing: Fencing, mistake: Mistake) {
    let config = Config { fencing, ..Config::default() };
    sim.host("redis", RedisHost::new().persistence(Persistence::Always));
    sim.resource("seats", ResourceHost::on_disk(config));
    sim.service("bank", move |process| serve(process, mistake != Mistake::RefundWithoutKey));
    for (name, starts) in [("a", 0), ("b", 50)] {
        sim.process(name, move |process| async move {
            process.sleep(Duration::from_millis(starts)).await;
            let Ok(end) = book(&Buyer::new(process.clone(), mistake)).await;
            // A process that is killed at its last step has not ended yet.
            process.sleep(DISK).await;
            process.point(&format!("ended as {}", end.as_str()));
        });
    }
    // The checks below judge; a verdict on the lock alone would come before them.
    sim.verdicts(&[]).scale(TTL);
    sim.check("one buyer for the seat", checks::one_buyer);
    sim.check("late buyers are refunded once", checks::refunded_once);
}

/// Runs the payment service. Its disk holds pairs of bytes: the kind of an entry and the buyer.
async fn serve(process: Process, has_keys: bool) {
    let ledger = process.disk().open();
    let Ok(mut listener) = process.listen(PORT) else { return };
    loop {
        let (stream, _) = listener.accept().await;
        let (bank, ledger) = (process.clone(), ledger.clone());
        process.spawn(async move {
            // Ignores a broken connection: its client asks again.
            let _ = answer(&bank, &ledger, stream, has_keys).await;
        });
    }
}

async fn answer(bank: &Process, ledger: &File, mut stream: SimStream, has_keys: bool) -> io::Result<()> {
    let mut request = [0; 2];
    stream.read_exact(&mut request).await?;
    // Many a payment takes longer than a lease.
    bank.sleep(Duration::from_millis(bank.random() % 800)).await;
    let [kind, buyer] = request;
    let contents = ledger.contents()?;
    let has = |kind: u8| contents.chunks(2).any(|entry| entry == [kind, buyer]);
    // The entry is durable before anybody hears of it: there is no await in between.
    let entry = match kind {
        b'c' if !has(b'c') && !has(b'x') => Some((b'c', "charged")),
        b'r' if has(b'c') && !(has_keys && has(b'r')) => Some((b'r', "refunded")),
        b'r' if !has(b'c') => Some((b'x', "cancelled")),
        _ => None,
    };
    if let Some((kind, word)) = entry {
        ledger.append(&[kind, buyer])?;
        ledger.sync()?;
        bank.point(&format!("{word} {}", char::from(buyer)));
    }
    stream.write_all(b".").await
}

/// A buyer in one life of its process.
struct Buyer {
    process: Process,
    mistake: Mistake,
    lock: Lock<Redis<SimRuntime>>,
    seats: Client<SimRuntime>,
    records: File,
    seat: ResourceKey,
}

type Lease = Handle<Redis<SimRuntime>>;

impl Buyer {
    fn new(process: Process, mistake: Mistake) -> Self {
        let redis = Redis::new(process.runtime(), "redis:6379", RedisOptions::default()).unwrap();
        let mut options = Options::new(TTL);
        options.instance = Some(process.name().to_owned());
        Self {
            mistake,
            lock: Lock::new(redis, options).unwrap(),
            seats: Client::new(process.runtime(), "seats:80"),
            records: process.disk().open(),
            seat: ResourceKey::new("seats:12A").unwrap(),
            process,
        }
    }

    /// Asks the payment service until it answers.
    async fn ask(&self, kind: u8) {
        let buyer = self.process.name().as_bytes()[0];
        let call = || async {
            let mut stream = self.process.connect(&format!("bank:{PORT}")).await?;
            stream.write_all(&[kind, buyer]).await?;
            stream.read_u8().await
        };
        while !matches!(self.within(call()).await, Some(Ok(_))) {
            self.process.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Runs `call` for at most [`ANSWER`].
    async fn within<F: Future>(&self, call: F) -> Option<F::Output> {
        timeout_at(&self.process.runtime(), self.process.now() + ANSWER, call).await.ok()
    }
}

impl Shop for Buyer {
    type Lease = Lease;
    type Error = Infallible;

    async fn last_record(&self) -> Result<Option<Record>, Infallible> {
        // A dead process has no further steps.
        let last = self.records.contents().ok().and_then(|records| records.last().copied());
        Ok(last.map(|number| Record::ALL[usize::from(number)]))
    }

    async fn record(&self, record: Record) -> Result<(), Infallible> {
        let record = match (record, self.mistake) {
            (Record::RefundDue, Mistake::RefundFromMemory) => Record::Refunded,
            (record, _) => record,
        };
        self.process.sleep(DISK).await;
        // These fail only if the process is dead.
        let _ = self.records.append(&[record as u8]);
        let _ = self.records.sync();
        Ok(())
    }

    async fn acquire(&self) -> Result<Lease, Infallible> {
        let key = LockKey::new("seats", "12A").unwrap();
        loop {
            match self.lock.acquire(&key, self.lock.deadline_in(10 * ANSWER)).await {
                Ok(lease) => return Ok(lease),
                Err(_) => self.process.sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn look(&self, lease: &Lease) -> Result<Seat, Infallible> {
        let owner = OwnerToken::try_from(lease.owner()).unwrap();
        loop {
            let deadline = self.process.now() + ANSWER;
            let read = self.seats.fenced_read(&self.seat, lease.fence(), Some(&owner), deadline).await;
            return Ok(match read {
                Ok(ReadAnswer::Read(seat)) => match seat.value {
                    None => Seat::Free,
                    Some(buyer) if buyer == self.process.name() => Seat::Mine,
                    Some(_) => Seat::Taken,
                },
                Ok(_) => Seat::Stale,
                // A claim may be asked again.
                Err(_) => {
                    self.process.sleep(Duration::from_millis(50)).await;
                    continue;
                }
            });
        }
    }

    async fn pay(&self) -> Result<(), Infallible> {
        self.ask(b'c').await;
        Ok(())
    }

    async fn take(&self, lease: &Lease) -> Result<NextStep, Infallible> {
        let owner = Some(OwnerToken::try_from(lease.owner()).unwrap());
        let body = self.process.name().to_owned().into();
        let write = Write { guard: Guard::token(lease.fence()), owner, body };
        let deadline = self.process.now() + ANSWER;
        let answer = if self.mistake == Mistake::RefundOnSilence {
            self.seats.put(&self.seat, &write, deadline).await
        } else {
            self.seats.put_with_retry(&self.seat, &write, deadline, Retry::default()).await
        };
        Ok(match answer {
            // The seat was free at version 0.
            Ok(PutAnswer::Refused(refusal)) => {
                let deadline = self.process.now() + ANSWER;
                let proof = self.seats.proof(&self.seat, refusal, 0, deadline).await;
                POLICY.after(proof.unwrap_or(refusal.proof()))
            }
            Ok(answer) => answer.next_step(POLICY),
            Err(_) if self.mistake == Mistake::RefundOnSilence => NextStep::Compensate,
            Err(error) => error.next_step(),
        })
    }

    async fn refund(&self) -> Result<(), Infallible> {
        self.ask(b'r').await;
        Ok(())
    }

    async fn release(&self, lease: Lease) {
        // The TTL releases it otherwise.
        let _ = lease.release().await;
    }

    fn step(&self, name: &str) {
        self.process.point(name);
    }
}
