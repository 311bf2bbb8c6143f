//! A fake lock server whose behaviour a test sets for each call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant, QueueLimit, Released, Renewal,
    Runtime,
};

use super::World;

/// The server's behaviour for one call. Without an order it executes the call and answers at once.
#[derive(Clone)]
pub enum Order {
    /// Executes the call and answers after that time.
    After(Duration),
    /// Answers that another owner has the lease, for that time if given.
    Taken(Option<Duration>),
    /// Puts the caller into the queue at that place; its watch fires after that time.
    Queued(u64, Duration),
    /// Puts the caller into the queue at that place, which it must ask for again.
    Placed(u64, Option<Duration>),
    /// Answers that the queue is full, with its number of waiters.
    Full(u32),
    /// Answers that the caller does not own the lease.
    NotOwner,
    /// The same, after that time.
    NotOwnerAfter(Duration),
    /// Executes the call and never answers.
    LoseAnswer,
    /// Answers with an error.
    Fail(BackendError),
}

/// A call that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub kind: &'static str,
    pub key: String,
    pub owner: String,
    pub ttl: Duration,
    pub at: Instant,
}

#[derive(Clone)]
pub struct Fake {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    acquires: VecDeque<Order>,
    renewals: VecDeque<Order>,
    releases: VecDeque<Order>,
    /// The time at which the next watch fires, or its error.
    watch: Option<Result<Instant, BackendError>>,
    /// Watches get no answer: they fail at their deadline.
    hides_watches: bool,
    calls: Vec<Call>,
    /// The limits of the claims that were opened.
    limits: Vec<Option<QueueLimit>>,
    granted: u64,
}

impl Fake {
    pub fn new(world: &World) -> Self {
        Self { world: world.clone(), state: Arc::default() }
    }

    pub fn on_acquire(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().acquires.extend(orders);
    }

    pub fn on_renew(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().renewals.extend(orders);
    }

    pub fn on_release(&self, orders: impl IntoIterator<Item = Order>) {
        self.state.lock().unwrap().releases.extend(orders);
    }

    /// Lets the next watch of a queued claim fail.
    pub fn on_watch(&self, error: BackendError) {
        self.state.lock().unwrap().watch = Some(Err(error));
    }

    /// Leaves all watches without an answer.
    pub fn hide_watches(&self) {
        self.state.lock().unwrap().hides_watches = true;
    }

    /// Returns the calls of one kind (`acquire`, `renew`, `release`), in order of arrival.
    pub fn calls(&self, kind: &str) -> Vec<Call> {
        self.state.lock().unwrap().calls.iter().filter(|call| call.kind == kind).cloned().collect()
    }

    /// Returns the limit of the waiters that the first claim named.
    pub fn first_limit(&self) -> Option<QueueLimit> {
        self.state.lock().unwrap().limits.first().copied().flatten()
    }

    /// Records the call and follows the next order for its kind: waits, fails, or returns the order.
    async fn obey(
        &self,
        kind: &'static str,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Order, BackendError> {
        let (key, owner) = (claim.key.name().into(), claim.owner.as_str().into());
        let call = Call { kind, key, owner, ttl: claim.ttl, at: self.world.now() };
        let order = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(call);
            let orders = match kind {
                "acquire" => &mut state.acquires,
                "renew" => &mut state.renewals,
                _ => &mut state.releases,
            };
            orders.pop_front().unwrap_or(Order::After(Duration::ZERO))
        };
        match &order {
            Order::After(time) | Order::NotOwnerAfter(time) => {
                self.world.sleep_until(self.world.now() + *time).await
            }
            Order::LoseAnswer => {
                self.world.sleep_until(deadline).await;
                return Err(BackendError::NoAnswer);
            }
            Order::Fail(error) => return Err(error.clone()),
            Order::Taken(_) | Order::Queued(..) | Order::Placed(..) | Order::Full(_) | Order::NotOwner => {}
        }
        Ok(order)
    }
}

impl Backend for Fake {
    type Runtime = World;
    type Acquisition = FakeAcquisition;

    fn runtime(&self) -> &World {
        &self.world
    }

    fn system(&self) -> &'static str {
        "fake"
    }

    fn has_queue(&self, permits: u32) -> bool {
        permits == 1
    }

    fn open(&self, claim: Claim) -> FakeAcquisition {
        self.state.lock().unwrap().limits.push(claim.queue);
        FakeAcquisition { fake: self.clone(), claim, open: false }
    }
}

pub struct FakeAcquisition {
    fake: Fake,
    claim: Claim,
    /// True if the server may hold something for the claim without the client knowing it.
    open: bool,
}

impl Acquisition for FakeAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { fake, claim, open } = self;
        let since = fake.world.now();
        *open = true;
        let order = fake.obey("acquire", claim, deadline).await?;
        *open = false;
        if let Order::Taken(left) = order {
            return Ok(Answer::Taken { left });
        }
        if let Order::Full(waiting) = order {
            *open = true;
            return Ok(Answer::Full { waiting });
        }
        if let Order::Placed(position, left) = order {
            *open = true;
            return Ok(Answer::Placed { position, left });
        }
        let mut state = fake.state.lock().unwrap();
        if let Order::Queued(position, time) = order {
            *open = true;
            state.watch.get_or_insert(Ok(fake.world.now() + time));
            return Ok(Answer::Queued { position });
        }
        state.granted += 1;
        let token = FencingToken::new(state.granted).unwrap();
        Ok(Answer::Granted { token, since, left: claim.ttl })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Fake { world, state } = &self.fake;
        if state.lock().unwrap().hides_watches {
            world.sleep_until(deadline).await;
            return Err(BackendError::NoAnswer);
        }
        let watch = state.lock().unwrap().watch.take();
        world.sleep_until(watch.unwrap_or(Ok(deadline))?.min(deadline)).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = self.fake.world.now();
        match self.fake.obey("renew", &self.claim, deadline).await? {
            Order::NotOwner | Order::NotOwnerAfter(_) => Ok(Renewal::NotOwner),
            _ => Ok(Renewal::Extended { since, left: self.claim.ttl }),
        }
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let order = self.fake.obey("release", &self.claim, deadline).await?;
        self.open = false;
        Ok(if matches!(order, Order::NotOwner | Order::NotOwnerAfter(_)) {
            Released::NotOwner
        } else {
            Released::Done
        })
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.claim.ttl = ttl;
    }

    fn needs_cleanup(&self) -> bool {
        self.open
    }
}

/// The same server, but its leases end with the client's session of 60 s, not by a TTL.
#[derive(Clone)]
pub struct InSession(pub Fake);

impl Backend for InSession {
    type Runtime = World;
    type Acquisition = FakeAcquisition;

    fn runtime(&self) -> &World {
        self.0.runtime()
    }

    fn system(&self) -> &'static str {
        self.0.system()
    }

    fn session_ttl(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn open(&self, claim: Claim) -> FakeAcquisition {
        self.0.open(claim)
    }
}
