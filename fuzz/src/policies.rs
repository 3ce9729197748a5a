//! Policies: rules of every kind on a clock moved by hand, replaced by others meanwhile, beside the naive policy of the
//! property tests.

use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::Manual;
use tidegate::policy::{
    Cost, Counting, EventSettings, KeyPart, Matching, OnRefusal, Pattern, Policy, Request,
};

use crate::evaluator::{Drawn, Kind, Naive, Plan};
use crate::input::STEPS_MAX;
use crate::same::assert_same;
use crate::told::Told;

/// Rules of one policy; each has a name of its own.
const RULES_MAX: usize = 6;
/// Each costs milliseconds.
const REPLACES_MAX: usize = 4;
/// Until every key has recovered.
const RECOVERY: Duration = Duration::from_secs(3_600);
/// Different limits that a limiter has room for beside its own.
const OVERRIDES_MAX: usize = 3;
/// The rates of the buckets of each rule, in tokens a minute; a token takes whole nanoseconds. They stay: see the evaluator.
const RATES: [u64; RULES_MAX] = [1, 2, 3, 6, 10, 20];

const APIS: [&str; 4] = ["r", "w", "rw", "wr"];
const USERS: [Option<&str>; 4] = [Some("ada"), Some("bob"), Some(""), None];
const TITLES: [Option<&str>; 3] = [Some("chess"), Some("go"), None];
const PLANS: [Option<&str>; 4] = [Some("gold"), Some("free"), Some("3"), None];
/// What an override may name in the place of any part.
const NAMED: [&str; 8] = ["ada", "bob", "", "chess", "go", "gold", "free", "3"];

