//! Charges, refunds and turns, by what they leave used.

use super::*;

const MINUTE: u64 = 60 * SECOND;
/// Whole minutes, so that every window here begins at it.
const START: u64 = 1_000 * MINUTE;

/// A rule at work on one word: times are after [`START`].
struct Bench {
    rule: Rule,
}

impl Bench {
    fn new(limit: Limit) -> Self {
        Self { rule: Rule::new(&limit).unwrap() }
    }

    fn at(&self, seconds: u64) -> u64 {
        self.rule.moment(START + seconds * SECOND, 0)
    }

    fn order(&self, order: Order, word: u64, seconds: u64) -> Done {
        self.rule.carry_out(order, word, START + seconds * SECOND, 0)
    }

    fn used(&self, word: u64, seconds: u64) -> [u64; 2] {
        self.rule.parts(word, self.at(seconds)).map(|part| part.used)
    }

    /// A charge on a word.
    fn charge(&self, word: u64, cost: u64, seconds: u64) -> u64 {
        self.order(Order::Charge(cost), word, seconds).next
    }

    /// What comes back of `tokens` that left the word as `left` at the start: the tokens, and what is used then.
    fn refund(&self, word: u64, tokens: u64, left: u64, seconds: u64) -> (u64, [u64; 2]) {
        let done = self.order(Order::Refund(paid(tokens, left), u64::MAX), word, seconds);
        assert!(done.tokens > 0 || done.next == word, "nothing is written for nothing");
        (done.tokens, self.used(done.next, seconds))
    }

    fn put_back(&self, word: u64, seconds: u64, seen: u64, next: u64) -> u64 {
        self.rule.put_back(word, self.at(seconds), seen, next)
    }
}

fn paid(tokens: u64, word: u64) -> Paid {
    Paid { tokens, word, ns: START, refilled: 0 }
}

/// A token a second, four of them, and a debt of three.
fn bucket() -> Bench {
    Bench::new(Limit::bucket(Rate::per_minute(60), 4).debt_max(3))
}

fn windows(burst: u64, sustain: u64, alignment: Alignment) -> Bench {
    let (short, long) = (Duration::from_secs(15), Duration::from_secs(60));
    Bench::new(Limit::burst_sustain(Window::new(burst, short), Window::new(sustain, long)).align(alignment))
}

fn sliding() -> Limit {
    Limit::sliding_window(Window::new(10, Duration::from_secs(60)))
}

#[test]
fn orders_that_only_charge_and_those_of_a_receipt() {
    let orders = [
        Order::Take(1),
        Order::Charge(1),
        Order::Reserve { cost: 1, wait_ns_max: 0 },
        Order::Refund(paid(1, 0), 1),
        Order::Cancel { left: 0, tokens: 1 },
        Order::Credit(1),
        Order::Reset,
    ];
    assert_eq!(orders.map(|order| order.charges()), [true, true, true, false, false, false, false]);
    assert_eq!(orders.map(|order| order.is_of_receipt()), [false, false, false, true, true, false, false]);
}

#[test]
fn a_bucket_is_charged_down_to_its_debt() {
    let bench = bucket();
    let overdrawn = |word| bench.rule.overdrawn(word, bench.at(0));
    let two = bench.order(Order::Charge(2), 0, 0);
    assert_eq!((two.tokens, bench.used(two.next, 0)[0], overdrawn(two.next)), (2, 2, 0));
    let rest = bench.order(Order::Charge(10), two.next, 0);
    assert_eq!((rest.tokens, bench.used(rest.next, 0)[0], overdrawn(rest.next)), (5, 4, 3));
    assert_eq!(overdrawn(bench.charge(two.next, 3, 0)), 1);
    for (cost, word) in [(1, rest.next), (0, two.next), (0, 0)] {
        let nothing = bench.order(Order::Charge(cost), word, 0);
        assert_eq!((nothing.outcome, nothing.tokens, nothing.next), (Outcome::Pass, 0, word));
    }
}

