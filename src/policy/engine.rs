//! [`Policy`]: rules in force.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::book::{Book, Making};
use super::changes::Changes;
use super::error::PolicyError;
use super::events::{Counts, Desk, Event, EventSettings, Names, Noted, Offender};
use super::key::Key;
use super::overrides::Edit;
use super::reload::{Current, pin};
use super::request::Request;
use super::rule::{Rule, Rules};
use super::verdict::Verdict;
use crate::table::Hashing;
use crate::time::{Clock, Ticking};

/// So long limits stay as they are before the next reload changes them: see [`Limiter::set_limit`](crate::Limiter::set_limit).
const BETWEEN_CHANGES: Duration = Duration::from_millis(1);

/// Rules in force: which requests are limited, under which key, by what. Each limit of each rule is a
/// [`Limiter`](crate::Limiter) of its own.
///
/// ```
/// use std::time::Duration;
/// use tidegate::policy::{Exempt, KeyPart, Matcher, Pattern, Policy, Request, Rule, Rules};
/// use tidegate::{Limit, Window};
///
/// let limit = Limit::burst_sustain(
///     Window::new(10, Duration::from_secs(15)),
///     Window::new(30, Duration::from_secs(300)),
/// );
/// let rule = Rule {
///     matcher: Matcher { apis: vec![Pattern::Exact("profile".to_owned())], ..Matcher::default() },
///     exempt: Exempt { titles: vec!["legacy".to_owned()], ..Exempt::default() },
///     max_keys: 10_000,
///     ..Rule::new("profile", vec![KeyPart::User, KeyPart::Title], vec![limit])
/// };
/// let policy = Policy::new(Rules { rules: vec![rule], ..Rules::default() })?;
///
/// let request = Request::new("profile").user("ada").title("chess");
/// assert_eq!((0..20).filter(|_| policy.check(&request).is_allowed()).count(), 10);
/// assert!(policy.check(&request.title("go")).is_allowed());
/// assert!((0..20).all(|_| policy.check(&request.title("legacy")).is_allowed()));
/// # Ok::<(), tidegate::policy::PolicyError>(())
/// ```
///
/// # How rules count one request
///
/// Under [`Counting::EveryRule`](super::Counting::EveryRule) every limit of every rule that is about a request counts it,
/// whatever the others say; whether a limit counts what it refuses itself, [`OnRefusal`](super::OnRefusal) says.
///
/// Under [`Counting::AllOrNothing`](super::Counting::AllOrNothing) either every limit of every rule that is about it is charged,
/// or none; no refusal is counted, whatever `OnRefusal` says. Limits are charged in the order of the rules; the first that refuses has what was charged
/// before it given back. There is no moment at which all change together: between its first charge and its last, or
/// its last refund, others see a request as the charges that it has made so far. So one may be refused by a charge that is then
/// given back; none is admitted by one. Keys that were new stay in their tables, and a window that opened stays open. A
/// [`replace`](Self::replace) that changes a limit voids what would be given back to it at that moment: the charge stays.
///
/// Rules that only report ([`Rule::shadow`](super::Rule::shadow)) decide and count as others do, and refuse nobody. Under
/// `AllOrNothing` each is charged by itself, all of its limits or none, whatever becomes of the request.
///
/// Under [`Matching::First`](super::Matching::First) a rule that leaves the request alone is the first too: no other is
/// asked.
///
/// # Keys
///
/// A request that lacks a part of a key is counted with all others that lack it: leaving something out gets nobody more.
/// An address is that of the IPv4 client where it is an IPv4 address written as IPv6.
/// [`KeyPart::Entity`](super::KeyPart::Entity) knows who is not authenticated by all of an IPv4 address, or the first 64
/// bits of an IPv6 one; who is authenticated without a caller, lacks it.
///
/// # Sharing it
///
/// Share it by reference or in an [`Arc`](std::sync::Arc). No check waits for another, nor for a reload, and none of a
/// known key allocates where at most 8 limits are asked, [custom parts](super::KeyPart::Custom) of keys apart. A check
/// during whose time a policy that was replaced becomes free may have to free it.
pub struct Policy<C = Ticking> {
    current: Current<Book<C>>,
    /// What checks leave for the host, if it wants to be told.
    noted: Option<Noted>,
    names: Arc<Names>,
    clock: C,
    /// Taken by who replaces the rules, never by a check.
    changing: Mutex<Changing<C>>,
    /// Taken by who reads them from a file, from before it is read until it is in force: what was read first is never in force last.
    pub(super) reading: Mutex<()>,
}

struct Changing<C> {
    making: Making<C>,
    /// When limits were last changed.
    last: Option<Instant>,
}

