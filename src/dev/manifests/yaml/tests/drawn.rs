//! Draws YAML documents from a seed: valid ones of all styles, and others. Each is a mapping at its top, as manifests are, and ends with
//! a line end, as documents do that are split from a file.

use std::fmt::Write as _;

/// A generator of numbers, SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const WORDS: [&str; 49] = [
    "a",
    "b",
    "c",
    "yes",
    "off",
    "null",
    "~",
    "1",
    "010",
    "08",
    "1e3",
    "1.5",
    ".5",
    "0x1f",
    "1_000",
    "83e2010",
    "2026-01-01",
    "12:30",
    "a b",
    "a-b",
    "a:b",
    "a#b",
    "a # b",
    "*/5 * * * *",
    "http://x/y?z=1",
    "é",
    "-",
    "-1",
    "?",
    ".",
    "a, b",
    "[a]",
    "{a}",
    "true",
    "<<",
    "=",
    "!",
    "&",
    "%a",
    "@a",
    "a\u{85}b",
    "\u{2028}a",
    "a\u{feff}",
    "a\tb",
    "a\rb",
    "a?b",
    "a:",
    "::",
    "\u{1f600}",
];
const QUOTED: [&str; 36] = [
    "''",
    "\"\"",
    "'a'",
    "\"a\"",
    "'it''s'",
    "\"a\\nb\"",
    "\"a\\\n  b\"",
    "'a\n  b'",
    "\"a\n\n  b\"",
    "'yes'",
    "\"1\"",
    "\"\\u00e9\"",
    "\"\\x41\"",
    "\"\\/\"",
    "'# a'",
    "\": \"",
    "'- a'",
    "\"\\t\"",
    "\"\\q\"",
    "'a",
    "\"a",
    "\"a \n b\"",
    "'a'b",
    "\"a\\\\\"",
    "\"a\u{85} b\"",
    "\'a\u{2029}b\'",
    "\"a\n\n\n\tb\"",
    "\'a \n\n  b \n c\'",
    "\"a\\  \n\n  b\"",
    "\"\\N\\_\\L\\P\\e\\0\"",
    "\"\\\'\"",
    "\"\\ud83d\\ude00\"",
    "\"\\U0001f600\"",
    "\"\\x4\"",
    "\'a\nb\'",
    "\"a\n--- b\n... c\"",
];
const TAGS: [&str; 18] = [
    "!!str ",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!null ",
    "!!binary ",
    "!!timestamp ",
    "!local ",
    "! ",
    "!!map ",
    "!!seq ",
    "!<tag:yaml.org,2002:str> ",
    "!e!x ",
    "!<!> ",
    "!!merge ",
    "!!%73tr ",
    "!a%C3%A9 ",
    "!!",
];
const SOUP: [&str; 58] = [
    "a",
    "b",
    "1",
    "yes",
    ":",
    ": ",
    ":\n",
    "- ",
    "-\n",
    "\n",
    "\n",
    "\n",
    "  ",
    " ",
    "\t",
    ",",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "? ",
    "&a ",
    "*a",
    "*b ",
    "!!str ",
    "!!int ",
    "'",
    "\"",
    "'a'",
    "\"b\"",
    "|\n",
    ">\n",
    "|-\n",
    "# c\n",
    " # c\n",
    "<<: ",
    "...\n",
    "%",
    "@",
    "`",
    "é",
    "a: 1\n",
    "\\n",
    "\t",
    "\r\n",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "---\n",
    "%YAML 1.1\n",
    "\n\n",
    ">-2\n",
    "<<: *a\n",
    "? ",
    "!",
    "&a\n",
    "#",
];

struct Writer {
    dice: Dice,
    text: String,
}

impl Writer {
    fn properties(&mut self) {
        if self.dice.one_in(12) {
            self.text.push_str(["&a ", "&b ", "&c "][self.dice.below(3)]);
        }
        if self.dice.one_in(25) {
            let tag = self.dice.of(&TAGS);
            self.text.push_str(tag);
        }
    }

    fn scalar(&mut self) {
        let text = match self.dice.below(10) {
            0..=5 => self.dice.of(&WORDS),
            6..=8 => self.dice.of(&QUOTED),
            _ => self.dice.of(&["*a", "*b", "*c", "*a "]),
        };
        self.text.push_str(text);
    }

    fn end(&mut self) {
        let end = self.dice.of(&[
            "\n",
            "\n",
            "\n",
            "\n",
            "\n",
            "\n",
            " # c\n",
            " \n",
            "\n\n",
            "\n# c\n",
            "\r\n",
            "\n  # c\n",
            "\t\n",
            "#c\n",
            " # c\n\t# c\n",
            "\t# c\n\n",
            "\u{85}",
            "\r",
        ]);
        self.text.push_str(end);
    }

