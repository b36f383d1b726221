//! Anchors, aliases, tags and directives.

use super::super::cursor::Mark;
use super::{Done, Kind, Scanner, YamlError};

const BAD_DIRECTIVE: &str = "a line that begins with % is a directive, and this one cannot be read";
const BAD_TAG: &str = "a word that begins with ! is a tag, and this one cannot be read; put a text in quotes";

impl Scanner<'_> {
    pub(super) fn fetch_reference(&mut self, is_alias: bool) -> Done {
        self.save_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        self.cursor.skip();
        let name = self.scan_word();
        if name.is_empty() || !(self.cursor.is_space(0) || self.cursor.is_one_of(b"?:,]}%@`")) {
            return Err(self.fault("a name is missing after the & or the *; put a text in quotes"));
        }
        self.push(if is_alias { Kind::Alias(name) } else { Kind::Anchor(name) }, start);
        Ok(())
    }

    fn scan_word(&mut self) -> String {
        let mut word = String::new();
        while self.cursor.is_word() {
            self.cursor.take(&mut word);
        }
        word
    }

    pub(super) fn fetch_tag(&mut self) -> Done {
        self.save_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        let (handle, suffix) = self.scan_tag(start)?;
        if !self.cursor.is_space(0) {
            return Err(YamlError::at(start, BAD_TAG));
        }
        self.push(Kind::Tag(handle, suffix), start);
        Ok(())
    }

    fn scan_tag(&mut self, start: Mark) -> Result<(String, String), YamlError> {
        if self.cursor.byte(1) == b'<' {
            self.cursor.skip();
            self.cursor.skip();
            let suffix = self.scan_uri("", start, BAD_TAG)?;
            if !self.cursor.is(b'>') {
                return Err(YamlError::at(start, BAD_TAG));
            }
            self.cursor.skip();
            return Ok((String::new(), suffix));
        }
        let handle = self.scan_handle();
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.scan_uri("", start, BAD_TAG)?;
            return Ok((handle, suffix));
        }
        let suffix = self.scan_uri(&handle, start, BAD_TAG)?;
        // A `!` alone is a tag of its own.
        Ok(if suffix.is_empty() { (suffix, "!".to_owned()) } else { ("!".to_owned(), suffix) })
    }

    /// A `!`, and what may be the rest of a handle.
    fn scan_handle(&mut self) -> String {
        let mut handle = String::new();
        self.cursor.take(&mut handle);
        handle.push_str(&self.scan_word());
        if self.cursor.is(b'!') {
            self.cursor.take(&mut handle);
        }
        handle
    }

    /// The rest of a tag whose beginning, with its `!`, is `head`.
    fn scan_uri(&mut self, head: &str, start: Mark, problem: &str) -> Result<String, YamlError> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut is_any = !head.is_empty();
        while self.cursor.is_word() || self.cursor.is_one_of(b";/?:@&=+$,.!~*'()[]%") {
            if self.cursor.is(b'%') {
                self.scan_uri_escapes(&mut uri).ok_or_else(|| YamlError::at(start, problem))?;
            } else {
                uri.push(self.cursor.byte(0));
                self.cursor.skip();
            }
            is_any = true;
        }
        if is_any { Ok(String::from_utf8_lossy(&uri).into_owned()) } else { Err(YamlError::at(start, problem)) }
    }

    /// The bytes of one character, each written as `%` and two digits.
    fn scan_uri_escapes(&mut self, uri: &mut Vec<u8>) -> Option<()> {
        let mut left = None;
        while left != Some(0) {
            let digit = |ahead| char::from(self.cursor.byte(ahead)).to_digit(16);
            let octet = u8::try_from((digit(1)? << 4) | digit(2)?).ok().filter(|_| self.cursor.is(b'%'))?;
            left = Some(match left {
                Some(left) => (octet & 0xc0 == 0x80).then_some(left - 1)?,
                None => match octet.leading_ones() {
                    0 => 0,
                    ones @ 2..=4 => ones - 1,
                    _ => return None,
                },
            });
            uri.push(octet);
            (0..3).for_each(|_| self.cursor.skip());
        }
        Some(())
    }

    pub(super) fn fetch_directive(&mut self) -> Done {
        self.unroll_indent(None);
        self.remove_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        let kind = self.scan_directive(start)?;
        self.push(kind, start);
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end() {
            return Err(YamlError::at(start, BAD_DIRECTIVE));
        }
        self.cursor.skip_line();
        Ok(())
    }

    fn scan_directive(&mut self, start: Mark) -> Result<Kind, YamlError> {
        let bad = || YamlError::at(start, BAD_DIRECTIVE);
        self.cursor.skip();
        let name = self.scan_word();
        if !self.cursor.is_space(0) {
            return Err(bad());
        }
        self.cursor.skip_blanks();
        match name.as_str() {
            "YAML" => {
                let major = self.scan_version().ok_or_else(bad)?;
                if !self.cursor.is(b'.') {
                    return Err(bad());
                }
                self.cursor.skip();
                let minor = self.scan_version().ok_or_else(bad)?;
                Ok(Kind::Version((major, minor) == (1, 1)))
            }
            "TAG" if self.cursor.is(b'!') => {
                let handle = self.scan_handle();
                let is_handle = handle.ends_with('!');
                if !is_handle || !self.cursor.is_blank(0) {
                    return Err(bad());
                }
                self.cursor.skip_blanks();
                let prefix = self.scan_uri("", start, BAD_DIRECTIVE)?;
                if self.cursor.is_space(0) { Ok(Kind::TagDirective(handle, prefix)) } else { Err(bad()) }
            }
            _ => Err(bad()),
        }
    }

    /// A number of at most two digits.
    fn scan_version(&mut self) -> Option<u8> {
        let mut number = None;
        for _ in 0..2 {
            if self.cursor.byte(0).is_ascii_digit() {
                number = Some(number.unwrap_or_default() * 10 + (self.cursor.byte(0) - b'0'));
                self.cursor.skip();
            }
        }
        number.filter(|_| !self.cursor.byte(0).is_ascii_digit())
    }
}