/// Settings of a [`Policy`] to be.
#[must_use = "no rule is in force before `build`"]
pub struct PolicyBuilder<C = Ticking> {
    rules: Rules,
    clock: Choice<C>,
    seed: Option<u64>,
    events: Option<EventSettings>,
}

enum Choice<C> {
    Given(C),
    /// Made by `build`: it may block and start a thread.
    Later(fn() -> C),
}

impl Policy {
    /// Puts rules in force, on a [`Ticking`] clock.
    ///
    /// # Errors
    /// A [`PolicyError`] that names the first thing that cannot be honoured.
    pub fn new(rules: Rules) -> Result<Self, PolicyError> {
        Self::builder(rules).build()
    }

    /// Begins a policy of these rules.
    pub fn builder(rules: Rules) -> PolicyBuilder {
        PolicyBuilder { rules, clock: Choice::Later(Ticking::new), seed: None, events: None }
    }
}

impl<C> PolicyBuilder<C> {
    /// The clock of all limiters; a [`Ticking`] one unless told.
    pub fn clock<D: Clock>(self, clock: D) -> PolicyBuilder<D> {
        let Self { rules, seed, events, .. } = self;
        PolicyBuilder { rules, clock: Choice::Given(clock), seed, events }
    }

    /// Has the policy note what [`Policy::drain_events`], [`Policy::offenders`] and [`Policy::counts`] tell; it notes nothing unless
    /// told. It takes about 800 kB for that, and 3 MB at most where many keys are refused and somebody drains.
    pub fn events(mut self, settings: EventSettings) -> Self {
        self.events = Some(settings);
        self
    }

    /// Fixes how keys are hashed, for runs that repeat; see [`Builder::seed`](crate::Builder::seed).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

impl<C: Clock + Clone + 'static> PolicyBuilder<C> {
    /// Checks everything and builds a limiter for each limit of each rule. May block for up to 200 ms, as
    /// [`Builder::build`](crate::Builder::build) does.
    ///
    /// # Errors
    /// A [`PolicyError`] that names the first thing that cannot be honoured.
    pub fn build(self) -> Result<Policy<C>, PolicyError> {
        let clock = match self.clock {
            Choice::Given(clock) => clock,
            Choice::Later(make) => make(),
        };
        // By itself one that nobody can guess.
        let seed = self.seed.unwrap_or_else(|| Hashing::random().seeds()[0]);
        let names = Arc::new(Names::new(self.events.is_some()));
        let making =
            Making { clock: clock.clone(), seed, digests: Hashing::seeded(seed), names: Arc::clone(&names) };
        let (book, _, _) = Book::new(self.rules, &making, None)?;
        Ok(Policy {
            current: Current::new(book),
            noted: self.events.map(Noted::new),
            names,
            clock,
            changing: Mutex::new(Changing { making, last: None }),
            reading: Mutex::new(()),
        })
    }
}

