//! A limit on the tokens of a language model, charged afterwards: what an answer costs is known only when it is written.
//! An estimate is taken before; the rest is charged after, or the receipt given back and the true cost charged.
//!
//! `cargo run --release --example llm_tokens`

#![allow(clippy::cast_possible_truncation, reason = "four customers fit")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tidegate::{ConfigError, Limit, Limiter, Manual, Rate, Receipt};

const PER_MINUTE: u64 = 60_000;
/// A third of a minute's tokens may be used at once, and as many may be owed.
const BURST: u64 = 20_000;
/// The log names no customers; its rows are dealt out to these. The first sends half of them.
const CUSTOMERS: [&str; 4] = ["ada", "bob", "cyd", "dan"];
const SHARES: [usize; 8] = [0, 1, 0, 2, 0, 1, 0, 3];
/// What an answer is expected to have, and how long each of its tokens takes.
const EXPECTED: u64 = 30;
const PER_TOKEN: Duration = Duration::from_millis(20);

/// A request to a model.
struct Request {
    at: Duration,
    context: u64,
    generated: u64,
}

/// What became of a customer's requests.
#[derive(Default)]
struct Account {
    admitted: u64,
    refused: u64,
    tokens: u64,
    deepest_debt: u64,
    /// When each answer ended, and its tokens.
    used: Vec<(Duration, u64)>,
}

impl Account {
    /// The most tokens in a minute after an answer.
    fn busiest_minute(&self) -> u64 {
        let minute_from = |first: usize| {
            let (begin, _) = self.used[first];
            let rest = self.used[first..].iter();
            rest.take_while(|(at, _)| *at - begin < Duration::from_secs(60)).map(|used| used.1).sum()
        };
        (0..self.used.len()).map(minute_from).max().unwrap_or(0)
    }
}

fn main() -> Result<(), ConfigError> {
    let requests = requests();
    let clock = Manual::new();
    let limit = Limit::bucket(Rate::per_minute(PER_MINUTE), BURST);
    let limiter = Limiter::builder(limit).max_keys(1_000).clock(clock.clone()).build()?;
    let mut accounts: [Account; 4] = std::array::from_fn(|_| Account::default());
    // Answers that are being written, by the time at which they end.
    let mut answers: BTreeMap<(Duration, usize), (Receipt, u64)> = BTreeMap::new();

    for (number, request) in requests.iter().enumerate() {
        while let Some(answer) = answers.first_entry().filter(|answer| answer.key().0 <= request.at) {
            let (end, number) = *answer.key();
            clock.set(end);
            settle(&limiter, number, end, answer.remove(), &mut accounts);
        }
        clock.set(request.at);
        let customer = customer_of(number);
        match limiter.take(CUSTOMERS[customer], request.context + EXPECTED) {
            Ok(receipt) => {
                accounts[customer].admitted += 1;
                let end = request.at + PER_TOKEN * request.generated as u32;
                answers.insert((end, number), (receipt, request.context + request.generated));
            }
            Err(_) => accounts[customer].refused += 1,
        }
    }
    for ((end, number), answer) in answers {
        clock.set(end);
        settle(&limiter, number, end, answer, &mut accounts);
    }
    print(&accounts, requests.len(), clock.elapsed());
    Ok(())
}

fn customer_of(number: usize) -> usize {
    SHARES[number % SHARES.len()]
}

/// An answer is written: what it cost is charged.
fn settle(
    limiter: &Limiter<Manual>,
    number: usize,
    at: Duration,
    (receipt, cost): (Receipt, u64),
    accounts: &mut [Account; 4],
) {
    let customer = customer_of(number);
    let key = CUSTOMERS[customer];
    let debt = if let Some(rest) = cost.checked_sub(receipt.charged()) {
        // Where the table is full, a key that owes little may have gone meanwhile. Then there is nothing to charge.
        limiter.charge(key, rest).map_or(0, |charged| charged.debt())
    } else {
        let too_much = receipt.charged() - cost;
        limiter.refund_part(receipt, too_much); // less what has come back since
        0
    };
    let account = &mut accounts[customer];
    account.deepest_debt = account.deepest_debt.max(debt);
    account.tokens += cost;
    account.used.push((at, cost));
}

fn print(accounts: &[Account; 4], requests: usize, lasted: Duration) {
    let minutes = lasted.as_secs_f64() / 60.0;
    println!(
        "{requests} requests in {minutes:.1} min; for each customer {PER_MINUTE} tokens a minute, {BURST} at once:"
    );
    println!(
        "{:>8} {:>9} {:>8} {:>10} {:>14} {:>14} {:>13}",
        "customer", "admitted", "refused", "tokens", "tokens a min", "busiest min", "deepest debt"
    );
    for (name, account) in CUSTOMERS.iter().zip(accounts) {
        let Account { admitted, refused, tokens, deepest_debt, .. } = account;
        let (a_minute, busiest) = (*tokens as f64 / minutes, account.busiest_minute());
        println!(
            "{name:>8} {admitted:>9} {refused:>8} {tokens:>10} {a_minute:>14.0} {busiest:>14} {deepest_debt:>13}"
        );
        assert!(a_minute <= PER_MINUTE as f64 + 2.0 * BURST as f64 / minutes);
        assert!(*deepest_debt <= BURST && admitted + refused > 0);
    }
    println!("A debt is what answers cost beyond their estimates; who owes waits until it has come back.");
}

/// The log's requests, or made-up ones where it is not at hand.
fn requests() -> Vec<Request> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = package.ancestors().map(|folder| folder.join("shared/data/azure_llm_code.csv"));
    if let Some(text) = paths.find_map(|path| std::fs::read_to_string(path).ok()) {
        let mut requests: Vec<Request> = text.lines().skip(1).filter_map(parse).collect();
        println!("a log of requests to a model that writes code (Azure/AzurePublicDataset, CC-BY-4.0)");
        requests.sort_by_key(|request| request.at);
        let start = requests.first().map_or(Duration::ZERO, |first| first.at);
        requests.iter_mut().for_each(|request| request.at -= start);
        return requests;
    }
    println!("made-up requests: shared/data/azure_llm_code.csv is not beside or above the package");
    let mut dice = 2026_u64;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let mut at = Duration::ZERO;
    let request = |_| {
        at += Duration::from_millis(roll(800));
        // One answer in twenty is long.
        let longest = if roll(20) == 0 { 1_900 } else { 40 };
        Request { at, context: 100 + roll(4_000), generated: 1 + roll(longest) }
    };
    (0..8_000).map(request).collect()
}

/// A line `2023-11-16 18:17:03.9799600,4808,10`: time, tokens in, tokens out.
fn parse(line: &str) -> Option<Request> {
    let (stamp, tokens) = line.trim_end().split_once(',')?;
    let (context, generated) = tokens.split_once(',')?;
    let mut time = stamp.split_once(' ')?.1.split(':');
    let (hours, minutes) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let seconds = time.next()?.parse::<f64>().ok()?;
    Some(Request {
        at: Duration::from_secs(hours * 3_600 + minutes * 60) + Duration::from_secs_f64(seconds),
        context: context.parse().ok()?,
        generated: generated.parse().ok()?,
    })
}
