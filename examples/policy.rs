//! A policy from its file to a verdict, and to another policy in its place: rules by address and by API key, and one for
//! everybody together.
//!
//! ```text
//! cargo run --release --example policy --features policy
//! ```

use tidegate::Manual;
use tidegate::policy::{Policy, Request, Rules, Verdict};

const RULES: &str = r#"
name = "shop"
counting = "all-or-nothing"     # what one rule refuses costs nothing in the others

[[rule]]
name = "address"
key = "client_ip"
limit = { rate = "2/s", burst = 5 }

[[rule]]
name = "api-key"
match = { attribute = { api_key = "*" } }
key = "attribute:api_key"
limit = { window = "8/10s", opens = "first-request" }
override = [{ key = "partner", limit = { window = "100/10s" } }]

[[rule]]
name = "everybody"
key = "global"
limit = { rate = "100/s", burst = 100 }
"#;

fn tell(who: &str, verdict: &Verdict) {
    let nearest = verdict
        .nearest()
        .map_or(String::new(), |limit| format!("{} has {} left", limit.rule().name(), limit.remaining()));
    match verdict.binding() {
        None => println!("  {who:8} passes; {nearest}"),
        Some(limit) => println!(
            "  {who:8} is refused by {}; come back in {} s",
            limit.rule().name(),
            verdict.retry_after_secs()
        ),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // From a file it is `Rules::read("shop.toml")?`; and a server leaves out the clock, and has one that ticks.
    let policy = Policy::builder(Rules::from_toml(RULES, "shop.toml")?).clock(Manual::new()).build()?;

    let key = [("api_key", "k-1")];
    let ada = Request::new("basket").client_ip("192.0.2.7".parse()?).attributes(&key);
    println!("Ada asks from one address with one key, seven times at once:");
    for _ in 0..7 {
        tell("ada", &policy.check(&ada));
    }
    println!("Others do not notice:");
    tell("bob", &policy.check(&Request::new("basket").client_ip("192.0.2.8".parse()?)));

    println!(
        "The file is edited while requests come in: eight at once by address. What was used stays used:"
    );
    let changes = policy.replace(Rules::from_toml(&RULES.replace("burst = 5", "burst = 8"), "shop.toml")?)?;
    println!("  changed: {:?}, as they were: {:?}", changes.changed, changes.kept);
    tell("ada", &policy.check(&ada));

    println!("A slip leaves it in force, and says all that is wrong:");
    let slip = RULES.replace("rate = \"2/s\"", "rat = \"2/s\"").replace("\"8/10s\"", "\"8/10\"");
    if let Err(problems) = Rules::from_toml(&slip, "shop.toml") {
        println!("{problems}");
    }
    tell("bob", &policy.peek(&Request::new("basket").client_ip("192.0.2.8".parse()?)));
    Ok(())
}