impl<C: Clock + Clone + 'static> Policy<C> {
    /// Decides a request by the rules that are about it, and counts it.
    #[inline]
    pub fn check(&self, request: &Request<'_>) -> Verdict {
        let guard = pin();
        self.current.get(&guard).check(request, self.desk())
    }

    #[inline]
    fn desk(&self) -> Option<&Desk> {
        self.noted.as_ref().map(|noted| &noted.desk)
    }

    /// Whether the request may go on; counts it as [`check`](Self::check) does, and costs less, for no verdict is made.
    /// A refusal takes no place where the refused are [staggered](super::Retry::Staggered), but under
    /// [`Counting::AllOrNothing`](super::Counting::AllOrNothing) it does. A policy with [events](PolicyBuilder::events) makes the verdict all the
    /// same, and then it does too.
    #[inline]
    #[must_use = "a request that is not allowed must not go on"]
    pub fn allow(&self, request: &Request<'_>) -> bool {
        let guard = pin();
        self.current.get(&guard).allows(request, self.desk())
    }

    /// What [`check`](Self::check) would say now, by the precise clock. Counts nothing, and creates no key; of a new key
    /// without room it does not know.
    pub fn peek(&self, request: &Request<'_>) -> Verdict {
        let guard = pin();
        self.current.get(&guard).look(request)
    }

    /// Charges every limit that counts the request, shadow ones too, with a cost that is known only now, whether or not it fits:
    /// see [`Limiter::charge`](crate::Limiter::charge). What rules say of costs, and how they count, does not matter here; a cost of 0
    /// charges nothing. The verdict tells how the limits stand afterwards; one refuses only if it has no room for the key.
    pub fn charge(&self, request: &Request<'_>, cost: u64) -> Verdict {
        let guard = pin();
        self.current.get(&guard).charge(request, cost, self.desk())
    }

    /// What the rule of this name counts the request under, as text for messages: its parts with slashes between them,
    /// `-` for one that the request lacks, its name for a custom one; nothing where all are counted together. `None` if there is
    /// no such rule.
    ///
    /// Two keys may read the same and be counted apart.
    pub fn key_of(&self, rule: &str, request: &Request<'_>) -> Option<String> {
        let guard = pin();
        let book = self.current.get(&guard);
        let ruling = book.rules.iter().find(|ruling| ruling.rule.name == rule)?;
        Some(Key::new(&ruling.rule.key, request, &book.digests).to_string())
    }

    /// Gives `out` what has happened since the last call, in the order of time. Nothing where [`PolicyBuilder::events`] was not called.
    ///
    /// A check leaves what it has seen in a tray, and waits for nobody; what becomes of it is found out here, by whoever calls: a task of the
    /// program's, a few times a second. Each [kind](super::EventKind) is told once for a key, a limit and a period. The period is the
    /// window's, or the time in which the bucket fills; a second where that is shorter.
    ///
    /// Memory is bounded, and what it has no room for is dropped and [counted](Counts::events_dropped): between two calls a tray takes 48 answers of
    /// keys that are new to it and 48 of those that come often (there are eight trays, and a thread has one); periods of 4 096 keys are kept at a time; and 8 192 events, if
    /// they are not drained. A key that was dropped is told of when it is refused again. [`Event::refused`] is exact for keys that are told of, as long as between two
    /// calls a tray sees fewer different keys than it has places where they fall (2 048 in all); else it may be too low.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::policy::{EventKind, EventSettings, KeyPart, Policy, Request, Rule, Rules};
    /// use tidegate::{Limit, Manual, Rate};
    ///
    /// let bucket = Limit::bucket(Rate::per_second(1), 5);
    /// let rules = Rules { rules: vec![Rule::new("sync", vec![KeyPart::User], vec![bucket])], ..Rules::default() };
    /// let clock = Manual::new();
    /// let policy = Policy::builder(rules).clock(clock.clone()).events(EventSettings::new()).build()?;
    ///
    /// let request = Request::new("sync").user("partner-7");
    /// assert_eq!((0..40).filter(|_| policy.check(&request).is_allowed()).count(), 5);
    /// let mut told = Vec::new();
    /// policy.drain_events(|event| told.push(event));
    /// assert_eq!(told[0].to_string(), "warned by sync: partner-7, 4 of 5 used in 5s");
    /// assert_eq!(told[1].to_string(), "refused by sync: partner-7, 5 of 5 used in 5s, 35 refused, retry after 1s");
    ///
    /// clock.advance(Duration::from_secs(5));
    /// policy.drain_events(|event| assert_eq!((event.kind, event.refused), (EventKind::Recovered, 35)));
    /// # Ok::<(), tidegate::policy::PolicyError>(())
    /// ```
    pub fn drain_events(&self, out: impl FnMut(Event)) {
        self.drain(out, false);
    }

    /// The same for a host that ends, and asks no more: refusals that no event has told of yet are told too, as
    /// [`EventKind::StillRefusing`](crate::policy::EventKind::StillRefusing) of a period that is not over. Then [`Event::refused`] of a key's
    /// events, but those that it has recovered, are together what it was refused.
    ///
    /// ```
    /// use tidegate::policy::{EventKind, EventSettings, Policy, Request, Rules};
    ///
    /// let rules = r#"rule = [{ name = "profile", key = "user", limit = { rate = "1/m", burst = 3 } }]"#;
    /// let policy = Policy::builder(Rules::from_toml(rules, "limits.toml")?).events(EventSettings::new()).build()?;
    /// let ask = |times| (0..times).for_each(|_| drop(policy.check(&Request::new("x").user("ada"))));
    /// let mut refused = Vec::new();
    /// let mut tell = |event: tidegate::policy::Event| {
    ///     if event.kind != EventKind::Warned {
    ///         refused.push((event.kind, event.refused));
    ///     }
    /// };
    /// ask(5);
    /// policy.drain_events(&mut tell);
    /// // The next summary would come in three minutes.
    /// ask(4);
    /// policy.drain_events(&mut tell);
    /// policy.drain_last_events(&mut tell);
    /// assert_eq!(refused, [(EventKind::Refused, 2), (EventKind::StillRefusing, 4)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain_last_events(&self, out: impl FnMut(Event)) {
        self.drain(out, true);
    }

    fn drain(&self, out: impl FnMut(Event), is_last: bool) {
        let Some(noted) = &self.noted else { return };
        let events = {
            let guard = pin();
            self.current.get(&guard).drain_events(noted, &self.names, &self.clock, is_last)
        };
        // Where `out` panics, what is left is lost, and counted.
        let mut telling = Telling { events: events.into_iter(), noted };
        telling.events.by_ref().for_each(out);
    }

    /// The keys that are refused most now, `count` of them at most, most first: of each key under each limit, refusals of the last
    /// minute or so, for every minute after the first call all that was counted before weighs half. None where
    /// [`PolicyBuilder::events`] was not called.
    ///
    /// Counts are kept for some 2 048 keys, in sets of four, on which keys fall by their hash. How often a key was refused lies between
    /// [`refused_least`](Offender::refused_least) and [`refused_most`](Offender::refused_most), but for [refusals that were not
    /// seen](Counts::refusals_unseen); the two differ by a fifth of what fell on the key's set at most, and not at all as long
    /// as there is room for all.
    pub fn offenders(&self, count: usize) -> Vec<Offender> {
        let Some(noted) = &self.noted else { return Vec::new() };
        let guard = pin();
        self.current.get(&guard).offenders(noted, &self.names, &self.clock, count)
    }

    /// What was counted since the policy was built; `None` where [`PolicyBuilder::events`] was not called. Checks and refusals are
    /// exact, and go on over reloads by the rule's name. A [`charge`](Self::charge) is no check.
    pub fn counts(&self) -> Option<Counts> {
        let noted = self.noted.as_ref()?;
        let guard = pin();
        Some(self.current.get(&guard).counts(noted, &self.clock))
    }

    /// The rules in force, in their order.
    pub fn rules(&self) -> Vec<Rule> {
        let guard = pin();
        self.current.get(&guard).rules.iter().map(|ruling| ruling.rule.clone()).collect()
    }

    /// Puts other rules in the place of these while requests are decided; what became of each rule.
    ///
    /// A rule is known by its name. If its key, `max_keys` and `on_full` are as they were, each of its limits goes on
    /// counting where the old one stood that was the same, or else of the same kind, periods and alignment: then what a key
    /// has used stays used under the new number ([`CarryOver::KeepUsed`](crate::CarryOver::KeepUsed)). Whatever else the rule says may change freely.
    /// All other limits begin with nothing used, and [`Changes::anew`] says so.
    ///
    /// No check waits: one that is under way goes on by the old rules, and every one that begins after the call has
    /// returned goes by the new ones. Limits that go on change first, one after the other, so that for that moment the old
    /// rules decide by some new numbers (and a key whose [override](super::Override) changes by its rule's own, where there is no
    /// room for all overrides of before and of now). Calls take turns, and leave a millisecond between changes of numbers. What is not
    /// needed any more is freed when the last check that may see it has ended.
    ///
    /// # Errors
    /// A [`PolicyError`], and the rules in force stay so, with what was used.
    pub fn replace(&self, rules: Rules) -> Result<Changes, PolicyError> {
        // Who panicked with the lock held has left nothing half done that matters: the book is swapped in one step.
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = changing.last {
            thread::sleep(BETWEEN_CHANGES.saturating_sub(last.elapsed()));
        }
        let (book, edits, changes) = {
            let guard = pin();
            Book::new(rules, &changing.making, Some(self.current.get(&guard)))?
        };
        if !edits.is_empty() {
            let made = make_all(&edits);
            changing.last = Some(Instant::now());
            made?;
        }
        for ruling in &book.rules {
            ruling.limiters.iter().for_each(|limiter| limiter.core.stagger.turn(ruling.rule.staggers()));
        }
        self.current.replace(book);
        Ok(changes)
    }
}