#[derive(Arbitrary, Debug)]
pub struct Input {
    first: Policies,
    tells: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Check(Asked),
    Again,
    Peek(Asked),
    Wait(Wait),
    Listen,
    Replace(Policies),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Wait {
    Nanos(u32),
    Millis(u16),
    Seconds(u8),
}

impl Wait {
    fn get(self) -> Duration {
        match self {
            Self::Nanos(nanos) => Duration::from_nanos(nanos.into()),
            Self::Millis(millis) => Duration::from_millis(millis.into()),
            Self::Seconds(seconds) => Duration::from_secs(seconds.into()),
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug, Default)]
struct Asked {
    api: u8,
    user: u8,
    title: u8,
    plan: u8,
    cost: u8,
}

/// A policy to be.
#[derive(Arbitrary, Debug)]
struct Policies {
    all_or_nothing: bool,
    first: bool,
    rules: Vec<OneRule>,
}

#[derive(Arbitrary, Debug)]
struct OneRule {
    name: u8,
    apis: Vec<Text>,
    plan: Option<u8>,
    key: [u8; 2],
    kinds: [Option<OneKind>; 3],
    is_exempt: Option<u8>,
    overrides: Vec<Over>,
    shadow: u8,
    cost: OneCost,
    ignores_refused: bool,
}

#[derive(Arbitrary, Debug)]
enum Text {
    Exact(u8),
    Prefix(u8),
    Glob(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum OneKind {
    Bucket(u8),
    Window { limit: u8, period: u8 },
    BurstSustain { burst: u8, more: u8 },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum OneCost {
    Fixed(u8),
    OfRequest,
    Attribute,
}

#[derive(Arbitrary, Debug)]
struct Over {
    key: [u8; 2],
    numbers: [(u8, u8); 3],
}

/// One of a few.
fn one<T: Copy>(of: &[T], number: u8) -> T {
    of[usize::from(number) % of.len()]
}

/// From 1 to 16, and up to 15 more.
fn numbers(first: u8, more: u8) -> (u64, u64) {
    (u64::from(first % 16) + 1, u64::from(more % 16))
}

impl Text {
    fn get(&self) -> Pattern {
        match self {
            Self::Exact(api) => Pattern::Exact(one(&APIS, *api).to_owned()),
            Self::Prefix(api) => Pattern::Prefix(one(&["", "r", "w", "rw"], *api).to_owned()),
            Self::Glob(glob) => Pattern::Glob(one(&["*", "?", "*w", "r*", "?w", "*r*w*"], *glob).to_owned()),
        }
    }
}

impl OneKind {
    fn get(self, rate: u64) -> Kind {
        match self {
            Self::Bucket(burst) => Kind::Bucket { rate, burst: numbers(burst, 0).0 },
            Self::Window { limit, period } => {
                Kind::Window { limit: numbers(limit, 0).0, period: one(&[1, 7, 15, 60], period) }
            }
            Self::BurstSustain { burst, more } => {
                let (burst, more) = numbers(burst, more);
                Kind::BurstSustain { burst, sustain: burst + more }
            }
        }
    }
}

impl OneRule {
    fn get(&self) -> Drawn {
        let number = usize::from(self.name) % RULES_MAX;
        let plan = || "plan".to_owned();
        let parts = [None, Some(KeyPart::User), Some(KeyPart::Title), Some(KeyPart::Attribute(plan()))];
        let key: Vec<KeyPart> =
            self.key.iter().filter_map(|&part| parts[usize::from(part % 4)].clone()).collect();
        let mut kinds: Vec<Kind> = self.kinds.iter().flatten().map(|kind| kind.get(RATES[number])).collect();
        if kinds.is_empty() {
            kinds.push(OneKind::Bucket(self.name / 16).get(RATES[number]));
        }
        let over = |over: &Over| {
            let key = over.key[..key.len()].iter().map(|&text| one(&NAMED, text).to_owned()).collect();
            let other = |(kind, &(first, more)): (&Kind, &(u8, u8))| {
                let (first, more) = numbers(first, more);
                kind.with(first, more)
            };
            (key, kinds.iter().zip(&over.numbers).map(other).collect())
        };
        let overridden = self.overrides.iter().take(if key.is_empty() { 0 } else { OVERRIDES_MAX });
        let overrides = overridden.map(over).collect();
        let mut drawn = Drawn { overrides, ..Drawn::new(number.to_string(), key, kinds) };
        let rule = &mut drawn.rule;
        rule.matcher.apis = self.apis.iter().take(2).map(Text::get).collect();
        if let Some(value) = self.plan.and_then(|value| one(&PLANS, value)) {
            rule.matcher.attributes = vec![(plan(), vec![Pattern::Exact(value.to_owned())])];
        }
        rule.exempt.titles.extend(self.is_exempt.and_then(|title| one(&TITLES, title)).map(str::to_owned));
        rule.shadow = self.shadow.is_multiple_of(4);
        rule.cost = match self.cost {
            OneCost::Fixed(cost) => Cost::Fixed((cost % 8).into()),
            OneCost::OfRequest => Cost::OfRequest,
            OneCost::Attribute => Cost::Attribute(plan()),
        };
        rule.on_refusal = if self.ignores_refused { OnRefusal::Ignore } else { OnRefusal::Count };
        drawn
    }
}

impl Policies {
    fn get(&self) -> Plan {
        let counting = if self.all_or_nothing { Counting::AllOrNothing } else { Counting::EveryRule };
        let matching = if self.first { Matching::First } else { Matching::All };
        let mut rules: Vec<Drawn> = Vec::new();
        for drawn in self.rules.iter().map(OneRule::get) {
            if rules.iter().all(|other| other.rule.name != drawn.rule.name) {
                rules.push(drawn);
            }
        }
        Plan { counting, matching, rules }
    }
}

/// Plays one game.
pub fn run(input: &Input) {
    let plan = input.first.get();
    let clock = Manual::new();
    let mut builder = Policy::builder(plan.rules()).seed(1).clock(clock.clone());
    if input.tells {
        builder = builder.events(EventSettings::new());
    }
    let policy = builder.build().unwrap_or_else(|error| panic!("{error}: {plan:?}"));
    let (naive, told) = (Naive::new(&plan), Told::default());
    let mut game = Game { policy, naive, clock, told, last: Asked::default(), replaces: 0 };
    for step in input.steps.iter().take(STEPS_MAX) {
        match step {
            Step::Check(asked) => game.check(*asked),
            Step::Again => game.check(game.last),
            Step::Peek(asked) => game.peek(*asked),
            Step::Wait(wait) => game.clock.advance(wait.get()),
            Step::Listen => game.listen(),
            Step::Replace(policies) => game.replace(&policies.get()),
        }
    }
    if input.tells {
        game.end();
    }
}

struct Game {
    policy: Policy<Manual>,
    naive: Naive,
    clock: Manual,
    told: Told,
    last: Asked,
    replaces: usize,
}

impl Game {
    fn now_ns(&self) -> u128 {
        self.clock.elapsed().as_nanos()
    }

    fn check(&mut self, asked: Asked) {
        self.last = asked;
        with_request(asked, |request| {
            let said = self.naive.check(request, self.now_ns());
            let verdict = self.policy.check(request);
            self.told.count(&verdict);
            self.naive
                .assert_same(&verdict, &said, 0, |answer, decision| assert_same(answer, decision, request));
        });
    }

    /// A look says what a check would, and leaves no trace: what comes next is compared too.
    fn peek(&mut self, asked: Asked) {
        with_request(asked, |request| {
            let said = self.naive.clone().check(request, self.now_ns());
            let verdict = self.policy.peek(request);
            assert_eq!(
                verdict.is_allowed(),
                said.iter().all(|said| said.is_shadow() || said.passes()),
                "{request:?}"
            );
        });
    }

    fn replace(&mut self, plan: &Plan) {
        self.replaces += 1;
        if self.replaces > REPLACES_MAX {
            return;
        }
        let changes = self.policy.replace(plan.rules()).unwrap_or_else(|error| panic!("{error}: {plan:?}"));
        assert_eq!(changes, self.naive.replace(plan, self.now_ns()), "{plan:?}");
    }
}

impl Game {
    fn listen(&mut self) {
        self.told.drain(&self.policy, self.replaces > 0);
    }

    /// Has all keys recover: what was refused until then is told at the end of a first period, that it is over after another.
    fn end(&mut self) {
        for _ in 0..3 {
            self.listen();
            self.clock.advance(RECOVERY);
        }
        self.listen();
        self.told.assert_whole(&self.policy);
    }
}

fn with_request(asked: Asked, work: impl FnOnce(&Request<'_>)) {
    let attributes = one(&PLANS, asked.plan).map(|plan| [("plan", plan)]);
    let mut request = Request::new(one(&APIS, asked.api)).cost((asked.cost % 8).into());
    request.title = one(&TITLES, asked.title);
    if let Some(user) = one(&USERS, asked.user) {
        request = request.user(user);
    }
    if let Some(attributes) = &attributes {
        request = request.attributes(attributes);
    }
    work(&request);
}
