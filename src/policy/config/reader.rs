//! What all of the decoder shares: it takes fields off tables, checks each against the table of fields, and keeps every
//! problem that it meets. A value that is wrong is a problem and a stand-in: nobody sees the stand-ins, for a file with a
//! problem gives no rules.

use super::fields::{Field, Shape, Table};
use super::node::{Entry, Node, Value, quoted};
use super::problem::{Lines, Problem};

/// The problems met so far, and the rule that is being read.
pub(super) struct Reader<'t> {
    pub(super) lines: Lines<'t>,
    pub(super) rule: Option<String>,
    pub(super) met: Vec<Met>,
}

/// A problem and the byte at which it stands.
pub(super) struct Met {
    pub(super) at: usize,
    pub(super) problem: Problem,
    /// Whether it is that something is missing, which a text that could be read only in part may be wrong about.
    pub(super) is_missing: bool,
}

/// A table that is being read: only its known fields, each with its path.
pub(super) struct Fields<'n> {
    pub(super) at: usize,
    path: String,
    table: &'static Table,
    entries: &'n [Entry],
}

/// A field that is there.
#[derive(Clone, Copy)]
pub(super) struct Given<'n> {
    pub(super) node: &'n Node,
    /// Where its name stands.
    pub(super) at: usize,
    field: &'static Field,
}

