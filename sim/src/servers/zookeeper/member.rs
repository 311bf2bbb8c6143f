//! What each member is: leading, following or looking; and how it falls out of touch and comes back.
//!
//! A member serves while it is in touch: the leader with a majority, a follower with the leader. Out of touch
//! it still answers reads and pings, of the state that it knew, for up to `sync_limit` ticks; then it hangs
//! up and looks for a leader. Of members that look and reach a majority, the one with the highest number
//! leads, in a new epoch, and counts every session's timeout from the beginning.

use super::core::{Core, Now};
use super::observe::Change;
use super::session;
use super::tree::Tree;
use super::watch::Watches;

#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) role: Role,
    /// Since when it is out of touch, on its own clock.
    out_of_touch_since: Option<u64>,
    /// What it knows while it is out of touch.
    pub(crate) behind: Option<Behind>,
    pub(crate) watches: Watches,
    /// The number of its next session; 0: none yet.
    pub(crate) next_session: i64,
    /// How often its process has started.
    life: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its process does not run.
    #[default]
    Down,
    Looking,
    Following {
        epoch: i64,
    },
    Leading {
        epoch: i64,
    },
}

/// The state in which a member fell out of touch, and what it has missed since.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) tree: Tree,
    zxid: i64,
    pub(crate) missed: Vec<Change>,
}

impl Member {
    /// The latest transaction that the member knows of; `latest` is the ensemble's.
    pub(crate) fn zxid(&self, latest: i64) -> i64 {
        self.behind.as_ref().map_or(latest, |behind| behind.zxid)
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.role, Role::Following { .. } | Role::Leading { .. })
    }

    pub(crate) fn is_in_touch(&self) -> bool {
        self.is_serving() && self.out_of_touch_since.is_none()
    }
}

