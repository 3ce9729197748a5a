//! Scenario files: strict, and everything that is wrong told at once.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::scenario::{FIELDS, Field, SEED, Scenario, TABLES, Told};
use crate::mistakes::{Mistakes, nearest, shown};

/// Reads a file over `scenario`: a line for each mistake, `file:line:column: what`.
pub(super) fn read(text: &str, file: &str, scenario: Scenario) -> Result<Scenario, Vec<String>> {
    let mut reader = Reader { scenario, wrong: Mistakes::new(text, file) };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.wrong.add(error.span().map_or(0, |span| span.start), error.message());
    }
    if errors.is_empty() {
        reader.all(table.get_ref());
        reader.together();
    }
    reader.wrong.or(reader.scenario)
}

struct Reader<'a> {
    scenario: Scenario,
    wrong: Mistakes<'a>,
}

impl Reader<'_> {
    fn all(&mut self, root: &DeTable<'_>) {
        for (key, value) in root.iter() {
            let name = key.get_ref().as_ref();
            if name == SEED.name {
                self.number(&SEED, value);
            } else if !TABLES.contains(&name) {
                let known: Vec<&str> = std::iter::once(SEED.name).chain(TABLES).collect();
                self.unknown(key.span().start, "table or field", name, "", &known);
            } else if let Some(table) = value.get_ref().as_table() {
                self.table(name, table);
            } else {
                self.wrong.add(key.span().start, format!("{name} is no table; it begins with [{name}]"));
            }
        }
    }

    fn table(&mut self, table: &str, values: &DeTable<'_>) {
        for (key, value) in values.iter() {
            let name = key.get_ref().as_ref();
            let field = FIELDS.iter().find(|field| field.table == table && field.name == name);
            match field {
                Some(field) => self.number(field, value),
                None if (table, name) == ("limits", "told") => self.told(value),
                None => {
                    let of_table = FIELDS.iter().filter(|field| field.table == table).map(|field| field.name);
                    let told = (table == "limits").then_some("told");
                    let known: Vec<&str> = of_table.chain(told).collect();
                    self.unknown(key.span().start, "field", name, &format!(" in [{table}]"), &known);
                }
            }
        }
    }

    fn unknown(&mut self, at: usize, what: &str, name: &str, place: &str, known: &[&str]) {
        let nearest =
            nearest(name, known).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
        let known = known.join(", ");
        let dot = if nearest.is_empty() { ";" } else { "" };
        self.wrong.add(at, format!("unknown {what} \"{name}\"{place}{nearest}{dot} Known: {known}"));
    }

    fn number(&mut self, field: &Field, value: &Spanned<DeValue<'_>>) {
        let found = told(value.get_ref());
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number.filter(|number| (field.min..=field.max).contains(number)) {
            Some(number) => *(field.of)(&mut self.scenario) = number,
            None => {
                let Field { name, min, max, .. } = field;
                let what = format!("{name} is {found}; it must be a whole number from {min} to {max}");
                self.wrong.add(value.span().start, what);
            }
        }
    }

    fn told(&mut self, value: &Spanned<DeValue<'_>>) {
        let text = value.get_ref().as_str();
        match Told::NAMES.iter().find(|(name, _)| Some(*name) == text) {
            Some((_, told)) => self.scenario.limits.told = *told,
            None => {
                let names = Told::NAMES.map(|(name, _)| name);
                let near = text.and_then(|text| nearest(text, &names));
                let near = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
                let found = told(value.get_ref());
                let what = format!("told is {found}; it must be \"exact\" or \"whole-seconds\"{near}");
                self.wrong.add(value.span().start, what);
            }
        }
    }

    /// What numbers must be to each other; where one stands is not told, for another may be meant.
    fn together(&mut self) {
        let Scenario { traffic, storm, clients, .. } = &self.scenario;
        let shares = clients.obey_percent
            + clients.obey_later_percent
            + clients.back_off_percent
            + clients.insist_percent;
        let found = [
            (shares != 100).then(|| {
                format!("obey_percent, obey_later_percent, back_off_percent and insist_percent sum to {shares}; it must be 100")
            }),
            below("round_trip_ms_min", clients.round_trip_ms_min, "round_trip_ms_max", clients.round_trip_ms_max),
            below("back_off_first_ms", clients.back_off_first_ms, "back_off_last_ms", clients.back_off_last_ms),
            below("at_s", storm.at_s, "length_s", traffic.length_s),
        ];
        for what in found.into_iter().flatten() {
            self.wrong.add_of_all(what);
        }
    }
}

fn below(name: &str, value: u64, other: &str, most: u64) -> Option<String> {
    (value > most).then(|| format!("{name} is {value}; it must be at most {other}, which is {most}"))
}

/// A value as a message shows it.
fn told(value: &DeValue<'_>) -> String {
    shown(value).unwrap_or_else(|| if value.is_table() { "a table" } else { "a list" }.to_owned())
}

/// A count as the size of something in memory; ranges keep it far below what fits.
pub(super) fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