impl<'n> Fields<'n> {
    /// The field of this name, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<Given<'n>> {
        let field = self.table.field(name);
        debug_assert!(field.is_some(), "{name} is no field of {}", self.table.name);
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some(Given { node: &entry.node, at: entry.at, field: field? })
    }

    /// Whether a field that nobody knows was most likely meant to be `name`.
    pub(super) fn is_misspelt(&self, name: &str) -> bool {
        let names = self.table.names();
        let unknown = self.entries.iter().filter(|entry| self.table.field(&entry.name).is_none());
        unknown.into_iter().any(|entry| nearest(&entry.name, &names) == Some(name))
    }

    /// The path of a field for messages.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl<'t> Reader<'t> {
    pub(super) fn new(lines: Lines<'t>) -> Self {
        Self { lines, rule: None, met: Vec::new() }
    }

    pub(super) fn report(&mut self, at: usize, problem: Problem) {
        let problem = problem.of_rule(self.rule.as_deref());
        self.met.push(Met { at, problem, is_missing: false });
    }

    /// That `path` is missing from the table at `at`, and what it would be.
    pub(super) fn missing(&mut self, at: usize, path: &str, allowed: &str) {
        let problem =
            Problem::new(path, format!("{path} is missing")).with_allowed(format!("it must be {allowed}"));
        self.met.push(Met { at, problem: problem.of_rule(self.rule.as_deref()), is_missing: true });
    }

    /// That the field `name`, which has to be there, is missing, if it is: a misspelt one is told already.
    pub(super) fn lacks(&mut self, fields: &Fields<'_>, name: &str, allowed: &str) {
        if fields.get(name).is_none() && !fields.is_misspelt(name) {
            self.missing(fields.at, &fields.path(name), allowed);
        }
    }

    /// That `node` is none of what `shape` allows.
    pub(super) fn wrong(&mut self, node: &Node, path: &str, shape: &Shape) {
        let nearest = match &node.value {
            Value::Text(text) => choices(shape).and_then(|names| nearest(text, names)),
            _ => None,
        };
        self.not_allowed(node, path, &shape.allowed(), nearest);
    }

    /// That `node` is not `allowed`, a noun, and what was probably meant.
    pub(super) fn not_allowed(&mut self, node: &Node, path: &str, allowed: &str, nearest: Option<&str>) {
        let problem = Problem::new(path, format!("{path} is {}", node.found()))
            .with_found(node.found())
            .with_allowed(format!("it must be {allowed}"))
            .with_nearest(nearest);
        self.report(node.at, problem);
    }

    /// The fields of a table. What it should not have and what it lacks are reported.
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        table: &'static Table,
    ) -> Option<Fields<'n>> {
        let Value::Table(entries) = &node.value else {
            self.wrong(node, path, &Shape::Table(table));
            return None;
        };
        for entry in entries.iter().filter(|entry| table.field(&entry.name).is_none()) {
            self.unknown(entry, path, table);
        }
        let fields = Fields { at: node.at, path: path.to_owned(), table, entries };
        for field in table.fields.iter().filter(|field| field.is_required) {
            self.lacks(&fields, field.name, &field.shape.allowed());
        }
        Some(fields)
    }

    fn unknown(&mut self, entry: &Entry, path: &str, table: &'static Table) {
        let names = table.names();
        let home = if path.is_empty() { String::new() } else { format!(" in {path}") };
        let field = if path.is_empty() { entry.name.clone() } else { format!("{path}.{}", entry.name) };
        let problem = Problem::new(&field, format!("unknown field {}{home}", quoted(&entry.name)))
            .with_found(quoted(&entry.name))
            .with_nearest(nearest(&entry.name, &names))
            .with_allowed(format!("known: {}", names.join(", ")));
        self.report(entry.at, problem);
    }

    pub(super) fn text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        let given = fields.get(name)?;
        match &given.node.value {
            Value::Text(text) => Some(text.clone()),
            _ => {
                self.wrong(given.node, &fields.path(name), &given.field.shape);
                None
            }
        }
    }

    /// A whole number in the field's range.
    pub(super) fn count(&mut self, fields: &Fields<'_>, name: &str) -> Option<u64> {
        let given = fields.get(name)?;
        self.count_in(given.node, &fields.path(name), &given.field.shape)
    }

    /// A whole number in the range of the shape, or of the first count among its alternatives.
    pub(super) fn count_in(&mut self, node: &Node, path: &str, shape: &Shape) -> Option<u64> {
        let range = match shape {
            Shape::Either(shapes) => shapes.iter().find_map(range),
            shape => range(shape),
        };
        match (&node.value, range) {
            (&Value::Whole(number), Some((min, max))) if (min..=max).contains(&number) => Some(number),
            // A number is told about its range alone, not about what else might stand there.
            (Value::Whole(_) | Value::Number(_), Some((min, max))) => {
                self.wrong(node, path, &Shape::Count { min, max });
                None
            }
            _ => {
                self.wrong(node, path, shape);
                None
            }
        }
    }

    pub(super) fn bool(&mut self, fields: &Fields<'_>, name: &str) -> Option<bool> {
        let given = fields.get(name)?;
        match given.node.value {
            Value::Bool(yes) => Some(yes),
            _ => {
                self.wrong(given.node, &fields.path(name), &given.field.shape);
                None
            }
        }
    }

    /// One of the choices, by its name.
    pub(super) fn choice<T: Copy>(&mut self, fields: &Fields<'_>, name: &str, of: &[(&str, T)]) -> Option<T> {
        let given = fields.get(name)?;
        self.choice_in(given.node, &fields.path(name), &given.field.shape, of)
    }

    fn choice_in<T: Copy>(&mut self, node: &Node, path: &str, shape: &Shape, of: &[(&str, T)]) -> Option<T> {
        let chosen = match &node.value {
            Value::Text(text) => of.iter().find(|(name, _)| name == text).map(|&(_, value)| value),
            _ => None,
        };
        if chosen.is_none() {
            self.wrong(node, path, shape);
        }
        chosen
    }

    /// The choices of a field that takes one or a list.
    pub(super) fn choices<T: Copy>(&mut self, fields: &Fields<'_>, name: &str, of: &[(&str, T)]) -> Vec<T> {
        let Some(given) = fields.get(name) else { return Vec::new() };
        let Shape::Many { of: shape, .. } = given.field.shape else { return Vec::new() };
        let items = self.many(given.node, &fields.path(name), &given.field.shape);
        items.iter().filter_map(|(path, node)| self.choice_in(node, path, shape, of)).collect()
    }

    /// The texts of a field that takes one or a list.
    pub(super) fn texts(&mut self, fields: &Fields<'_>, name: &str) -> Vec<String> {
        let Some(given) = fields.get(name) else { return Vec::new() };
        self.texts_in(given.node, &fields.path(name), &given.field.shape)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    /// The texts in a place that takes one or a list, each with its node.
    pub(super) fn texts_in<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        shape: &Shape,
    ) -> Vec<(&'n Node, String)> {
        let mut texts = Vec::new();
        for (path, node) in self.many(node, path, shape) {
            match (&node.value, shape) {
                (Value::Text(text), _) => texts.push((node, text.clone())),
                (_, Shape::Many { of, .. }) => self.wrong(node, &path, of),
                _ => self.wrong(node, &path, shape),
            }
        }
        texts
    }

    /// What stands in a place that takes one or a list, each with its path. A list that is too short is reported.
    pub(super) fn many<'n>(&mut self, node: &'n Node, path: &str, shape: &Shape) -> Vec<(String, &'n Node)> {
        let Value::List(items) = &node.value else { return vec![(path.to_owned(), node)] };
        if matches!(shape, Shape::Many { min, .. } if items.len() < *min) {
            self.wrong(node, path, shape);
        }
        numbered(path, items)
    }

    /// The items of a field that takes a list.
    pub(super) fn list<'n>(&mut self, fields: &Fields<'n>, name: &str) -> Vec<(String, &'n Node)> {
        let Some(given) = fields.get(name) else { return Vec::new() };
        let path = fields.path(name);
        match &given.node.value {
            Value::List(items) => numbered(&path, items),
            _ => {
                self.wrong(given.node, &path, &given.field.shape);
                Vec::new()
            }
        }
    }

    /// The entries of a field whose names are the user's, and what may stand beside each.
    pub(super) fn map<'n>(
        &mut self,
        fields: &Fields<'n>,
        name: &str,
    ) -> (&'n [Entry], Option<&'static Shape>) {
        let Some(given) = fields.get(name) else { return (&[], None) };
        match (&given.node.value, &given.field.shape) {
            (Value::Table(entries), Shape::Map(of)) => (entries, Some(of)),
            (_, shape) => {
                self.wrong(given.node, &fields.path(name), shape);
                (&[], None)
            }
        }
    }
}

