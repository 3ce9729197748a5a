//! `tidegate check`: what is wrong with policy files, and what they mean.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use tidegate::policy::{Problem, Problems, Rules, Warning};

use super::Failure;
use super::policy::DEFAULT;
use crate::args::CheckArgs;
use crate::report;

const WRONG: Style = AnsiColor::Red.on_default().bold();
const ODD: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const NAME: Style = Style::new().bold();

/// The status when a file is wrong, as for a wrong command line.
const STATUS_WRONG: u8 = 2;
/// The status when something is odd and that is not to be.
const STATUS_ODD: u8 = 1;

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut out = AutoStream::new(io::stdout().lock(), args.color.to_choice());
    let width = report::width();
    let (mut wrong, mut odd) = (0, 0);
    for (number, path) in args.policies.iter().enumerate() {
        if number > 0 && !args.quiet {
            writeln!(out)?;
        }
        let read = if path.as_os_str() == DEFAULT { Ok(Rules::default_policy()) } else { Rules::read(path) };
        match read {
            Ok(rules) => {
                let warnings = rules.warnings();
                odd += warnings.len();
                write_good(&mut out, path, &rules, &warnings, width, args.quiet)?;
            }
            Err(problems) => {
                wrong += problems.len();
                write_wrong(&mut out, path, &problems)?;
            }
        }
    }
    out.flush()?;
    Ok(match (wrong, odd) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) if args.strict => ExitCode::from(STATUS_ODD),
        (0, _) => ExitCode::SUCCESS,
        _ => ExitCode::from(STATUS_WRONG),
    })
}

/// So many, with the noun.
fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn write_good(
    out: &mut impl Write,
    path: &Path,
    rules: &Rules,
    warnings: &[Warning],
    width: usize,
    quiet: bool,
) -> io::Result<()> {
    let path = path.display();
    if !quiet {
        let count = counted(rules.rules.len(), "rule");
        let style = if warnings.is_empty() { GOOD } else { ODD };
        let odd = match warnings.len() {
            0 => "no mistakes".to_owned(),
            many => counted(many, "warning"),
        };
        write!(out, "{NAME}{path}{NAME:#}: {count}, {style}{odd}{style:#}")?;
        if !rules.name.is_empty() {
            write!(out, " ({})", shown(&rules.name))?;
        }
        writeln!(out)?;
    }
    for (rule, sentence) in rules.rules.iter().zip(rules.sentences()) {
        if !quiet {
            // The name is the beginning of the sentence.
            let (name, sentence) = (shown(&rule.name), shown(&sentence));
            let told = wrapped(&sentence, width);
            let rest = told.strip_prefix(&*name);
            match rest {
                Some(rest) => writeln!(out, "  {NAME}{name}{NAME:#}{rest}")?,
                None => writeln!(out, "  {told}")?,
            }
        }
        for warning in warnings.iter().filter(|warning| warning.rule() == rule.name) {
            if quiet {
                writeln!(out, "{NAME}{path}{NAME:#}: {ODD}warning{ODD:#}: {}", shown(&warning.to_string()))?;
            } else {
                let told = wrapped(&format!("warning: {}", shown(warning.says())), width);
                writeln!(out, "  {}", told.replacen("warning", &format!("{ODD}warning{ODD:#}"), 1))?;
            }
        }
    }
    if let Some(sentence) = rules.body_sentence().filter(|_| !quiet) {
        writeln!(out, "  {}", wrapped(&sentence, width))?;
    }
    Ok(())
}

/// Each problem is one line, however long: what follows `file:line:column:` is for editors too.
fn write_wrong(out: &mut impl Write, path: &Path, problems: &Problems) -> io::Result<()> {
    for problem in problems {
        let told = shown(&problem.to_string());
        let place = place(problem);
        match told.strip_prefix(&place) {
            Some(rest) => writeln!(out, "{NAME}{place}{NAME:#}{rest}")?,
            None => writeln!(out, "{told}")?,
        }
    }
    let count = counted(problems.len(), "mistake");
    writeln!(out, "{NAME}{}{NAME:#}: {WRONG}{count}{WRONG:#}", path.display())
}

fn place(problem: &Problem) -> String {
    match (problem.line(), problem.column()) {
        (Some(line), Some(column)) => format!("{}:{line}:{column}", problem.file()),
        _ => problem.file().to_owned(),
    }
}

/// A text from a file, without what would move the cursor of a terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A sentence in lines of a page so wide, all but the first indented below the first.
fn wrapped(text: &str, width: usize) -> String {
    const INDENT: usize = 6;
    let mut made = String::new();
    // The first line stands behind two spaces.
    let mut column = 2;
    for word in words(text) {
        let length = word.chars().count();
        if !made.is_empty() {
            if column + 1 + length > width {
                made.push('\n');
                made.extend(std::iter::repeat_n(' ', INDENT));
                column = INDENT;
            } else {
                made.push(' ');
                column += 1;
            }
        }
        made.push_str(&word);
        column += length;
    }
    made
}

/// The words between spaces; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 8] = ["s", "min", "h", "day", "days", "ms", "us", "ns"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.']));
        match words.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_are_as_wide_as_the_page() {
        assert_eq!(wrapped("abc de fg hij", 10), "abc de\n      fg\n      hij");
        assert_eq!(wrapped("abcdefghijklmnop q", 10), "abcdefghijklmnop\n      q");
        assert_eq!(wrapped("", 10), "");
        assert_eq!(wrapped("in 15 s.", 10), "in 15 s.");
        assert_eq!(wrapped("up in 15 s.", 10), "up in\n      15 s.");
    }
}
