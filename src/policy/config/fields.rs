//! The table of fields: every name that a policy file may have, what may stand there, and what it is. The decoder takes
//! names, ranges and choices from here, and the schema is printed from it, so that the two cannot drift apart.

use crate::limit::Alignment;
use crate::policy::{Counting, EntityType, Matching, OnRefusal, RefusalBody};
use crate::table::OnFull;

/// What may stand in a place.
pub(super) enum Shape {
    /// Any text.
    Text,
    /// A text of this form.
    Form(&'static Form),
    /// A whole number.
    Count {
        min: u64,
        max: u64,
    },
    Bool,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A table of these fields.
    Table(&'static Table),
    /// A table whose names are the user's.
    Map(&'static Shape),
    /// A list.
    List(&'static Shape),
    /// One, or a list of at least so many.
    Many {
        of: &'static Shape,
        min: usize,
    },
    /// Any of these.
    Either(&'static [Shape]),
    /// What a message puts in words of its own.
    Told(&'static str, &'static Shape),
}

/// A form of text.
pub(super) struct Form {
    /// What a message calls it, with an example.
    pub(super) what: &'static str,
    /// What it looks like, as a regular expression of ECMA 262; the decoder may be stricter.
    pub(super) pattern: &'static str,
}

/// The fields of one kind of table.
pub(super) struct Table {
    /// What it is, in the schema.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: &'static [Field],
}

/// One field.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// Whether the table is nothing without it.
    pub(super) is_required: bool,
    pub(super) about: &'static str,
}

const fn field(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, shape, is_required: false, about }
}

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, shape, is_required: true, about }
}

impl Table {
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).filter(|name| !name.starts_with('$')).collect()
    }
}

impl Shape {
    /// What a message says may stand there.
    pub(super) fn allowed(&self) -> String {
        match self {
            Self::Text => "text in quotes".to_owned(),
            Self::Form(form) => form.what.to_owned(),
            Self::Count { min, max: u64::MAX } => format!("a whole number from {min} to 2^64 - 1"),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Bool => "true or false".to_owned(),
            Self::OneOf(names) => one_of(names),
            Self::Table(table) => format!("a table of {}", table.names().join(", ")),
            Self::Map(of) => format!("a table that gives for each name {}", of.allowed()),
            Self::List(of) => format!("a list, each of it {}", of.allowed()),
            Self::Many { of, min: 0 } => format!("{}, or a list of such", of.allowed()),
            Self::Many { of, .. } => format!("{}, or a list of one or more such", of.allowed()),
            Self::Told(what, _) => (*what).to_owned(),
            Self::Either(shapes) => {
                let all: Vec<String> = shapes.iter().map(Shape::allowed).collect();
                all.join(", or ")
            }
        }
    }
}

/// `"a", "b" or "c"`.
pub(super) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The names of choices.
const fn names<T: Copy, const N: usize>(choices: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = choices[at].0;
        at += 1;
    }
    names
}

pub(super) const COUNTINGS: [(&str, Counting); 2] =
    [("every-rule", Counting::EveryRule), ("all-or-nothing", Counting::AllOrNothing)];
pub(super) const MATCHINGS: [(&str, Matching); 2] = [("all", Matching::All), ("first", Matching::First)];
pub(super) const BODIES: [(&str, RefusalBody); 5] = [
    ("fgrl", RefusalBody::Fgrl),
    ("fgrl-limit-type", RefusalBody::FgrlLimitType),
    ("game-backend", RefusalBody::GameBackend),
    ("problem", RefusalBody::Problem),
    ("text", RefusalBody::Text),
];
pub(super) const ON_REFUSALS: [(&str, OnRefusal); 2] =
    [("count", OnRefusal::Count), ("ignore", OnRefusal::Ignore)];
pub(super) const ON_FULLS: [(&str, OnFull); 4] = [
    ("evict-least", OnFull::EvictLeast),
    ("refuse", OnFull::Refuse),
    ("inherit", OnFull::Inherit),
    ("admit", OnFull::Admit),
];
pub(super) const OPENS: [(&str, Alignment); 3] =
    [("per-key", Alignment::PerKey), ("clock", Alignment::Clock), ("first-request", Alignment::FirstRequest)];
pub(super) const ENTITY_TYPES: [(&str, EntityType); 8] = [
    ("namespace", EntityType::Namespace),
    ("title", EntityType::Title),
    ("master-player-account", EntityType::MasterPlayerAccount),
    ("title-player-account", EntityType::TitlePlayerAccount),
    ("character", EntityType::Character),
    ("group", EntityType::Group),
    ("game-server", EntityType::GameServer),
    ("other", EntityType::Other),
];

/// The parts of a key that take no more than their name.
pub(super) const KEY_PARTS: [&str; 5] = ["user", "title", "namespace", "client_ip", "entity"];

/// The most keys that a rule may ask room for, 96 GiB of them: more is a slip of the hand.
pub(super) const MAX_KEYS_MAX: u64 = 1 << 32;

