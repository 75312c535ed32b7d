//! Words of strangers, made fit for terminals and logs.

/// A text without what terminals obey, and without what turns the order of its letters around: it may come from anybody who can write an object or ask for
/// something. Lines stay.
pub(crate) fn plain(text: &str) -> String {
    let obeyed = |c: char| (c.is_control() && c != '\n') || turns(c);
    text.replace(obeyed, "\u{FFFD}")
}

/// As [`plain`], on one line.
pub(crate) fn plain_line(text: &str) -> String {
    plain(text).replace('\n', "\u{FFFD}")
}

/// Marks, embeddings, overrides and isolates of the bidirectional algorithm, and separators of lines and paragraphs.
fn turns(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_taken_out_of_texts() {
        let told = "gave up: \u{1b}]0;owned\u{7}\r\u{9b}2J\nnext line";
        assert_eq!(
            plain(told),
            "gave up: \u{FFFD}]0;owned\u{FFFD}\u{FFFD}\u{FFFD}2J\nnext line"
        );
    }

    #[test]
    fn no_text_turns_the_words_around_it_and_scripts_from_right_to_left_stay() {
        assert_eq!(
            plain_line("\u{202e}gnihton\u{2066}\u{2028}\n"),
            "\u{FFFD}gnihton\u{FFFD}\u{FFFD}\u{FFFD}"
        );
        for sound in ["עוגן", "می\u{200c}خواهم", "👩\u{200d}✈️", "Käse"] {
            assert_eq!(plain_line(sound), sound);
        }
    }
}
