//! What differs between two transcripts, told command by command with the lines that are there on one side only.

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

/// Both texts as one, with `-` and `+` before the lines that only one has.
fn lines(one: &str, two: &str) -> String {
    let (one, two): (Vec<&str>, Vec<&str>) = (one.lines().collect(), two.lines().collect());
    // The length of the longest row of lines that both have from here on.
    let mut common = vec![vec![0_usize; two.len() + 1]; one.len() + 1];
    for (i, left) in one.iter().enumerate().rev() {
        for (j, right) in two.iter().enumerate().rev() {
            common[i][j] =
                if left == right { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut told: Vec<(char, &str)> = Vec::new();
    while i < one.len() || j < two.len() {
        if i < one.len() && j < two.len() && one[i] == two[j] {
            told.push((' ', one[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == two.len() || (i < one.len() && common[i + 1][j] >= common[i][j + 1]) {
            told.push(('-', one[i]));
            i += 1;
        } else {
            told.push(('+', two[j]));
            j += 1;
        }
    }
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