#[test]
fn a_turn_comes_when_its_token_is_there() {
    let bench = bucket();
    let reserve = |cost, wait_ns_max, word| bench.order(Order::Reserve { cost, wait_ns_max }, word, 0);
    let used_up = bench.charge(0, 4, 0);
    for (cost, wait_ns) in [(1, SECOND), (4, 4 * SECOND)] {
        let early = reserve(cost, wait_ns - 1, used_up);
        assert_eq!((early.outcome, early.tokens, early.next), (Outcome::Exhausted, 0, used_up));
        let turn = reserve(cost, wait_ns, used_up);
        assert_eq!((turn.outcome, turn.tokens), (Outcome::Pass, cost));
        assert_eq!(bench.rule.turn(turn.next), Some(bench.rule.time().units(START + wait_ns)));
    }
    assert_eq!(reserve(5, u64::MAX, 0).outcome, Outcome::TooLarge);
    let now = reserve(3, 0, 0);
    assert_eq!((now.outcome, now.tokens, bench.used(now.next, 0)[0]), (Outcome::Pass, 3, 3));
    // The line ends where words do.
    let last = value_max(VALUE_BITS);
    assert_eq!(reserve(1, u64::MAX, last).outcome, Outcome::Exhausted);

    let windows = windows(3, 5, Alignment::Clock);
    let none = windows.order(Order::Reserve { cost: 1, wait_ns_max: u64::MAX }, 0, 0);
    assert_eq!((none.outcome, windows.rule.turn(0)), (Outcome::Exhausted, None));
}

#[test]
fn a_bucket_gives_back_what_has_not_come_back_by_itself() {
    let bench = bucket();
    let four = bench.charge(0, 4, 0);
    assert_eq!(bench.refund(four, 4, four, 0), (4, [0, 0]));
    assert_eq!(bench.refund(four, 4, four, 1), (3, [0, 0]), "one came back");
    assert_eq!(bench.refund(four, 2, four, 1), (1, [2, 2]), "the first of two came back");
    assert_eq!(bench.refund(four, 4, four, 4), (0, [0, 0]));
    let at_most = bench.order(Order::Refund(paid(4, four), 1), four, 0);
    assert_eq!((at_most.tokens, bench.used(at_most.next, 0)[0]), (1, 3));
    let refilled = bench.rule.time().units(3 * SECOND);
    let faster = bench.order(Order::Refund(Paid { refilled, ..paid(4, four) }, 9), four, 1);
    assert_eq!((faster.tokens, bench.used(faster.next, 1)[0]), (1, 2), "three came back elsewhere");
    for (tokens, given) in [(3, 3), (9, 4)] {
        let credit = bench.order(Order::Credit(tokens), four, 0);
        assert_eq!((credit.tokens, bench.used(credit.next, 0)[0]), (given, 4 - given));
    }
}

#[test]
fn the_last_in_line_is_given_back_and_no_other() {
    let bench = bucket();
    let left = bench.order(Order::Reserve { cost: 2, wait_ns_max: 0 }, 0, 0).next;
    let cancel = |word| bench.order(Order::Cancel { left, tokens: 2 }, word, 0);
    let gone = cancel(left);
    assert_eq!((gone.outcome, gone.tokens, bench.used(gone.next, 0)[0]), (Outcome::Pass, 2, 0));
    let after = bench.charge(left, 1, 0);
    let stays = cancel(after);
    assert_eq!((stays.outcome, stays.tokens, stays.next), (Outcome::Exhausted, 0, after));
}

