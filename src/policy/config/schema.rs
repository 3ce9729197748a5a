//! The JSON Schema of a policy file, printed from the table of fields.

use super::fields::{Field, POLICY, Shape, TABLES, Table};
use super::node::{Node, Value};
use super::write::{in_quotes, table};

/// Where the schema says it is at home.
const ID: &str = "https://github.com/tidegate/tidegate/blob/main/policies/policy.schema.json";

/// The JSON Schema (draft 2020-12) of a policy file, for editors and for tools that check a file before tidegate does.
/// It is what `policies/policy.schema.json` holds.
///
/// What it cannot say, [`Rules::from_json`](super::Rules::from_json) checks: names are unique, a limit is one that a
/// limiter can honour, overrides are of their rule's kind.
///
/// ```
/// assert!(tidegate::policy::schema().contains("https://json-schema.org/draft/2020-12/schema"));
/// ```
pub fn schema() -> String {
    let mut fields = vec![
        ("$schema".to_owned(), Some(Node::text("https://json-schema.org/draft/2020-12/schema"))),
        ("$id".to_owned(), Some(Node::text(ID))),
        ("title".to_owned(), Some(Node::text("A tidegate policy"))),
    ];
    fields.push(("$ref".to_owned(), Some(Node::text(reference(&POLICY)))));
    let all = TABLES.iter().map(|table| (table.name, Some(of_table(table))));
    fields.push(("$defs".to_owned(), Some(table(all))));
    let mut text = String::new();
    pretty(&table(fields), 0, &mut text);
    text.push('\n');
    text
}

fn reference(table: &Table) -> String {
    format!("#/$defs/{}", table.name)
}

fn whole(number: u64) -> Node {
    Node::new(Value::Whole(number))
}

fn texts(names: impl IntoIterator<Item = &'static str>) -> Node {
    Node::new(Value::List(names.into_iter().map(Node::text).collect()))
}

fn of_table(of: &Table) -> Node {
    let required: Vec<&str> =
        of.fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
    table([
        ("description", Some(Node::text(of.about))),
        ("type", Some(Node::text("object"))),
        ("properties", Some(table(of.fields.iter().map(|field| (field.name, Some(of_field(field))))))),
        ("required", (!required.is_empty()).then(|| texts(required))),
        ("additionalProperties", Some(Node::new(Value::Bool(false)))),
    ])
}

fn of_field(field: &Field) -> Node {
    let mut node = of_shape(&field.shape);
    if let Value::Table(entries) = &mut node.value {
        let about =
            super::node::Entry { name: "description".to_owned(), at: 0, node: Node::text(field.about) };
        entries.insert(0, about);
    }
    node
}

fn of_shape(shape: &Shape) -> Node {
    let kind = |name: &str| ("type", Some(Node::text(name)));
    match shape {
        Shape::Told(_, of) => of_shape(of),
        Shape::Text => table([kind("string")]),
        Shape::Form(form) => {
            let pattern = (!form.pattern.is_empty()).then(|| Node::text(form.pattern));
            table([kind("string"), ("pattern", pattern)])
        }
        Shape::Count { min, max } => {
            table([kind("integer"), ("minimum", Some(whole(*min))), ("maximum", Some(whole(*max)))])
        }
        Shape::Bool => table([kind("boolean")]),
        Shape::OneOf(names) => table([("enum", Some(texts(names.iter().copied())))]),
        Shape::Table(of) => table([("$ref", Some(Node::text(reference(of))))]),
        Shape::Map(of) => table([kind("object"), ("additionalProperties", Some(of_shape(of)))]),
        Shape::List(of) => table([kind("array"), ("items", Some(of_shape(of)))]),
        Shape::Many { of, min } => {
            let min = (*min > 0).then(|| whole(*min as u64));
            let list = table([kind("array"), ("items", Some(of_shape(of))), ("minItems", min)]);
            any(vec![of_shape(of), list])
        }
        Shape::Either(shapes) => any(shapes.iter().map(of_shape).collect()),
    }
}

fn any(shapes: Vec<Node>) -> Node {
    table([("anyOf", Some(Node::new(Value::List(shapes))))])
}

/// JSON on many lines: what fits one stays on one.
fn pretty(node: &Node, indent: usize, text: &mut String) {
    const COLUMNS: usize = 100;
    let short = super::write::json(node);
    let is_flat = short.chars().count() + indent <= COLUMNS;
    let (open, close, items): (_, _, Vec<(Option<&str>, &Node)>) = match &node.value {
        Value::List(items) if !is_flat => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        Value::Table(entries) if !is_flat => {
            ('{', '}', entries.iter().map(|entry| (Some(entry.name.as_str()), &entry.node)).collect())
        }
        _ => return text.push_str(&short),
    };
    text.push(open);
    for (at, (name, item)) in items.into_iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', indent + 2));
        if let Some(name) = name {
            text.push_str(&in_quotes(name));
            text.push_str(": ");
        }
        pretty(item, indent + 2, text);
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
    text.push(close);
}
