//! How an expression is nested, told from its text before it is parsed.
//!
//! Guarantee: a text that passes is parsed and evaluated within a stack of 2 MiB, also in a build for debugging: the parser descends
//! once for each bracket, and the evaluator once for each operator of a chain. The work grows with the length of the text. Pure.

use std::iter::Peekable;
use std::str::Chars;

use super::NotJudged;

/// The longest expression, in bytes.
const LONGEST: usize = 4096;
/// How deep an expression may be: 4 for a bracket, 1 for an operator, a member or an index that follows another one.
const DEEPEST: u32 = 36;
const BRACKET: u32 = 4;

/// What is between two separators within brackets.
#[derive(Clone, Copy, Default)]
struct Part {
    chain: u32,
    inside: u32,
}

/// What is within brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    deepest: u32,
    part: Part,
}

impl Level {
    fn end_part(&mut self) {
        self.deepest = self.deepest.max(self.part.chain + self.part.inside);
        self.part = Part::default();
    }
}

/// # Errors
/// When the text is too long, or nested too deep.
pub fn judge(text: &str) -> Result<(), NotJudged> {
    if text.len() > LONGEST {
        return Err(NotJudged(format!("it is longer than {LONGEST} bytes")));
    }
    let too_deep = || NotJudged("it is nested too deep".to_owned());
    let mut levels = vec![Level::default()];
    let mut chars = text.chars().peekable();
    let mut word = String::new();
    while let Some(c) = chars.next() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let last = std::mem::take(&mut word);
        let Some(level) = levels.last_mut() else { return Err(too_deep()) };
        level.part.chain += u32::from(last == "in");
        match c {
            '"' | '\'' => skip_text(c, last.eq_ignore_ascii_case("r") || last.eq_ignore_ascii_case("br"), &mut chars),
            '/' if chars.peek() == Some(&'/') => skip_line(&mut chars),
            '(' | '[' | '{' => {
                // An index or a call follows what is before it.
                level.part.chain += u32::from(c == '[');
                levels.push(Level::default());
                if levels.len() > (DEEPEST / BRACKET) as usize + 1 {
                    return Err(too_deep());
                }
            }
            ')' | ']' | '}' => {
                level.end_part();
                let inside = level.deepest + BRACKET;
                levels.pop();
                let Some(outer) = levels.last_mut() else { return Err(too_deep()) };
                outer.part.inside = outer.part.inside.max(inside);
            }
            ',' | '&' | '|' => level.end_part(),
            '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '?' => level.part.chain += 1,
            _ => {}
        }
    }
    let deepest = levels.iter_mut().map(|level| {
        level.end_part();
        level.deepest
    });
    if deepest.sum::<u32>() > DEEPEST { Err(too_deep()) } else { Ok(()) }
}

/// Skips the rest of a text in quotes.
fn skip_text(quote: char, is_raw: bool, chars: &mut Peekable<Chars<'_>>) {
    let mut rest = chars.clone();
    let is_long = rest.next() == Some(quote) && rest.next() == Some(quote);
    let mut run = 0;
    if is_long {
        chars.nth(1);
    }
    while let Some(c) = chars.next() {
        if c == quote {
            run += 1;
            if run == if is_long { 3 } else { 1 } {
                return;
            }
            continue;
        }
        run = 0;
        if c == '\\' && !is_raw {
            chars.next();
        }
    }
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| *c != '\n').is_some() {}
}

#[cfg(test)]
mod tests;