#[test]
fn what_an_order_took_from_one_word_is_put_back_on_another() {
    let bench = bucket();
    let words: Vec<u64> = (0..=4).map(|cost| bench.charge(0, cost, 0)).collect();
    assert_eq!(bench.used(bench.put_back(words[1], 0, words[4], words[2]), 0)[0], 3);
    assert_eq!(bench.used(bench.put_back(words[0], 0, words[4], words[1]), 0)[0], 3);
    assert_eq!(bench.used(bench.put_back(words[0], 0, words[4], 0), 0)[0], 4, "less what time has taken");
    assert_eq!(bench.put_back(words[0], 0, words[2], words[2]), words[0]);
    let end = value_max(VALUE_BITS);
    assert_eq!(bench.put_back(end, 0, words[4], words[1]), end);
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let bench = windows(3, 5, alignment);
        let opened = bench.charge(0, 1, 0);
        // Three of this burst, and one of the burst before it.
        let seen = bench.charge(opened, 3, 15);
        let next = bench.order(Order::Credit(2), seen, 15).next;
        assert_eq!((bench.used(seen, 15), bench.used(next, 15)), ([3, 4], [1, 2]));
        assert_eq!(bench.used(bench.put_back(opened, 15, seen, next), 15), [2, 3]);
        assert_eq!(bench.used(bench.put_back(seen, 15, seen, seen), 15), [3, 4]);
        assert_eq!(bench.used(bench.put_back(seen, 15, next, seen), 15), [3, 4], "nothing was taken");
    }
    let bench = Bench::new(sliding());
    let first = bench.charge(0, 6, 30);
    // A third of the next window has passed, and of the window before two thirds weigh.
    let both = bench.charge(first, 3, 80);
    assert_eq!(bench.used(both, 80)[0], 4 + 3);
    let older = bench.order(Order::Refund(paid(3, first), 9), both, 80).next;
    assert_eq!(bench.used(older, 80)[0], 2 + 3);
    let newer = bench.order(Order::Refund(paid(2, both), 9), both, 80).next;
    assert_eq!(bench.used(newer, 80)[0], 4 + 1);
    assert_eq!(bench.put_back(older, 80, both, older), both);
    assert_eq!(bench.put_back(newer, 80, both, newer), both);
    assert_eq!(bench.put_back(both, 80, older, both), both);
}

#[test]
fn windows_are_charged_to_the_ends_of_their_counts() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let bench = windows(3, 5, alignment);
        let four = bench.order(Order::Charge(4), 0, 0);
        assert_eq!((four.tokens, bench.used(four.next, 0)), (4, [4, 4]));
        assert_eq!(bench.rule.overdrawn(four.next, bench.at(0)), 1, "by the burst window");
        let six = bench.charge(four.next, 2, 15);
        assert_eq!((bench.used(six, 15), bench.rule.overdrawn(six, bench.at(15))), ([2, 6], 1));
        let nothing = bench.order(Order::Charge(0), four.next, 15);
        assert_eq!((nothing.tokens, nothing.next), (0, four.next));
    }
    // The room of the window that has more of it.
    for (burst, sustain) in [(3, 5), (3, 5_000)] {
        let bench = windows(burst, sustain, Alignment::Clock);
        let ends = bench.rule.parts(0, bench.at(0)).map(|part| part.used_max);
        let begun = bench.charge(bench.charge(0, 2, 0), 1, 15);
        let all = bench.order(Order::Charge(u64::MAX), begun, 15);
        assert_eq!(all.tokens, (ends[0] - 1).max(ends[1] - 3));
        assert_eq!(bench.used(all.next, 15), ends);
        assert_eq!(bench.order(Order::Charge(1), all.next, 15).tokens, 0);
    }
    for limit in [Limit::window(Window::new(10, Duration::from_secs(60))), sliding()] {
        let bench = Bench::new(limit);
        let end = bench.rule.parts(0, bench.at(0))[0].used_max;
        let begun = bench.order(Order::Charge(2), 0, 0);
        assert_eq!((begun.tokens, bench.used(begun.next, 0)[0]), (2, 2));
        let all = bench.order(Order::Charge(u64::MAX), begun.next, 0);
        assert_eq!((all.tokens, bench.used(all.next, 0)[0]), (end - 2, end));
        let nothing = bench.order(Order::Charge(0), begun.next, 60);
        assert_eq!((nothing.tokens, nothing.next), (0, begun.next));
    }
}

