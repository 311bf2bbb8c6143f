//! A lock server that does as it is told, call by call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal, Runtime,
};

use super::World;

/// What the server makes of one call. Without orders it does the usual thing at once.
#[derive(Clone)]
pub enum Order {
    /// Does it, and answers after that time.
    After(Duration),
    /// Says that another owner has the lease, for that time.
    Held(Option<Duration>),
    /// Puts the caller in line at that place; its turn comes after that time.
    Queued(u64, Duration),
    /// Says that the caller does not own the lease.
    NotOwner,
    /// The same, after that time.
    NotOwnerAfter(Duration),
    /// Executes it and never answers.
    LoseAnswer,
    /// Answers with an error.
    Fail(BackendError),
}

/// A call that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub what: &'static str,
    pub owner: String,
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
    /// When the turn of the one that was queued comes, or what its watch fails with.
    turn: Option<Result<Instant, BackendError>>,
    /// Watches are asked for in vain: they fail when their time is over.
    hides_turns: bool,
    calls: Vec<Call>,
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

    /// The next watch of a queued claim fails.
    pub fn on_turn(&self, error: BackendError) {
        self.state.lock().unwrap().turn = Some(Err(error));
    }

    /// Watches get no answer.
    pub fn hide_turns(&self) {
        self.state.lock().unwrap().hides_turns = true;
    }

    /// The calls of one kind, in order of arrival.
    pub fn calls(&self, what: &str) -> Vec<Call> {
        self.state.lock().unwrap().calls.iter().filter(|call| call.what == what).cloned().collect()
    }

    async fn obey(
        &self,
        what: &'static str,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Order, BackendError> {
        let call = Call { what, owner: claim.owner.as_str().into(), at: self.world.now() };
        let order = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(call);
            let orders = match what {
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
            Order::Held(_) | Order::Queued(..) | Order::NotOwner => {}
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

    fn open(&self, claim: Claim) -> FakeAcquisition {
        FakeAcquisition { fake: self.clone(), claim, open: false }
    }
}

pub struct FakeAcquisition {
    fake: Fake,
    claim: Claim,
    /// Whether a grant may exist without the client knowing it.
    open: bool,
}

impl Acquisition for FakeAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let Self { fake, claim, open } = self;
        let since = fake.world.now();
        *open = true;
        let order = fake.obey("acquire", claim, deadline).await?;
        *open = false;
        if let Order::Held(left) = order {
            return Ok(Answer::Held { left });
        }
        let mut state = fake.state.lock().unwrap();
        if let Order::Queued(position, time) = order {
            *open = true;
            state.turn.get_or_insert(Ok(fake.world.now() + time));
            return Ok(Answer::Queued { position });
        }
        state.granted += 1;
        let token = FencingToken::new(state.granted).unwrap();
        Ok(Answer::Granted { token, since, left: claim.ttl })
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let Fake { world, state } = &self.fake;
        if state.lock().unwrap().hides_turns {
            world.sleep_until(deadline).await;
            return Err(BackendError::NoAnswer);
        }
        let turn = state.lock().unwrap().turn.take();
        world.sleep_until(turn.unwrap_or(Ok(deadline))?.min(deadline)).await;
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

    fn may_be_held(&self) -> bool {
        self.open
    }
}

/// The same server, whose leases end with the client's session of a minute and not by a TTL.
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
