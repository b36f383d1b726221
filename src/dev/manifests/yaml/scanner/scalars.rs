//! The texts: plain, in quotes, and after `|` or `>`.

use super::super::TAB_INDENTS;
use super::super::cursor::Mark;
use super::{Done, Kind, Scanner, Style, YamlError};

/// How the end of a text after `|` or `>` is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// The line ends and spaces between two words of a text.
#[derive(Default)]
struct Gap {
    blanks: String,
    first: String,
    more: String,
    has_break: bool,
}

impl Gap {
    /// Adds to the text what the gap is in it.
    fn fold(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.has_break) {
            text.push_str(&self.blanks);
        } else if self.first.starts_with('\n') && self.more.is_empty() {
            text.push(' ');
        } else {
            // A separator of Unicode is no space.
            text.push_str(if self.first.starts_with('\n') { "" } else { &self.first });
            text.push_str(&self.more);
        }
        self.blanks.clear();
        self.first.clear();
        self.more.clear();
    }
}

impl Scanner<'_> {
    pub(super) fn fetch_plain(&mut self) -> Done {
        self.save_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        let mut end = start;
        let (mut text, mut gap) = (String::new(), Gap::default());
        while !self.cursor.is_marker() && !self.cursor.is(b'#') {
            while !self.cursor.is_space(0) && !self.is_plain_end() {
                gap.fold(&mut text);
                self.cursor.take(&mut text);
                end = self.cursor.mark;
            }
            if !self.cursor.is_blank(0) && !self.cursor.is_break(0) {
                break;
            }
            self.scan_gap(&mut gap, true)?;
            if self.flow_level == 0 && self.is_left_of_text() {
                break;
            }
        }
        self.is_key_allowed |= gap.has_break;
        self.tokens.push_back(super::Token { kind: Kind::Scalar(text, Style::Plain), start, end });
        Ok(())
    }

    fn is_plain_end(&self) -> bool {
        (self.cursor.is(b':') && self.cursor.is_space(1)) || (self.flow_level > 0 && self.cursor.is_one_of(b",?[]{}"))
    }

    /// Whether the column is not to the right of the current block.
    fn is_left_of_text(&self) -> bool {
        self.indent.is_some_and(|indent| self.cursor.mark.column <= indent)
    }

    /// Reads spaces and line ends.
    fn scan_gap(&mut self, gap: &mut Gap, is_plain: bool) -> Done {
        loop {
            if self.cursor.is_blank(0) {
                if gap.has_break {
                    if is_plain && self.cursor.is(b'\t') && self.is_left_of_text() {
                        return Err(self.fault(TAB_INDENTS));
                    }
                    self.cursor.skip();
                } else {
                    self.cursor.take(&mut gap.blanks);
                }
            } else if let Some(end) = self.cursor.skip_line() {
                if gap.has_break { &mut gap.more } else { &mut gap.first }.push(end);
                gap.has_break = true;
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn fetch_quoted(&mut self, quote: u8) -> Done {
        self.save_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        self.cursor.skip();
        let (mut text, mut gap) = (String::new(), Gap::default());
        loop {
            if self.cursor.is_marker() {
                return Err(YamlError::at(start, "a text in quotes is not closed before the end of the document"));
            }
            if self.cursor.is_end() {
                return Err(YamlError::at(start, "a text in quotes is not closed"));
            }
            self.scan_quoted_word(quote, &mut text, &mut gap)?;
            if self.cursor.is(quote) {
                break;
            }
            self.scan_gap(&mut gap, false)?;
            gap.fold(&mut text);
        }
        self.cursor.skip();
        self.push(Kind::Scalar(text, Style::Quoted), start);
        Ok(())
    }

    /// Reads up to a space, a line end, or the closing quote.
    fn scan_quoted_word(&mut self, quote: u8, text: &mut String, gap: &mut Gap) -> Done {
        while !self.cursor.is_space(0) {
            if quote == b'\'' && self.cursor.is(quote) && self.cursor.byte(1) == quote {
                self.cursor.skip();
                self.cursor.take(text);
            } else if self.cursor.is(quote) {
                return Ok(());
            } else if quote == b'"' && self.cursor.is(b'\\') {
                if self.cursor.is_break(1) {
                    self.cursor.skip();
                    self.cursor.skip_line();
                    gap.has_break = true;
                    return Ok(());
                }
                text.push(self.scan_escape()?);
            } else {
                self.cursor.take(text);
            }
        }
        Ok(())
    }

    fn scan_escape(&mut self) -> Result<char, YamlError> {
        const ONLY_JSON: &str = "an escape that only JSON has";
        let start = self.cursor.mark;
        let fault = |problem: &str| YamlError::at(start, problem);
        self.cursor.skip();
        let digits = match self.cursor.byte(0) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            escape => {
                let character = match escape {
                    b'0' => '\0',
                    b'a' => '\u{7}',
                    b'b' => '\u{8}',
                    b't' | b'\t' => '\t',
                    b'n' => '\n',
                    b'v' => '\u{b}',
                    b'f' => '\u{c}',
                    b'r' => '\r',
                    b'e' => '\u{1b}',
                    b' ' | b'"' | b'\'' | b'\\' => char::from(escape),
                    b'N' => '\u{85}',
                    b'_' => '\u{a0}',
                    b'L' => '\u{2028}',
                    b'P' => '\u{2029}',
                    b'/' => return Err(fault(ONLY_JSON)),
                    _ => {
                        let problem = "there is no such escape; in double quotes a backslash is written twice, or use single quotes";
                        return Err(fault(problem));
                    }
                };
                self.cursor.skip();
                return Ok(character);
            }
        };
        self.cursor.skip();
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = char::from(self.cursor.byte(0)).to_digit(16);
            let digit = digit.ok_or_else(|| fault("an escape in a text in double quotes is no character"))?;
            // More than eight digits there are none.
            code = (code << 4) | digit;
            self.cursor.skip();
        }
        let is_surrogate = (0xd800..0xe000).contains(&code);
        let problem = if is_surrogate { ONLY_JSON } else { "an escape in a text in double quotes is no character" };
        char::from_u32(code).ok_or_else(|| fault(problem))
    }

    pub(super) fn fetch_block_scalar(&mut self, is_literal: bool) -> Done {
        self.remove_key()?;
        self.is_key_allowed = true;
        let start = self.cursor.mark;
        self.cursor.skip();
        let (chomping, increment) = self.scan_block_header()?;
        let mut indent = increment.map(|increment| self.indent.unwrap_or_default() + increment);
        let (mut text, mut line_end, mut empty) = (String::new(), None, String::new());
        self.scan_empty_lines(&mut indent, &mut empty)?;
        let mut was_indented = false;
        while Some(self.cursor.mark.column) == indent && !self.cursor.is_end() {
            let is_indented = self.cursor.is_blank(0);
            if !is_literal && !was_indented && !is_indented && line_end == Some('\n') {
                if empty.is_empty() {
                    text.push(' ');
                }
            } else {
                text.extend(line_end);
            }
            text.push_str(&empty);
            empty.clear();
            was_indented = is_indented;
            while !self.cursor.is_break_or_end() {
                self.cursor.take(&mut text);
            }
            line_end = self.cursor.skip_line();
            self.scan_empty_lines(&mut indent, &mut empty)?;
        }
        if chomping != Chomping::Strip {
            text.extend(line_end);
        }
        if chomping == Chomping::Keep {
            text.push_str(&empty);
        }
        self.push(Kind::Scalar(text, Style::Block), start);
        Ok(())
    }

    /// Reads what follows a `|` or a `>` in its line: how the end is kept, and how much more the text is indented than the block around it.
    fn scan_block_header(&mut self) -> Result<(Chomping, Option<usize>), YamlError> {
        let (mut chomping, mut increment) = (None, None);
        // In either order, each at most once.
        for _ in 0..2 {
            match self.cursor.byte(0) {
                sign @ (b'+' | b'-') if chomping.is_none() => {
                    chomping = Some(if sign == b'+' { Chomping::Keep } else { Chomping::Strip });
                }
                b'0' if increment.is_none() => {
                    return Err(self.fault("the number after the | or > of a text is from 1 to 9"));
                }
                digit @ b'1'..=b'9' if increment.is_none() => increment = Some(usize::from(digit - b'0')),
                _ => break,
            }
            self.cursor.skip();
        }
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end() {
            return Err(self.fault("after the | or > of a text only + or -, a number and a comment may follow"));
        }
        self.cursor.skip_line();
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    /// Reads lines of spaces and the indentation behind them, and finds out how far the text is indented, if that is not known.
    fn scan_empty_lines(&mut self, indent: &mut Option<usize>, empty: &mut String) -> Done {
        let mut widest = 0;
        loop {
            let is_before = |mark: Mark| indent.is_none_or(|indent| mark.column < indent);
            while self.cursor.is(b' ') && is_before(self.cursor.mark) {
                self.cursor.skip();
            }
            widest = widest.max(self.cursor.mark.column);
            if self.cursor.is(b'\t') && is_before(self.cursor.mark) {
                return Err(self.fault(TAB_INDENTS));
            }
            match self.cursor.skip_line() {
                Some(end) => empty.push(end),
                None => break,
            }
        }
        let least = self.indent.map_or(1, |indent| indent + 1);
        indent.get_or_insert(widest.max(least));
        Ok(())
    }
}
