//! What `replay` is asked to do, and what its help says.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate::Alignment;

use super::Color;
use crate::limit_spec::LimitSpec;
use crate::log::records::Format;
use crate::replay::policy::mapping::MapArg;
use crate::replay::suggest::Share;

pub(super) const REPLAY_LONG: &str = "\
Show what a limit would have done to the requests in an access log.

Reads common and combined access logs (and anything that adds fields at their end), plain or gzip. \
Every request is put to the limit at the time in its line, in the order of those times, one quota for \
each client: IPv4 addresses singly, IPv6 addresses by their /64, host names as they stand. Lines that \
are no requests are skipped and reported, and never stop a replay.

With --policy a whole policy file decides, and the report tells what each rule did; logs may then be CSV with a header \
line and JSON Lines too. With --compare two policies decide, and the report tells who gains and who loses. \
With --suggest, limits are proposed.";

pub(super) const REPLAY_AFTER: &str = "\
Examples:
  tidegate replay
  tidegate replay access.log.gz --top 25
  zcat -f access.log* |
    tidegate replay - --limit window:100/m --json

--help tells how limits are written, what the JSON \
holds and the exit statuses.";

// A paragraph is one line here, for clap breaks lines to the width at hand and keeps their indent. What is
// to be typed has at most 50 columns, so as not to be broken.
pub(super) const REPLAY_AFTER_LONG: &str = "\
Limits:
  bucket:1/s,5
    a token bucket: 1 token a second, at most 5 kept
  bucket:1/10s,10
    1 token in 10 seconds, at most 10 kept
  window:100/60s
    a fixed window: 100 in 60 seconds
  sliding:100/60s
    a sliding window: the one before it counts by the \
share of it that is younger than 60 seconds
  burst-sustain:30/15s,100/300s
    two nested windows counted at once; the long \
one is a whole multiple of the short one

  Periods are a number and a unit (ms, s, m, h, d); 1/s is 1/1s.

Examples:
  tidegate replay
    a bundled sample log
  tidegate replay access.log --limit bucket:5/s,20
    one log, one limit
  tidegate replay access.log.1.gz --top 25
    a compressed log, and a longer list of clients
  zcat -f access.log* |
    tidegate replay - --limit window:100/m
    many logs as one
  tidegate replay access.log --json |
    jq .refused_by
    the result in figures
  tidegate replay access.log --policy limits.toml
    all rules of a policy
  tidegate replay access.log --svg replay.svg
    a drawing of it
  tidegate replay access.log --suggest=0.5%
    limits that refuse 0.5 % of the clients at most
  tidegate replay access.log --policy now.toml \\
    --compare stricter.toml
    what a change of policy would have done
  tidegate replay calls.csv --policy llm.toml \\
    --map time=at --map api=\"'chat'\" \\
    --map cost=input+output
    a CSV file with other columns

Fields (--map FIELD=SOURCE):
  A request that a policy decides is made of time, \
api, title, namespace, user, caller_type, target, \
target_type, client_ip, authenticated, cost and \
attribute:NAME.
  A source is a field of the log or, in quotes, the \
same text for all; a cost may be a sum of them.
  Access logs have client, user, request, method, \
path, query, protocol, status, bytes, referer and \
user_agent. By itself, api is path, user is user and \
client_ip is client.
  CSV and JSON Lines have their columns and names \
(a.b is b in a). By itself, each field is the one of \
its own name; time is also timestamp, @timestamp or \
ts.
  An attribute is by itself the field of its name.
  Times are RFC 3339, the same without a zone (UTC) \
or with a blank in its middle, those of access \
logs, and numbers of seconds or ms since 1970.
  What is not there is missing in the request, and \
it costs 1. Who has a user is authenticated, unless \
told.

Report:
  Times are UTC. Clients are listed with as many \
columns as the page has room for: what the burst \
window alone, the sustain window alone and both \
at once refused is left out first. The chart \
leaves out a few requests whose times are far \
from all others, as of a clock that was never set.

JSON:
  One object. Times are seconds since 1970, UTC; \
what does not apply is null.
  source, limit, align, refusals_count, seed
    what was replayed, and how
  lines = skipped + passed + refused
    how many
  refused_by
    what refused: burst, sustain, both (of \
burst-sustain limits: that window alone, or \
both at once), limit (of limits with one \
part), full (more clients than --max-keys); \
all five are there, their sum is refused
  clients, clients_refused
    distinct ones, and those refused at least once
  top
    a list of client, passed, refused, refused_by
  span: first_unix_s, last_unix_s
    the first and the last request
  headroom
    what clients used of each part of the limit (of), \
each at its peak, in percent: keys, p50_percent, \
p99_percent, p999_percent, peak_percent, and a \
sentence
  timeline: start_unix_s, step_s, slots, outside
    passed and refused of each step from the \
start, and how many lie far outside of them
  skipped_by
    a list of reason, lines
  skipped_first
    a list of line, reason
  incomplete
    why the log was read only in part

JSON with --policy:
  source, lines, skipped, span, skipped_by, \
skipped_first, incomplete, seed, timeline
    as above
  requests = allowed + refused
    how many; unmatched of the allowed are no \
