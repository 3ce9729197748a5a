//! What is printed.

use crate::Options;
use crate::rounds::{Figures, Rounds};

pub(crate) fn print(rounds: &Rounds, options: &Options) {
    let Some((bare, base)) = rounds.first() else { return };
    println!(
        "{} rounds of {} s, {} connections; medians; × is the median over the rounds of this ÷ {}",
        options.rounds,
        options.seconds,
        options.connections,
        bare.title()
    );
    println!("(and its quartiles); CPU is the server's time for each request\n");
    println!(
        "{:<24} {:>7} {:>6}  {:<13} {:>9} {:>6} {:>8} {:>6}",
        "server", "CPU µs", "×", "quartiles", "req/s", "×", "p99 µs", "×"
    );
    for (contestant, figures) in rounds {
        let of = |figure: fn(&Figures) -> f64| median(figures.iter().map(figure).collect());
        let ratios = |figure: fn(&Figures) -> f64| {
            sorted(figures.iter().zip(base).map(|(one, base)| figure(one) / figure(base)).collect())
        };
        let cpu = ratios(|figures| figures.cpu_ns);
        println!(
            "{:<24} {:>7.2} {:>6.3}  {:<13} {:>9.0} {:>6.2} {:>8.0} {:>6.2}",
            contestant.title(),
            of(|figures| figures.cpu_ns) / 1e3,
            median(cpu.clone()),
            format!("{:.3}–{:.3}", cpu[cpu.len() / 4], cpu[cpu.len() * 3 / 4]),
            of(|figures| figures.per_second),
            median(ratios(|figures| figures.per_second)),
            of(|figures| figures.p99_us),
            median(ratios(|figures| figures.p99_us)),
        );
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: Vec<f64>) -> f64 {
    let values = sorted(values);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
