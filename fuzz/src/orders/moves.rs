//! What a game is made of: a limit, a debt, and moves.

use arbitrary::{Arbitrary, Unstructured};

use crate::asked::Shape;
use crate::input::{Cost, Number, Span};

const STEPS_MAX: usize = 96;

#[derive(Arbitrary, Debug)]
pub struct Input {
    pub(super) shape: Shape,
    pub(super) alignment: u8,
    pub(super) count_refused: bool,
    pub(super) unix_ns: u64,
    /// None: as much as the burst.
    pub(super) debt_max: Option<Number>,
    /// One limiter with little room: for how many keys, and what it does when full.
    pub(super) little_room: Option<(u8, u8)>,
    /// What only some games have, for less can be said after it: steps back, leases, refunds by key.
    pub(super) has: u8,
    pub(super) steps: Steps,
}

/// As many moves as there are bytes for: a `Vec` would take a coin's toss before each of them.
#[derive(Debug)]
pub struct Steps(pub Vec<Move>);

impl<'a> Arbitrary<'a> for Steps {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut steps = Vec::new();
        while !bytes.is_empty() && steps.len() < STEPS_MAX {
            steps.push(bytes.arbitrary()?);
        }
        Ok(Self(steps))
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Move {
    Check {
        key: u8,
        cost: Cost,
    },
    Take {
        key: u8,
        cost: Cost,
    },
    Charge {
        key: u8,
        cost: Cost,
    },
    /// Gives one of the receipts back.
    Refund {
        which: u8,
    },
    RefundKey {
        key: u8,
        tokens: Cost,
    },
    Reset {
        key: u8,
    },
    Reserve {
        key: u8,
        cost: Cost,
        wait_max: Span,
    },
    /// Gives one of the places back.
    Cancel {
        which: u8,
    },
    Peek {
        key: u8,
    },
    /// Waits until the cost passes, to the nanosecond.
    Insist {
        key: u8,
        cost: Cost,
    },
    /// One request each of neighbouring keys.
    Flood {
        first: u8,
        count: u8,
        cost: Cost,
    },
    Advance(Span),
    StepBack(Span),
    /// From here on the key's tokens are leased.
    Warm {
        key: u8,
    },
}
