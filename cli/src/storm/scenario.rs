//! What is played: numbers that a file may give, each with its range.

use super::reader;

/// The scenario that is played unless another one is given, as a file to begin from.
pub static DEFAULT_TOML: &str = include_str!("../../assets/storm.toml");

/// Nanoseconds of a millisecond.
pub(super) const MS: u64 = 1_000_000;
/// Nanoseconds of a second.
pub(super) const S: u64 = 1_000_000_000;

/// A storm, and what it meets. Fields are named as in its file, which `docs/storm.md` describes.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "the file's comments and docs/storm.md say what each is")]
pub struct Scenario {
    pub seed: u64,
    pub traffic: Traffic,
    pub storm: Storm,
    pub clients: Clients,
    pub limits: Limits,
    pub measure: Measure,
}

/// The calm.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "see Scenario")]
pub struct Traffic {
    pub devices: u64,
    pub others: u64,
    pub device_requests_per_s: u64,
    pub other_requests_per_s: u64,
    pub length_s: u64,
}

/// The storm.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "see Scenario")]
pub struct Storm {
    pub at_s: u64,
    pub spread_ms: u64,
    pub requests: u64,
    pub pace_ms: u64,
}

/// What clients do when they are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "see Scenario")]
pub struct Clients {
    pub obey_percent: u64,
    pub obey_later_percent: u64,
    pub back_off_percent: u64,
    pub insist_percent: u64,
    pub later_percent: u64,
    pub habit_ms: u64,
    pub back_off_first_ms: u64,
    pub back_off_last_ms: u64,
    pub insist_ms: u64,
    pub round_trip_ms_min: u64,
    pub round_trip_ms_max: u64,
}

/// What the server bears, and what limits follow from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "see Scenario")]
pub struct Limits {
    pub capacity_per_s: u64,
    pub period_s: u64,
    pub partner_percent: u64,
    pub burst_ms: u64,
    pub burst_min: u64,
    pub told: Told,
}

/// How finely a wait is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// To the nanosecond.
    #[default]
    Exact,
    /// In whole seconds, rounded up, at least one: as `Retry-After` is written.
    WholeSeconds,
}

impl Told {
    /// Both, by name.
    pub(super) const NAMES: [(&str, Told); 2] =
        [("exact", Told::Exact), ("whole-seconds", Told::WholeSeconds)];
}

/// What is measured of the other clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "see Scenario")]
pub struct Measure {
    pub watch_s: u64,
    pub patience_s: u64,
}

/// A number that a file may give.
pub(super) struct Field {
    /// Empty for what stands outside of tables.
    pub(super) table: &'static str,
    pub(super) name: &'static str,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) of: fn(&mut Scenario) -> &mut u64,
}

/// A row for each number: its table and name, its range.
macro_rules! fields {
    ($($table:ident . $name:ident: $min:literal to $max:literal,)*) => {
        &[$(Field {
            table: stringify!($table),
            name: stringify!($name),
            min: $min,
            max: $max,
            of: |scenario| &mut scenario.$table.$name,
        },)*]
    };
}

/// The tables, in the order of the file.
pub(super) const TABLES: [&str; 5] = ["traffic", "storm", "clients", "limits", "measure"];

/// TOML has no larger numbers.
pub(super) const SEED: Field =
    Field { table: "", name: "seed", min: 0, max: i64::MAX as u64, of: |scenario| &mut scenario.seed };

/// Every number but the seed. Ranges keep a storm so small that it is played in minutes.
pub(super) const FIELDS: &[Field] = fields! {
    traffic.devices: 1 to 100_000,
    traffic.others: 1 to 100_000,
    traffic.device_requests_per_s: 0 to 10_000,
    traffic.other_requests_per_s: 1 to 10_000,
    traffic.length_s: 1 to 3_600,
    storm.at_s: 0 to 3_600,
    storm.spread_ms: 1 to 3_600_000,
    storm.requests: 1 to 1_000,
    storm.pace_ms: 0 to 3_600_000,
    clients.obey_percent: 0 to 100,
    clients.obey_later_percent: 0 to 100,
    clients.back_off_percent: 0 to 100,
    clients.insist_percent: 0 to 100,
    clients.later_percent: 0 to 100,
    clients.habit_ms: 1 to 3_600_000,
    clients.back_off_first_ms: 1 to 3_600_000,
    clients.back_off_last_ms: 1 to 3_600_000,
    clients.insist_ms: 1 to 3_600_000,
    clients.round_trip_ms_min: 1 to 60_000,
    clients.round_trip_ms_max: 1 to 60_000,
    limits.capacity_per_s: 1 to 10_000,
    limits.period_s: 1 to 3_600,
    limits.partner_percent: 1 to 99,
    limits.burst_ms: 0 to 3_600_000,
    limits.burst_min: 1 to 100_000,
    measure.watch_s: 1 to 3_600,
    measure.patience_s: 0 to 3_600,
};

impl Scenario {
    /// The scenario of [`DEFAULT_TOML`].
    pub fn bundled() -> Self {
        let all = reader::read(DEFAULT_TOML, "the bundled scenario", Scenario::default());
        all.unwrap_or_default()
    }

    /// The scenario of a file; what it leaves out is as in [`DEFAULT_TOML`].
    ///
    /// # Errors
    /// A line for everything that is wrong, with its place in `file`.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, Vec<String>> {
        reader::read(text, file, Scenario::bundled())
    }

    /// All who ask.
    pub(super) fn callers(&self) -> usize {
        reader::size(self.traffic.devices + self.traffic.others)
    }

    /// When the storm begins.
    pub(super) fn storm_ns(&self) -> u64 {
        self.storm.at_s * S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_file_gives_every_field_and_means_itself() {
        let bundled = Scenario::from_toml(DEFAULT_TOML, "storm.toml");
        assert_eq!(bundled, Ok(Scenario::bundled()));
        let mut bundled = Scenario::bundled();
        for field in FIELDS.iter().chain([&SEED]) {
            let line =
                |line: &str| line.starts_with(&format!("{} = {}", field.name, (field.of)(&mut bundled)));
            assert!(DEFAULT_TOML.lines().any(line), "{}", field.name);
        }
        assert!(DEFAULT_TOML.contains("told = \"exact\""));
    }

    #[test]
    fn a_file_says_only_what_differs() {
        let scenario = Scenario::from_toml("seed = 7\n[limits]\ntold = 'whole-seconds'\n", "a.toml").unwrap();
        let mut expected = Scenario::bundled();
        (expected.seed, expected.limits.told) = (7, Told::WholeSeconds);
        assert_eq!(scenario, expected);
        assert_eq!(Scenario::from_toml("", "a.toml"), Ok(Scenario::bundled()));
    }
}
