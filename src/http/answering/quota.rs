//! What is told of an answer: each window of each limit that counts, with a name that no other has.

use std::time::Duration;

use smallvec::SmallVec;

use super::text::{self, Buffer};
use super::{Answer, Names};
use crate::answer::{Denied, Pass};
use crate::decision::{Reason, WindowState};
use crate::policy::LimitState;

/// Bytes of a rule's name that are told. RFC 9651 has readers take 1 024; many limits may stand in one field.
const NAME_BYTES_MAX: usize = 128;

/// Windows that one response tells of, so that no policy makes heads of responses that servers turn down.
const TOLD_MAX: usize = 16;

/// A window, as clients are told it.
pub(super) struct Quota<'a> {
    /// What the limit answered whose window it is.
    pub(super) answer: Result<&'a Pass, &'a Denied>,
    pub(super) state: WindowState,
    /// What still passes: 0 where there was no room for the key, whatever a fresh one has.
    pub(super) remaining: u64,
    /// The wait until there is more; `None` where nothing is used, or no wait is enough.
    pub(super) next_after: Option<Duration>,
    /// Whether it has no room for the request.
    pub(super) refuses: bool,
    /// Where its name ends; it begins where the one before ends.
    name_end: usize,
}

/// All windows of an answer, in the order of the rules.
pub(super) struct Quotas<'a> {
    quotas: SmallVec<[Quota<'a>; 8]>,
    /// All names, one after the other, of printable ASCII.
    names: Buffer,
}

/// How the windows of a limit are called.
#[derive(Clone, Copy)]
enum Called<'a> {
    /// By what kind of window each is.
    Kind,
    /// By the rule, and the limit's number from 1 where it has several.
    Rule(&'a str, Option<u64>),
}

impl<'a> Quotas<'a> {
    pub(super) fn of(answer: Answer<'a>, names: Names) -> Self {
        let mut all = Self { quotas: SmallVec::new(), names: text::buffer() };
        match answer {
            Answer::Pass(pass) => all.add(Called::Kind, Ok(pass)),
            Answer::Denied(denied) => all.add(Called::Kind, Err(denied)),
            Answer::Verdict(verdict) => {
                let by_kind = match names {
                    Names::Auto => verdict.is_of_one_limit(),
                    Names::Windows => true,
                    Names::Full => false,
                };
                for limit in verdict.rules().filter(|rule| !rule.is_shadow()).flat_map(|rule| rule.limits()) {
                    all.add(if by_kind { Called::Kind } else { called(&limit) }, limit.answer_ref());
                }
            }
        }
        all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Quota<'a>)> {
        let begins = std::iter::once(0).chain(self.quotas.iter().map(|quota| quota.name_end));
        self.quotas.iter().zip(begins).map(|(quota, from)| (&self.names[from..quota.name_end], quota))
    }

    /// Those that are told: all, or where there are more than [`TOLD_MAX`], those that refuse, and as many of the others as are left.
    pub(super) fn told(&self) -> impl Iterator<Item = (&[u8], &Quota<'a>)> {
        let refusing = self.quotas.iter().filter(|quota| quota.refuses).count().min(TOLD_MAX);
        let mut left = [TOLD_MAX - refusing, refusing];
        self.iter().filter(move |(_, quota)| {
            let left = &mut left[usize::from(quota.refuses)];
            let is_told = *left > 0;
            *left = left.saturating_sub(1);
            is_told
        })
    }

    /// The window that a refusal waits for, which must be one of those that these were made of.
    pub(super) fn binding(&self, denied: &'a Denied) -> Option<(&[u8], &Quota<'a>)> {
        let binding = denied.binding();
        self.iter().find(|(_, quota)| is_same(quota.answer, Err(denied)) && quota.state.name == binding)
    }

    fn add(&mut self, called: Called<'_>, answer: Result<&'a Pass, &'a Denied>) {
        let (windows, full) = match answer {
            Ok(pass) => (pass.windows(), None),
            Err(denied) => {
                (denied.windows(), (denied.reason() == Reason::Full).then(|| denied.retry_after()))
            }
        };
        for state in &windows {
            let mut quota = Quota {
                answer,
                state: *state,
                remaining: state.remaining,
                // Nothing is used where the wait is none, and nothing ever comes back where it has no end.
                next_after: Some(state.next_after).filter(|wait| !wait.is_zero() && *wait != Duration::MAX),
                refuses: state.refuses,
                name_end: 0,
            };
            if let Some(room_after) = full {
                (quota.remaining, quota.next_after, quota.refuses) = (0, room_after, true);
            }
            self.name(called, state, windows.len() > 1);
            quota.name_end = self.names.len();
            self.quotas.push(quota);
        }
    }

    /// Writes the name behind the others. One that is there already gets the place among all of them behind a dot.
    fn name(&mut self, called: Called<'_>, state: &WindowState, is_of_two: bool) {
        let from = self.names.len();
        let kind = state.name.as_str().as_bytes();
        match called {
            Called::Kind => self.names.extend_from_slice(kind),
            Called::Rule(rule, number) => {
                text::printable(rule, NAME_BYTES_MAX, &mut self.names);
                if let Some(number) = number {
                    self.names.push(b'.');
                    text::integer(number, &mut self.names);
                }
                if is_of_two {
                    self.names.push(b'.');
                    self.names.extend_from_slice(kind);
                }
            }
        }
        let end = self.names.len();
        let mut place = self.quotas.len() as u64;
        while self.iter().any(|(name, _)| *name == self.names[from..]) {
            place += 1;
            self.names.truncate(end);
            self.names.push(b'.');
            text::integer(place, &mut self.names);
        }
    }
}

/// Whether both stand at one place, and so are of one limit.
pub(super) fn is_same(one: Result<&Pass, &Denied>, other: Result<&Pass, &Denied>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => std::ptr::eq(one, other),
        (Err(one), Err(other)) => std::ptr::eq(one, other),
        _ => false,
    }
}

/// How the windows of a rule's limit are called where rules are told apart.
fn called<'v>(limit: &LimitState<'v>) -> Called<'v> {
    let number = (!limit.is_the_only_one()).then(|| limit.number() as u64 + 1);
    Called::Rule(limit.rule().name(), number)
}