impl Core {
    /// The member that leads, if one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let epoch = self.epoch();
        self.members.iter().position(|member| member.role == Role::Leading { epoch })
    }

    /// Has a member start, or start anew, and returns the number of this life.
    pub(crate) fn start(&mut self, member: usize) -> u64 {
        let life = self.members[member].life + 1;
        self.members[member] = Member { role: Role::Looking, life, ..Member::default() };
        life
    }

    /// Has a member's process end, unless it has begun another life. The others notice at once, as their
    /// connections to it break.
    pub(crate) fn stop(&mut self, member: usize, life: u64) {
        if self.members[member].life == life {
            self.hang_up_all(member);
            self.members[member] = Member { life, ..Member::default() };
        }
    }

    /// Has the leader resign and the next member in touch lead in its place; every member hangs up. Returns
    /// the new one. `now` is by the clock of a member.
    pub(crate) fn change_leader(&mut self, now: impl Fn(usize) -> Now) -> Option<usize> {
        let (old, size) = (self.leader()?, self.members.len());
        let mut next = (1..size).map(|step| (old + step) % size);
        let new = next.find(|&member| self.members[member].is_in_touch())?;
        self.replace_leader(new, now(new));
        Some(new)
    }

    /// The same for a leader of one's choice, if it is in touch; false if it is not, or leads already.
    pub(crate) fn move_leader(&mut self, member: usize, now: impl Fn(usize) -> Now) -> bool {
        let may_lead = self.members[member].is_in_touch() && self.leader().is_some_and(|old| old != member);
        if may_lead {
            self.replace_leader(member, now(member));
        }
        may_lead
    }

    fn replace_leader(&mut self, new: usize, now: Now) {
        for member in 0..self.members.len() {
            if self.members[member].role != Role::Down {
                self.members[member].role = Role::Looking;
                self.hang_up_all(member);
            }
        }
        self.lead(new, now);
    }

    /// Has a member look at whom it reaches (itself included) and take the role that follows.
    pub(crate) fn attend(&mut self, member: usize, reaches: &[bool], now: Now) {
        if self.members[member].role == Role::Looking {
            self.look(member, reaches, now);
        }
        if !self.members[member].is_serving() {
            return;
        }
        if self.sees_quorum(member, reaches) {
            self.catch_up(member);
        } else {
            self.fall_behind(member, reaches, now);
        }
    }

    /// A looking member follows a leader that it reaches, or leads if it reaches a majority that looks too.
    fn look(&mut self, member: usize, reaches: &[bool], now: Now) {
        if let Some(leader) = self.leader().filter(|&leader| reaches[leader]) {
            let in_touch = leader == member || self.members[leader].is_in_touch();
            if in_touch {
                self.members[member].role = Role::Following { epoch: self.epoch() };
                self.catch_up(member);
            }
            return;
        }
        let looks = |&other: &usize| reaches[other] && self.members[other].role == Role::Looking;
        let voters: Vec<usize> = (0..self.members.len()).filter(looks).collect();
        if self.is_majority(voters.len()) && voters.last() == Some(&member) {
            self.lead(member, now);
        }
    }

    fn lead(&mut self, member: usize, now: Now) {
        // A single server counts on from zero; an ensemble's first epoch is 1.
        if self.members.len() > 1 {
            self.zxid = (self.epoch() + 1) << 32;
        }
        self.members[member].role = Role::Leading { epoch: self.epoch() };
        self.catch_up(member);
        let tick = self.tick;
        for session in self.sessions.values_mut() {
            session.expires_at = session::expiry(now.own, session.timeout, tick);
        }
    }

    fn sees_quorum(&self, member: usize, reaches: &[bool]) -> bool {
        let epoch = self.epoch();
        match self.members[member].role {
            Role::Leading { epoch: own } => {
                own == epoch && self.is_majority(reaches.iter().filter(|reached| **reached).count())
            }
            Role::Following { epoch: own } => {
                let leader = self.leader().filter(|&leader| reaches[leader]);
                own == epoch && leader.is_some_and(|leader| self.members[leader].is_in_touch())
            }
            Role::Looking | Role::Down => false,
        }
    }

    fn catch_up(&mut self, member: usize) {
        self.members[member].out_of_touch_since = None;
        let missed = self.members[member].behind.take().map(|behind| behind.missed);
        missed.into_iter().flatten().for_each(|change| self.show(member, &change));
    }

    fn fall_behind(&mut self, member: usize, reaches: &[bool], now: Now) {
        let patience = session::nanos(self.tick).saturating_mul(u64::from(self.sync_limit));
        // A connection that breaks tells at once: that of a leader which is down, or leads another epoch.
        let knows = match self.leader() {
            Some(leader) => reaches[leader] && !self.is_of_epoch(member),
            None => matches!(self.members[member].role, Role::Following { .. }) && self.no_leader_but_down(),
        };
        let (tree, zxid) = (&self.tree, self.zxid);
        let state = &mut self.members[member];
        state.behind.get_or_insert_with(|| Behind { tree: tree.clone(), zxid, missed: Vec::new() });
        let since = *state.out_of_touch_since.get_or_insert(now.own);
        if knows || now.own.saturating_sub(since) >= patience {
            state.role = Role::Looking;
            self.hang_up_all(member);
        }
    }

    fn is_of_epoch(&self, member: usize) -> bool {
        let epoch = self.epoch();
        matches!(self.members[member].role, Role::Following { epoch: own } | Role::Leading { epoch: own } if own == epoch)
    }

    /// Nobody leads, not even somebody who does not know yet that it is deposed.
    fn no_leader_but_down(&self) -> bool {
        !self.members.iter().any(|member| matches!(member.role, Role::Leading { .. }))
    }

    fn hang_up_all(&mut self, member: usize) {
        let theirs = self.connections.iter().filter(|(_, connected)| connected.member == member);
        let numbers: Vec<u64> = theirs.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|connection| self.close(connection));
    }

    fn is_majority(&self, members: usize) -> bool {
        members * 2 > self.members.len()
    }

    fn epoch(&self) -> i64 {
        self.zxid >> 32
    }
}
