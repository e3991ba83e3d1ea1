//! What the output of a program must show before its exit status is believed.
//!
//! A program that does nothing exits with 0 as well; a stage whose subject is not there yet
//! must fail, not pass.

use crate::seed;
use crate::stage::{cargo, cargo_quietly};
use crate::tidy::readme;
use crate::tree::Tree;

/// The exit status says it all.
pub(crate) fn anything(_: &str) -> Result<(), String> {
    Ok(())
}

/// The simulator's report names everything that it promises to count.
pub(crate) fn simulation(output: &str) -> Result<(), String> {
    mentions(output, &["seeds", "steps", "invariants", "crash points", "faults"])
}

/// The simulator passes 1000 fixed seeds, and 1000 others with each commit.
pub(crate) fn seeds(_: &Tree) -> Result<String, Vec<String>> {
    let start = seed::first_of_simulator(seed::current().map_err(|why| vec![why])?).to_string();
    let run = ["run", "--quiet", "--release", "-p", "sluice-sim", "--", "--seeds", "1000"];
    let arguments = [&run[..], &["--start", "0", "--start", &start]].concat();
    cargo(&arguments, &[], simulation)?;
    Ok(format!("1000 seeds from 0 and 1000 from {start}"))
}

/// All seeded bugs are caught, and there are enough of them.
pub(crate) fn bugs(output: &str) -> Result<(), String> {
    const BUGS_MIN: usize = 25;
    let line = output
        .lines()
        .rev()
        .find_map(|line| line.trim().split_once("caught ").map(|(_, rest)| rest))
        .ok_or("no line says `caught N/N`")?;
    let (caught, all) = line.split_once('/').ok_or("the last `caught` is not of the form N/N")?;
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().map_err(|_| format!("{text:?} is not a number"))
    };
    let (caught, all) = (number(caught)?, number(all)?);
    if caught != all {
        return Err(format!("{} of {all} seeded bugs got away", all.saturating_sub(caught)));
    }
    if caught < BUGS_MIN {
        return Err(format!("only {caught} seeded bugs; at least {BUGS_MIN} are promised"));
    }
    Ok(())
}

/// The fault stories ran, those with planted bugs too.
pub(crate) fn faults(output: &str) -> Result<(), String> {
    if output.contains("were left out") {
        return Err("the stories with planted bugs did not run".to_string());
    }
    mentions(output, &["with the bug"])
}

/// The benchmark printed its table, with the ratio that is the target.
pub(crate) fn benchmark(output: &str) -> Result<(), String> {
    let packed: String = output.chars().filter(|letter| !letter.is_whitespace()).collect();
    if packed.to_lowercase().contains("1m/10k") {
        Ok(())
    } else {
        Err("no table with the ratio 1M/10k was printed".to_string())
    }
}

/// Callgrind counted the instructions of a pod that changes and of one that comes and goes, in a small and in a big
/// cluster.
pub(crate) fn instructions(output: &str) -> Result<(), String> {
    let rows = [
        "1000000 addresses: ",
        " instructions for one changed pod",
        " 100000 addresses: ",
        " for one pod added",
    ];
    mentions(output, &rows)
}

/// Callgrind counted the instructions of every kind of request in a small and in a big cloud.
pub(crate) fn cloud_instructions(output: &str) -> Result<(), String> {
    mentions(output, &["list page of the subscription", "10000", "ratio"])
}

fn mentions(output: &str, words: &[&str]) -> Result<(), String> {
    let text = output.to_lowercase();
    let missing: Vec<&str> = words.iter().copied().filter(|word| !text.contains(word)).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("the report does not mention {}", missing.join(", ")))
    }
}

/// The same seed twice prints the same bytes.
pub(crate) fn replay(_: &Tree) -> Result<String, Vec<String>> {
    const SEED: &str = "8841";
    let run = || cargo_quietly(&["run", "--quiet", "--release", "-p", "sluice-sim", "--", "--seed", SEED]);
    let (first, second) = (run()?, run()?);
    if first.trim().is_empty() {
        return Err(vec![format!("the simulator prints no trace for --seed {SEED}")]);
    }
    match first.lines().zip(second.lines()).position(|(a, b)| a != b) {
        Some(at) => Err(vec![format!("two runs of seed {SEED} differ from line {} on", at + 1)]),
        None if first.len() != second.len() => Err(vec![format!("two runs of seed {SEED} differ in length")]),
        None => Ok(format!("seed {SEED}: two runs, {} equal lines", first.lines().count())),
    }
}

/// Runs the commands of cargo that README.md, CONTRIBUTING.md and the page about performance show, exactly as printed.
pub(crate) fn commands_of_pages(tree: &Tree) -> Result<String, Vec<String>> {
    let mut done = Vec::new();
    for (page, command) in readme::commands_of_pages(tree) {
        // Being in this stage at all is the run of the one; the playground never ends by itself and has a
        // stage of its own, with what is typed beside it.
        let has_a_stage = command == readme::PLAYGROUND || readme::is_beside_the_playground(&command);
        if command == readme::TEST || has_a_stage {
            continue;
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        let Some((&"cargo", arguments)) = words.split_first() else {
            return Err(vec![format!("{page}: `{command}` is not run by any test")]);
        };
        let output = cargo_quietly(arguments)?;
        if output.trim().is_empty() {
            return Err(vec![format!("{page}: `{command}` prints nothing")]);
        }
        done.push(format!("ran: {command} ({page})"));
    }
    if done.is_empty() {
        return Err(vec!["the pages have no command to try".to_string()]);
    }
    Ok(done.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_that_get_away_or_are_too_few_fail_the_stage() {
        assert_eq!(bugs("x\ncaught 38/38\n"), Ok(()));
        assert_eq!(bugs("caught 25/25 seeded bugs"), Ok(()));
        assert!(bugs("caught 37/38").unwrap_err().contains("1 of 38"));
        assert!(bugs("caught 3/3").unwrap_err().contains("at least 25"));
        assert!(bugs("").is_err());
    }

    #[test]
    fn a_program_that_prints_nothing_has_not_simulated_anything() {
        assert!(simulation("").unwrap_err().contains("crash points"));
        assert!(simulation("2000 seeds, 7 steps, invariants 14, crash points 3, faults 9").is_ok());
    }

    #[test]
    fn fault_stories_without_planted_bugs_do_not_pass() {
        assert!(faults("Z4 bursts pass with the bug DeleteWithoutDrain fails").is_ok());
        assert!(faults("all 23 stories are as they should be").is_err());
        assert!(faults("Z4 with the bug X; 9 stories with planted bugs were left out").is_err());
    }

    #[test]
    fn a_benchmark_without_its_ratio_has_not_run() {
        assert!(benchmark("running 0 tests").is_err());
        assert!(benchmark("workload | 10k | 1M | 1M / 10k").is_ok());
    }
}