rule's. cost_allowed and cost_refused are their \
costs by their own account
  policy, name
    where it came from, and what it calls itself
  missing
    what rules ask for and no request has
  without_address
    requests whose client is no address
  rules
    a list of rule, shadow (it only watches), \
matched = exempt + passed + refused + \
shadow_refused; refused_alone (by no other rule), \
warned (of the passed), cost_passed, cost_refused \
(as the rule counts), keys, keys_refused, \
peak_percent (the highest share of a limit that a \
key used) and peak_key
  keys_refused, top
    how many keys were refused, or would have been, \
and those most often: a list of rule, key, shadow, \
passed, refused, cost_passed, cost_refused
  headroom
    as above, of each rule that counted
  counts_cost
    whether a rule counts anything but requests

JSON with --suggest:
  source, align, refusals_count, seed, lines, \
skipped, span, skipped_by, skipped_first, \
incomplete
    as above
  requests, clients
    how many
  share_percent, clients_allowed
    the share of the clients that may be refused, \
and how many that is
  doubts
    why the proposals tell less than they seem to
  proposals
    a list of limit, arguments (to try it), replays \
(that found it), clients_refused, refused, \
refused_by; docs/replay.md tells how they are found
  heaviest
    the --top clients with the most requests: a \
list of client, requests and refused, a list in the \
order of the proposals

JSON with --compare:
  before, after
    policy, name, allowed, refused, unmatched, \
cost_allowed, cost_refused of each policy
  both_allowed, both_refused, gained, lost
    requests; gained are refused before and allowed \
after. cost_gained, cost_lost are their costs
  rules
    a list of rule, before, after
  losers, losers_total, gainers, gainers_total
    keys that are refused more often, and less: a \
list of rule, key, refused_before, refused_after, \
and how many there are
  and what tells of the log, as above

Exit status:
  0  the whole log was replayed, lines skipped or \
not
  1  the log could not be read, or only in part, \
or is empty, or no line of it is a request
  2  the command line or a policy file is wrong, \
or the limit cannot be built";

/// What `replay` is asked to do.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// The log: a file, or - for standard input; a bundled sample if left out
    pub log: Option<PathBuf>,

    /// The limit of each client
    #[arg(short, long, value_name = "LIMIT", default_value = "burst-sustain:10/15s,30/300s")]
    pub limit: LimitSpec,

    /// Where windows begin (buckets have no windows, and sliding ones never begin at a request)
    #[arg(short, long, value_enum, default_value_t = Align::Clock)]
    pub align: Align,

    /// Let refused requests use up no window; by default they count (in buckets and sliding windows they never do)
    #[arg(long)]
    pub free_refusals: bool,

    /// Decide by this policy file, TOML or JSON, in place of a limit; default is the one that comes with tidegate
    #[arg(short, long, value_name = "FILE",
        conflicts_with_all = ["limit", "align", "free_refusals", "max_keys", "exact"])]
    pub policy: Option<PathBuf>,

    /// Tell what this policy would have done in its place
    #[arg(short, long, value_name = "FILE", requires = "policy")]
    pub compare: Option<PathBuf>,

    /// What a field of requests comes from: api=path, user='everybody', cost=input+output
    #[arg(short, long, value_name = "FIELD=SOURCE", requires = "policy")]
    pub map: Vec<MapArg>,

    /// How the log is written; told from its name or its beginning if left out
    #[arg(short, long, value_enum, value_name = "FORMAT", requires = "policy")]
    pub format: Option<Format>,

    /// How many of the clients (or keys) refused most to list
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Print one JSON object in place of the report
    #[arg(long)]
    pub json: bool,

    /// Draw requests over time, the keys refused most, and headroom in this file
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub svg: Option<PathBuf>,

    /// The same drawing as pixels
    #[cfg(feature = "png")]
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub png: Option<PathBuf>,

    /// Propose limits that would have refused at most this share of the clients, 0.1% if left out
    #[cfg_attr(feature = "png", arg(conflicts_with = "png"))]
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "0.1%",
        conflicts_with_all = ["limit", "policy", "max_keys", "svg"])]
    pub suggest: Option<Share>,

    /// The limiter's room for clients; as many as the log has if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_keys: Option<u32>,

    /// Use the limiter that keeps clients whole, in place of the one that keeps fingerprints
    #[arg(long)]
    pub exact: bool,

    /// What the limiter hashes with; the same seed gives the same result (it decides the phases of
    /// --align per-key)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// When to colour the report; auto heeds NO_COLOR and where the report goes
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// Where windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// At whole periods of Unix time, for all clients together
    Clock,
    /// At whole periods too, shifted for each client
    PerKey,
    /// At a client's first request after its last window ended
    FirstRequest,
}

impl Align {
    /// The engine's name for it.
    pub fn to_alignment(self) -> Alignment {
        match self {
            Align::Clock => Alignment::Clock,
            Align::PerKey => Alignment::PerKey,
            Align::FirstRequest => Alignment::FirstRequest,
        }
    }

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Align::Clock => "clock",
            Align::PerKey => "per-key",
            Align::FirstRequest => "first-request",
        }
    }
}