/// Events on their way to the host.
struct Telling<'a> {
    events: std::vec::IntoIter<Event>,
    noted: &'a Noted,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if !self.events.as_slice().is_empty() {
            self.noted.drop_drained(self.events.len());
        }
    }
}

/// Changes limits of limiters in use: all, or, if one cannot be, none.
fn make_all<C: Clock>(edits: &[Edit<C>]) -> Result<(), PolicyError> {
    let mut undo = Vec::new();
    let mut is_undone = Ok(());
    for edit in edits {
        let changes = edit.limiter.core.engine.eras.changes();
        match edit.make() {
            Ok(back) => {
                undo.push(Edit { limiter: edit.limiter.clone(), to: back, rule: String::new(), ..*edit })
            }
            Err(error) => is_undone = Err(edit.error(error)),
        }
        if edit.limiter.core.engine.eras.changes() != changes {
            thread::sleep(BETWEEN_CHANGES);
        }
        if is_undone.is_err() {
            break;
        }
    }
    if is_undone.is_err() {
        for edit in undo.iter().rev() {
            // It was so a moment ago, so the limiter knows it.
            _ = edit.make();
            thread::sleep(BETWEEN_CHANGES);
        }
    }
    is_undone
}

impl<C> fmt::Debug for Policy<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").finish_non_exhaustive()
    }
}
