//! Inputs derived from known ones: random bytes are refused at the first one, so valid inputs are mutated.

use std::fmt;
use std::fs;
use std::path::Path;

/// The maximum length of an input.
pub const LONGEST: usize = 64 * 1024;

/// An input of a corpus, and the steps that change it: each an operation with three numbers.
pub type Recipe = (u16, Vec<(u8, u16, u16, u8)>);

/// Tokens that have a meaning to one of the parsers.
const TOKENS: [&str; 40] = [
    "null",
    "true",
    "{}",
    "[]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\u0000",
    "\\ud800",
    "\\",
    "-0",
    "1e999",
    "-1",
    "2147483648",
    "9223372036854775808",
    "0x7f",
    "\u{feff}",
    "\u{0}",
    "é",
    "\n",
    "\n---\n",
    "  ",
    "&a ",
    "*a",
    "? ",
    "!!binary ",
    "TZ=",
    "CRON_TZ=Asia/Gaza ",
    "@every ",
    "*/",
    "-",
    "L",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "--",
    "=",
];

/// One input.
pub struct Input(pub Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// The inputs that are kept for one target.
pub struct Corpus(Vec<Input>);

impl Corpus {
    /// Every file of `tests/fuzz/corpus/<name>`, in the order of names.
    pub fn read(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
        let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "no corpus for {name}");
        Self(files.into_iter().map(|file| Input(fs::read(file).unwrap())).collect())
    }

    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.0.iter()
    }

    /// Follows a recipe.
    pub fn cook(&self, (start, steps): &Recipe) -> Input {
        let pick = |number: u16| &self.0[usize::from(number) % self.0.len()].0;
        let mut bytes = pick(*start).clone();
        for (what, at, other, number) in steps {
            let at = usize::from(*at) % (bytes.len() + 1);
            let end = (at + usize::from(*number)).min(bytes.len());
            match what % 8 {
                0 => drop(bytes.splice(at..(at + 1).min(bytes.len()), [*number])),
                1 | 2 => drop(bytes.splice(at..at, TOKENS[usize::from(*other) % TOKENS.len()].bytes())),
                3 => drop(bytes.drain(at..end)),
                4 => {
                    let piece = bytes[at..end].to_vec();
                    let to = usize::from(*other) % (bytes.len() + 1);
                    bytes.splice(to..to, piece);
                }
                5 => {
                    let piece = bytes[at..end].repeat(usize::from(*other) % 1000);
                    bytes.splice(at..at, piece);
                }
                6 => {
                    let tail = pick(*other);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&tail[at.min(tail.len())..]);
                }
                _ => bytes.truncate(at),
            }
            bytes.truncate(LONGEST);
        }
        Input(bytes)
    }
}