impl Given<'_> {
    pub(super) fn shape(&self) -> &'static Shape {
        &self.field.shape
    }
}

/// Items with their paths, counted from 1 as people do.
fn numbered<'n>(path: &str, items: &'n [Node]) -> Vec<(String, &'n Node)> {
    items.iter().enumerate().map(|(at, node)| (format!("{path}[{}]", at + 1), node)).collect()
}

fn range(shape: &Shape) -> Option<(u64, u64)> {
    match *shape {
        Shape::Count { min, max } => Some((min, max)),
        _ => None,
    }
}

fn choices(shape: &Shape) -> Option<&'static [&'static str]> {
    match shape {
        Shape::OneOf(names) => Some(names),
        Shape::Many { of, .. } => choices(of),
        _ => None,
    }
}

/// The name that `text` is most likely a slip of, if there is one: but for case, hyphens and underscores the same, or a
/// third of its letters off at most.
pub(super) fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    /// Longer than any name; comparing takes the product of the lengths.
    const LETTERS_MAX: usize = 64;
    if text.len() > LETTERS_MAX {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let meant = plain(text);
    let distances = names.iter().map(|&name| (strsim::osa_distance(&meant, &plain(name)), name));
    let (distance, name) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= (meant.chars().count() / 3).max(1) && !meant.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["rate", "burst", "sustain", "on_refusal", "max_keys"];
        for (text, name) in [
            ("brust", Some("burst")),
            ("bursts", Some("burst")),
            ("onRefusal", Some("on_refusal")),
            ("max-keys", Some("max_keys")),
            ("rat", Some("rate")),
            ("sustane", Some("sustain")),
            ("colour", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(nearest(text, &names), name, "{text}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &names), None);
    }
}
