//! What one key was given and gave back, and whether that is within its bound.

use crate::asked::Asked;

/// How something was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a check or a take.
    Admitted,
    /// Whatever there was.
    Charged,
    /// For a turn to come.
    Reserved,
}

#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub id: usize,
    pub kind: Kind,
    /// When it was charged.
    pub at_ns: u128,
    /// When it goes on.
    pub turn_ns: u128,
    pub charged: u64,
    /// What of that was not given back.
    kept: u128,
    /// Something of it was given back.
    pub is_gone: bool,
}

/// One key since it began, or was reset.
#[derive(Debug, Default)]
pub struct Ledger {
    pub entries: Vec<Entry>,
    /// How often it was reset.
    pub resets: u32,
    /// What was given back that no entry bears.
    pub credited: u128,
    /// Something was given back beside who waits in line, or by key, or after the clock stepped back: what is given back
    /// from now on is borne by no entry.
    pub is_loose: bool,
    /// Tokens were given back by key.
    pub is_minted: bool,
    /// The reservation that nothing has followed.
    pub last: Option<usize>,
}

impl Ledger {
    pub fn reset(&mut self) {
        *self = Self { resets: self.resets + 1, ..Self::default() };
    }

    pub fn add(&mut self, id: usize, kind: Kind, at_ns: u128, turn_ns: u128, tokens: u64) {
        if tokens == 0 {
            return;
        }
        let kept = tokens.into();
        self.entries.push(Entry { id, kind, at_ns, turn_ns, charged: tokens, kept, is_gone: false });
        self.last = (kind == Kind::Reserved).then_some(id);
    }

    /// Who has still to wait for its turn.
    pub fn waiting(&self, now_ns: u128) -> impl Iterator<Item = &Entry> {
        let is_waiting =
            move |entry: &&Entry| entry.kind == Kind::Reserved && entry.kept > 0 && entry.turn_ns > now_ns;
        self.entries.iter().filter(is_waiting)
    }

    /// Whether turns come in order: nothing was given back out of line.
    pub fn is_in_order(&self) -> bool {
        !self.is_loose && self.credited == 0
    }

    /// Entry `id` was given back; `is_aside`: beside others who wait.
    pub fn give_back(&mut self, id: usize, back: u64, is_aside: bool) {
        self.is_loose |= is_aside;
        self.last = None;
        let entry = self.entries.iter_mut().find(|entry| entry.id == id);
        let entry = entry.expect("gave back what is in no ledger");
        entry.is_gone = true;
        if self.is_loose {
            self.credited += u128::from(back);
        } else {
            entry.kept = entry.kept.saturating_sub(back.into());
        }
    }

    pub fn mint(&mut self, tokens: u64) {
        self.credited += u128::from(tokens);
        self.is_minted = true;
        self.last = None;
    }

    pub fn has_reserved(&self) -> bool {
        self.entries.iter().any(|entry| entry.kind == Kind::Reserved)
    }

    /// No interval sees more than the bound, and what else `is_allowed` of each part.
    pub fn check(&self, asked: &Asked, slack_ns: u128, latest_ns: Option<u128>, allowed: &[u128], debt: u64) {
        let goes = |entry: &&Entry| match latest_ns {
            None => entry.kind != Kind::Charged,
            Some(_) => entry.kind == Kind::Admitted,
        };
        let mut given: Vec<(u128, u128)> =
            self.entries.iter().filter(goes).map(|entry| (entry.turn_ns, entry.kept)).collect();
        let mut all: Vec<(u128, u128)> = Vec::new();
        if latest_ns.is_none() {
            given.sort_unstable();
            if asked.rate.is_some() && !self.has_reserved() {
                all = self.entries.iter().map(|entry| (entry.at_ns, entry.kept)).collect();
            }
        }
        for (part, allowed) in allowed.iter().enumerate() {
            let allowed = allowed.saturating_add(self.credited);
            within(&given, latest_ns, |from, to| {
                asked.most(part, from, to, slack_ns).saturating_add(allowed)
            });
            let allowed = allowed.saturating_add(debt.into());
            within(&all, latest_ns, |from, to| asked.most(part, from, to, slack_ns).saturating_add(allowed));
        }
    }
}

/// From each of them on, to each later one or to `latest_ns`, there is no more than `most`.
fn within(given: &[(u128, u128)], latest_ns: Option<u128>, most: impl Fn(u128, u128) -> u128) {
    for (first, &(from_ns, _)) in given.iter().enumerate() {
        let mut sum = 0;
        for &(at_ns, tokens) in &given[first..] {
            sum += tokens;
            let to_ns = latest_ns.unwrap_or(at_ns);
            assert!(sum <= most(from_ns, to_ns), "{sum} from {from_ns} to {to_ns}: {given:?}");
        }
    }
}
