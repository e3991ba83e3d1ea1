//! The differences between two transcripts, command by command, with the lines that only one side has.

use dissimilar::Chunk;

use super::play::Answer;

/// The differences, each as a text; none if the transcripts are equal.
pub(super) fn between(recorded: &[Answer], said: &[Answer]) -> Vec<String> {
    let commands = |answers: &[Answer]| answers.iter().map(|it| it.command.clone()).collect::<Vec<_>>();
    if commands(recorded) != commands(said) {
        let found = lines(&commands(recorded).join("\n"), &commands(said).join("\n"));
        return vec![format!("the session was changed since the transcript was recorded:\n{found}")];
    }
    let pairs = recorded.iter().zip(said).filter(|(one, two)| one.said != two.said);
    pairs.map(|(one, two)| format!("$ {}\n{}", one.command, lines(&one.said, &two.said))).collect()
}

/// How many equal lines stand around a difference.
const AROUND: usize = 2;
/// The first letter of a plane that no text uses.
const FIRST: u32 = 0xF_0000;

/// Both texts as one, with `-` and `+` before the lines that only one has. The comparison is of letters, so each
/// line becomes one.
fn lines(one: &str, two: &str) -> String {
    let mut known: Vec<&str> = one.lines().chain(two.lines()).collect();
    known.sort_unstable();
    known.dedup();
    let letters = |text: &str| -> String {
        let letter = |line| char::from_u32(FIRST + u32::try_from(known.binary_search(&line).ok()?).ok()?);
        text.lines().filter_map(letter).collect()
    };
    let told: Vec<(char, &str)> = dissimilar::diff(&letters(one), &letters(two))
        .into_iter()
        .flat_map(|chunk| {
            let (sign, text) = match chunk {
                Chunk::Equal(text) => (' ', text),
                Chunk::Delete(text) => ('-', text),
                Chunk::Insert(text) => ('+', text),
            };
            text.chars().map(|it| (sign, known[(u32::from(it) - FIRST) as usize])).collect::<Vec<_>>()
        })
        .collect();
    let near = |at: usize| {
        let around = at.saturating_sub(AROUND)..(at + AROUND + 1).min(told.len());
        told[around].iter().any(|(sign, _)| *sign != ' ')
    };
    let kept = told.iter().enumerate().filter(|(at, _)| near(*at));
    kept.map(|(_, (sign, line))| format!("{sign} {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(texts: &[(&str, &str)]) -> Vec<Answer> {
        texts
            .iter()
            .map(|(command, said)| Answer { command: (*command).into(), said: (*said).into() })
            .collect()
    }

    #[test]
    fn equal_transcripts_have_no_difference() {
        let one = answers(&[("kubectl a", "x\ny")]);
        assert!(between(&one, &one).is_empty());
    }

    #[test]
    fn a_difference_shows_the_lines_of_both_and_what_stands_near() {
        let found = between(
            &answers(&[("kubectl a", "1\n2\n3\n4\nold\n5")]),
            &answers(&[("kubectl a", "1\n2\n3\n4\nnew\n5")]),
        );
        assert_eq!(found, ["$ kubectl a\n  3\n  4\n- old\n+ new\n  5\n"]);
    }

    #[test]
    fn another_session_is_a_difference_of_its_own() {
        let found = between(&answers(&[("kubectl a", "")]), &answers(&[("kubectl b", "")]));
        assert!(found[0].contains("- kubectl a\n+ kubectl b"), "{found:?}");
    }
}