static RATE: Form = Form {
    what: "tokens and the time in which they come back, as in \"100/s\" or \"5/1m30s\"",
    pattern: QUOTA_PATTERN,
};
static QUOTA: Form =
    Form { what: "how many in which time, as in \"100/15s\" or \"3600/1h\"", pattern: QUOTA_PATTERN };
const QUOTA_PATTERN: &str = "^[0-9]+(_[0-9]+)* */ *[0-9_a-z ]*(d|h|m|min|s|ms|us|ns)$";
static DURATION: Form = Form {
    what: "a length of time with its unit (d, h, m, s, ms, us, ns), as in \"15s\", \"5m\" or \"1h30m\"",
    pattern: "^[0-9_a-z ]*(d|h|m|min|s|ms|us|ns)$",
};
static KEY: Form = Form {
    what: "\"user\", \"title\", \"namespace\", \"client_ip\", \"client_ip/24/48\", \"entity\" or \"attribute:NAME\", \
           or several with \"+\" between them, as in \"user+title\", or \"global\"",
    pattern: "^(global|(user|title|namespace|client_ip(/[0-9]+/[0-9]+)?|entity|attribute:[^+]+)\
              ( *\\+ *(user|title|namespace|client_ip(/[0-9]+/[0-9]+)?|entity|attribute:[^+]+))*)$",
};
static COST: Form = Form {
    what: "\"request\" (what the request says) or \"attribute:NAME\" (the number in it)",
    pattern: "^(request|attribute:.+)$",
};
static PATTERN: Form = Form {
    what: "a text, one with * (any characters) and ? (one), or \"exact:…\", \"prefix:…\", \"glob:…\"",
    pattern: "",
};
const PATTERNS: Shape = Shape::Many { of: &Shape::Form(&PATTERN), min: 1 };
const TEXTS: Shape = Shape::Many { of: &Shape::Text, min: 0 };
const COUNT: Shape = Shape::Count { min: 1, max: u64::MAX };
const QUOTAS: Shape = Shape::Either(&[Shape::Form(&QUOTA), Shape::Table(&WINDOW)]);

const KEYS: Shape = Shape::Either(&[
    Shape::Form(&KEY),
    Shape::Table(&KEY_PART),
    Shape::List(&Shape::Either(&[Shape::Form(&KEY), Shape::Table(&KEY_PART)])),
]);
const LIMITS: Shape = Shape::Told(LIMIT_WANTED, &Shape::Table(&LIMIT));

/// What a limit may be.
pub(super) const LIMIT_WANTED: &str = "one of { rate = \"100/s\", burst = 200 }, { window = \"100/15s\" }, { sliding = \"100/15s\" } \
                            or { burst = \"30/15s\", sustain = \"100/5m\" }";

pub(super) static POLICY: Table = Table {
    name: "policy",
    about: "A set of rules that limit requests",
    fields: &[
        field("$schema", Shape::Text, "Where the schema of this file is; for editors alone"),
        field("name", Shape::Text, "What people call the policy"),
        field(
            "counting",
            Shape::OneOf(&names(&COUNTINGS)),
            "How the rules that match a request count it: each for itself (the default), or all of them or, if one refuses, none",
        ),
        field(
            "matching",
            Shape::OneOf(&names(&MATCHINGS)),
            "Which of the rules that match a request are asked: all (the default), or the first in their order",
        ),
        field(
            "body",
            Shape::OneOf(&names(&BODIES)),
            "What the body of a refusal over HTTP looks like; what each client accepts if left out",
        ),
        required("rule", Shape::List(&Shape::Table(&RULE)), "The rules, in their order"),
    ],
};

pub(super) static RULE: Table = Table {
    name: "rule",
    about: "These requests, counted under this key, may be so many",
    fields: &[
        required(
            "name",
            Shape::Text,
            "Unique in the policy; what clients are told, and what a reload knows the rule by",
        ),
        field("match", Shape::Table(&MATCH), "The requests that the rule is about; all, if left out"),
        required("key", Shape::Told(KEY.what, &KEYS), "What requests are counted under"),
        field("limit", LIMITS, "What each key may have"),
        field(
            "limits",
            Shape::List(&Shape::Table(&LIMIT)),
            "Several limits at once, in place of limit; each has a count of its own",
        ),
        field(
            "exempt",
            Shape::Table(&EXEMPT),
            "The requests that the rule leaves alone although they match: those that meet any of these",
        ),
        field("override", Shape::List(&Shape::Table(&OVERRIDE)), "Keys that have other limits"),
        field("shadow", Shape::Bool, "Decide and report, and never refuse; false if left out"),
        field("cost", Shape::Either(&[COUNT, Shape::Form(&COST)]), "What a request costs; 1 if left out"),
        field(
            "on_refusal",
            Shape::OneOf(&names(&ON_REFUSALS)),
            "Whether requests that the rule refuses count in its windows; they do if left out, but not in a rule with a sliding window",
        ),
        field(
            "warn_percent",
            Shape::Count { min: 1, max: 100 },
            "The share of a limit, in percent, that is worth a warning; 80 if left out",
        ),
        field(
            "max_keys",
            Shape::Count { min: 1, max: MAX_KEYS_MAX },
            "Keys that there is room for, 24 bytes each for each limit; 100000 if left out",
        ),
        field(
            "on_full",
            Shape::OneOf(&names(&ON_FULLS)),
            "What happens to a new key that finds no room; evict-least if left out",
        ),
    ],
};

