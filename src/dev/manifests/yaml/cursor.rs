//! A position in the text of a YAML document.
//!
//! Guarantee: reading behind the end of the text yields NUL, which the text itself never has. Pure.

use apimachinery::steps;

/// A position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// In bytes.
    pub at: usize,
    /// In characters.
    pub index: usize,
    /// The line, counted from 0, with all line ends of YAML 1.1.
    pub line: usize,
    /// The line, counted from 0, as editors count lines.
    pub row: usize,
    /// In characters since the last line end.
    pub column: usize,
}

pub(super) struct Cursor<'a> {
    text: &'a str,
    pub mark: Mark,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, mark: Mark::default() }
    }

    /// The byte so many bytes ahead.
    pub fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.mark.at + ahead).copied().unwrap_or_default()
    }

    pub fn is(&self, byte: u8) -> bool {
        self.byte(0) == byte
    }

    pub fn is_one_of(&self, bytes: &[u8]) -> bool {
        bytes.contains(&self.byte(0))
    }

    pub fn is_end(&self) -> bool {
        self.mark.at >= self.text.len()
    }

    /// A space or a tab.
    pub fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    /// A line end: also the next line, the line separator and the paragraph separator of Unicode.
    pub fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\r' | b'\n' => true,
            0xc2 => self.byte(ahead + 1) == 0x85,
            0xe2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    pub fn is_break_or_end(&self) -> bool {
        self.is_break(0) || self.is_end()
    }

    /// A space, a tab, a line end, or the end of the text.
    pub fn is_space(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_blank(ahead) || self.is_break(ahead)
    }

    /// A letter or a digit of ASCII, `_` or `-`.
    pub fn is_word(&self) -> bool {
        let byte = self.byte(0);
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
    }

    /// Whether a line begins here with the marker of a document, `---` or `...`.
    pub fn is_marker(&self) -> bool {
        let bytes = [self.byte(0), self.byte(1), self.byte(2)];
        self.mark.column == 0 && matches!(&bytes, b"---" | b"...") && self.is_space(3)
    }

    /// The next character.
    pub fn char(&self) -> Option<char> {
        self.text[self.mark.at..].chars().next()
    }

    /// Goes behind the next character, which is no line end.
    pub fn skip(&mut self) {
        self.next();
    }

    /// Goes behind the next character and adds it to a text.
    pub fn take(&mut self, text: &mut String) {
        text.extend(self.next());
    }

    fn next(&mut self) -> Option<char> {
        steps::add(1);
        let next = self.char()?;
        self.mark.at += next.len_utf8();
        self.mark.index += 1;
        self.mark.column += 1;
        Some(next)
    }

    /// Goes behind spaces and tabs.
    pub fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    /// Goes behind a comment, to the end of its line.
    pub fn skip_comment(&mut self) {
        if self.is(b'#') {
            while !self.is_break_or_end() {
                self.skip();
            }
        }
    }

    /// Goes behind a line end and returns what it is in a text. There need not be one.
    pub fn skip_line(&mut self) -> Option<char> {
        steps::add(1);
        let next = if self.is_break(0) { self.char()? } else { return None };
        let is_pair = next == '\r' && self.byte(1) == b'\n';
        self.mark.at += next.len_utf8() + usize::from(is_pair);
        self.mark.index += 1 + usize::from(is_pair);
        self.mark.column = 0;
        self.mark.line += 1;
        self.mark.row += usize::from(next == '\n' || is_pair);
        Some(if next.len_utf8() < 3 { '\n' } else { next })
    }
}