    fn flow(&mut self, depth: usize) {
        self.properties();
        match if depth == 0 { 4 } else { self.dice.below(6) } {
            0 | 1 => {
                self.text.push('[');
                for _ in 0..self.dice.below(4) {
                    self.flow(depth - 1);
                    let next = self
                        .dice
                        .of(&[", ", ", ", ",", ",\n  ", " , ", ": 1, ", ",, ", "\n, ", ",\t", ", # c\n", " #c\n , "]);
                    self.text.push_str(next);
                }
                self.text.push(']');
            }
            2 | 3 => {
                self.text.push('{');
                for _ in 0..self.dice.below(4) {
                    if self.dice.one_in(12) {
                        self.text.push_str("? ");
                    }
                    self.scalar();
                    let middle = self.dice.of(&[": ", ": ", ": ", ":", " : ", ":\n  ", ""]);
                    self.text.push_str(middle);
                    if !self.dice.one_in(8) {
                        self.flow(depth - 1);
                    }
                    let next = self.dice.of(&[", ", ", ", ",", ",\n  ", ",\n\t", ",\n", ", # c\n  ", "\t,"]);
                    self.text.push_str(next);
                }
                self.text.push('}');
            }
            _ => self.scalar(),
        }
    }

    fn literal(&mut self, indent: usize) {
        let header = self.dice.of(&[
            "|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "| # c", "|-1", ">2", "|3+", ">\t# c", "|#c", "|0", "|12",
            ">++",
        ]);
        self.text.push_str(header);
        self.text.push('\n');
        for _ in 0..self.dice.below(4) {
            let more = self.dice.of(&["  ", "  ", "  ", "  ", "   ", "    ", " ", "\t", "  \t", ""]);
            let line = self.dice.of(&[
                "a",
                "a b",
                "",
                "# c",
                "- a",
                "a: b",
                " a",
                "a ",
                "é",
                "\ta",
                "a\u{85}  b",
                "\u{2028}",
                "a\r",
            ]);
            self.text.push_str(&" ".repeat(indent));
            self.text.push_str(more);
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// A value behind a key or a dash.
    fn value(&mut self, indent: usize, depth: usize) {
        match if depth == 0 { 9 } else { self.dice.below(10) } {
            0..=2 => {
                self.properties();
                self.end();
                let more = [2, 2, 2, 1, 4, 0][self.dice.below(6)];
                self.block(indent + more, depth - 1);
            }
            3 => self.literal(indent),
            4 => {
                self.flow(2);
                self.end();
            }
            5 => self.end(),
            6 => {
                self.scalar();
                self.text.push('\n');
                self.text.push_str(&" ".repeat(indent + 2));
                self.scalar();
                self.end();
            }
            _ => {
                self.properties();
                self.scalar();
                self.end();
            }
        }
    }

    fn block(&mut self, indent: usize, depth: usize) {
        let is_list = self.dice.one_in(3);
        for number in 0..=self.dice.below(4) {
            let wrong = usize::from(self.dice.one_in(40));
            self.text.push_str(&" ".repeat(indent + wrong));
            if is_list {
                let dash = self.dice.of(&["- ", "- ", "- ", "-   ", "-\t", "- - ", "-"]);
                self.text.push_str(dash);
            }
            if !is_list || self.dice.one_in(3) {
                self.key(number);
            }
            self.value(indent, depth);
        }
    }

    fn key(&mut self, number: usize) {
        self.properties();
        match self.dice.below(20) {
            0 => self.scalar(),
            1 => {
                let merge =
                    self.dice.of(&["<<", "<<: *a\n#", "<<: [*a, *b]\n#", "<<: {a: 1, b: 2}\n#", "! <<", "\"<<\""]);
                self.text.push_str(merge);
            }
            2 => {
                self.text.push_str("? ");
                self.scalar();
                self.end();
            }
            _ => write!(self.text, "k{number}").unwrap(),
        }
        let colon = self.dice.of(&[": ", ": ", ": ", ": ", ": ", " : ", ":", ":\t", ":  "]);
        self.text.push_str(colon);
    }

    fn soup(&mut self) {
        let start = self.dice.of(&["v: ", "v: ", "v:\n- ", "v: [", "v: {"]);
        self.text.push_str(start);
        for _ in 0..=self.dice.below(14) {
            let piece = self.dice.of(&SOUP);
            self.text.push_str(piece);
        }
    }
}

/// What may be before a document's value.
const STARTS: [&str; 10] = [
    "\u{feff}",
    "\n\u{feff}",
    "%YAML 1.1\n---\n",
    "%YAML 1.2\n---\n",
    "%TAG !e! tag:yaml.org,2002:\n---\n",
    "%TAG ! !x\n---\n",
    "--- # c\n",
    "# c\n\n",
    "a: &a {x: 1, y: 2}\nb: &b {y: 3}\n",
    "c: &c [1]\nd: &d text\n",
];

impl Writer {
    fn document(&mut self) -> String {
        if self.dice.one_in(6) {
            let start = self.dice.of(&STARTS);
            self.text.push_str(start);
        }
        match self.dice.below(4) {
            0 => self.soup(),
            1 => {
                self.text.push_str("v: ");
                self.flow(3);
                self.end();
            }
            _ => {
                self.text.push_str("v:\n");
                self.block(2, 3);
            }
        }
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let text = std::mem::take(&mut self.text);
        match self.dice.below(40) {
            0 => text.replace('\n', "\r\n"),
            1 => text.replace('\n', "\n\n"),
            2 => text.replace("k1", &"long ".repeat(250)),
            3 => text + "...\nw: 1\n",
            _ => text,
        }
    }
}

/// So many documents.
pub(super) fn documents(seed: u64, number: usize) -> Vec<String> {
    let mut writer = Writer { dice: Dice(seed), text: String::new() };
    (0..number).map(|_| writer.document()).collect()
}