pub(super) static MATCH: Table = Table {
    name: "match",
    about: "Which requests: those that meet every condition given",
    fields: &[
        field("api", PATTERNS, "The name of the API, service or route is one of these"),
        field(
            "attribute",
            Shape::Map(&Shape::Many { of: &Shape::Form(&PATTERN), min: 0 }),
            "Each of these attributes is there and is one of the patterns beside it",
        ),
    ],
};

pub(super) static EXEMPT: Table = Table {
    name: "exempt",
    about: "Requests that are left alone: those that meet any of these",
    fields: &[
        field("title", TEXTS, "Titles by id"),
        field("namespace", TEXTS, "Namespaces by id"),
        field("caller", TEXTS, "Callers by id"),
        field(
            "caller_type",
            Shape::Many { of: &Shape::OneOf(&names(&ENTITY_TYPES)), min: 0 },
            "Callers of these types",
        ),
        field("api", Shape::Many { of: &Shape::Form(&PATTERN), min: 0 }, "APIs, services or routes"),
        field(
            "attribute",
            Shape::Map(&Shape::Many { of: &Shape::Form(&PATTERN), min: 0 }),
            "Attributes of which one is one of the patterns beside it",
        ),
    ],
};

pub(super) static OVERRIDE: Table = Table {
    name: "override",
    about: "Other limits for one key",
    fields: &[
        required(
            "key",
            Shape::Many { of: &Shape::Text, min: 1 },
            "The key: one text for each part of the rule's, in its order; an address part as a network or an address in it",
        ),
        field(
            "limit",
            Shape::Table(&LIMIT),
            "What this key may have, of the same kind and periods as the rule's",
        ),
        field(
            "limits",
            Shape::List(&Shape::Table(&LIMIT)),
            "As many as the rule has, each of the same kind and periods as the one in its place",
        ),
    ],
};

pub(super) static LIMIT: Table = Table {
    name: "limit",
    about: "A bucket (rate, burst), a window, a sliding window, or two windows counted at once (burst, sustain)",
    fields: &[
        field("rate", Shape::Form(&RATE), "Of a bucket: the tokens that come back evenly in a time"),
        field(
            "burst",
            Shape::Either(&[COUNT, Shape::Form(&QUOTA), Shape::Table(&WINDOW)]),
            "Of a bucket: the most tokens that it holds, a number. Beside sustain: the short window",
        ),
        field(
            "debt_max",
            Shape::Count { min: 0, max: u64::MAX },
            "Of a bucket: how far it may be overdrawn by what is paid afterwards; as far as burst if left out",
        ),
        field("window", QUOTAS, "A fixed window, after which the count starts again at 0"),
        field(
            "sliding",
            QUOTAS,
            "A window that slides: what the period before counted is weighed by the share that is still in it",
        ),
        field("sustain", QUOTAS, "The long window beside burst; its period is 2 or more whole bursts"),
        field(
            "opens",
            Shape::OneOf(&names(&OPENS)),
            "When windows begin: at a time of each key's own (the default), at whole periods of Unix time, or at a key's first request",
        ),
    ],
};

pub(super) static WINDOW: Table = Table {
    name: "window",
    about: "So many requests in a period; the long form of \"100/15s\"",
    fields: &[
        required("limit", COUNT, "The most that one period admits"),
        required("period", Shape::Form(&DURATION), "How long it lasts"),
    ],
};

pub(super) static KEY_PART: Table = Table {
    name: "key_part",
    about: "A part of a key that takes more than its name: either a network or an attribute",
    fields: &[
        field("client_ip", Shape::Table(&PREFIXES), "The network that the client's address is in"),
        field("attribute", Shape::Text, "The value of this attribute, whatever characters its name has"),
    ],
};

pub(super) static PREFIXES: Table = Table {
    name: "prefixes",
    about: "How many leading bits of an address are one client",
    fields: &[
        field("v4_bits", Shape::Count { min: 0, max: 32 }, "Of an IPv4 address; 32, all of it, if left out"),
        field("v6_bits", Shape::Count { min: 0, max: 128 }, "Of an IPv6 address; 64 if left out"),
    ],
};

/// Every table.
pub(super) static TABLES: [&Table; 9] =
    [&POLICY, &RULE, &MATCH, &EXEMPT, &OVERRIDE, &LIMIT, &WINDOW, &KEY_PART, &PREFIXES];