#[test]
fn windows_give_back_where_it_was_counted() {
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let bench = windows(3, 5, alignment);
        let first = bench.charge(0, 2, 0);
        let second = bench.charge(first, 1, 15);
        assert_eq!(bench.used(second, 15), [1, 3]);
        assert_eq!(bench.refund(first, 2, first, 14), (2, [0, 0]));
        assert_eq!(bench.refund(second, 2, first, 15), (2, [1, 1]), "of the sustain window alone");
        assert_eq!(bench.refund(second, 1, second, 15), (1, [0, 2]));
        assert_eq!(bench.refund(second, 9, second, 15), (3, [0, 0]), "no more than is counted");
        let at_most = bench.order(Order::Refund(paid(9, second), 1), second, 15);
        assert_eq!((at_most.tokens, bench.used(at_most.next, 15)), (1, [0, 2]));
        let credit = bench.order(Order::Credit(2), second, 15);
        assert_eq!((credit.tokens, bench.used(credit.next, 15)), (2, [0, 1]));
        // In the sustain window after it, in the burst of the same number.
        let later = bench.charge(second, 2, 60);
        assert_eq!(bench.refund(later, 1, first, 60), (0, [2, 2]));
        assert_eq!(bench.refund(later, 1, second, 60), (0, [2, 2]));
        // A count at its end is no longer known.
        let Kind::Windows(Windows::Fixed(windowed)) = bench.rule.kind else { panic!("not windowed") };
        let layout = *windowed.layout();
        let ends = [layout.burst_max(), layout.sustain_max()];
        let full = |burst, sustain| layout.pack(Counts { burst, sustain, ..layout.unpack(second) });
        let (both, neither) = (full(ends[0], ends[1]), full(ends[0] - 1, ends[1] - 1));
        assert_eq!(bench.refund(both, 1, second, 15), (0, ends));
        assert_eq!(bench.refund(neither, 1, second, 15), (1, ends.map(|end| end - 2)));
    }
}

#[test]
fn a_sliding_window_gives_back_in_the_window_and_in_the_next() {
    let bench = Bench::new(sliding());
    let first = bench.charge(0, 6, 30);
    assert_eq!(bench.refund(first, 2, first, 59), (2, [4, 4]));
    assert_eq!(bench.refund(first, 9, first, 59), (6, [0, 0]));
    let both = bench.charge(first, 3, 60);
    assert_eq!(bench.used(both, 60), [9, 9]);
    assert_eq!(bench.refund(both, 2, first, 60), (2, [7, 7]));
    assert_eq!(bench.refund(both, 2, both, 60), (2, [7, 7]));
    assert_eq!(bench.refund(both, 9, both, 60), (3, [6, 6]));
    assert_eq!(bench.refund(both, 1, first, 120), (0, [3, 3]), "in the one after no more");
    let full = bench.charge(both, u64::MAX, 60);
    assert_eq!(bench.refund(full, 1, both, 60).0, 0, "a count at its end is no longer known");
    let end = bench.rule.parts(0, bench.at(0))[0].used_max;
    let near = bench.charge(0, end - 1, 0);
    assert_eq!(bench.refund(near, 1, near, 0), (1, [end - 2; 2]));
}

/// A word that was rolled to a later window, where another had been counted in the earlier one meanwhile.
#[test]
fn what_a_roll_lost_counts_in_the_window_after_it() {
    let bucket = bucket();
    assert_eq!(bucket.rule.with_lost(7, 9, 11), 7);
    for alignment in [Alignment::Clock, Alignment::FirstRequest] {
        let bench = windows(3, 5, alignment);
        let seen = bench.charge(bench.charge(0, 1, 0), 2, 15);
        assert_eq!(bench.used(seen, 15), [2, 3]);
        let rolled = bench.charge(0, 1, 60);
        assert_eq!(bench.used(bench.rule.with_lost(rolled, seen, rolled), 60), [3, 4]);
        assert_eq!(bench.rule.with_lost(rolled, seen, seen), rolled, "nothing was lost");
    }
    let bench = Bench::new(sliding());
    let seen = bench.charge(bench.charge(0, 1, 0), 2, 60);
    let rolled = bench.charge(0, 4, 180);
    assert_eq!(bench.used(bench.rule.with_lost(rolled, seen, rolled), 180)[0], 4 + 1 + 2);
    assert_eq!(bench.rule.with_lost(rolled, seen, seen), rolled);
}

#[test]
fn a_sliding_window_that_refuses_is_the_one_that_refuses() {
    for counts_refused in [true, false] {
        let bench = Bench::new(sliding().count_refused(counts_refused));
        let refusing =
            |word, cost, is_counted| bench.rule.refusing(word, bench.at(0), cost, is_counted).first;
        let eight = bench.charge(0, 8, 0);
        assert_eq!([2, 3].map(|cost| refusing(eight, cost, false)), [false, true]);
        // Counted already, if refusals are.
        assert_eq!(refusing(eight, 3, true), !counts_refused);
        assert_eq!([10, 11].map(|used| refusing(bench.charge(0, used, 0), 3, true)), [!counts_refused, true]);
        assert!(refusing(0, 11, true), "more than the whole limit");
    }
}
