//! How deeply the flow collections of a YAML text are nested, before it is parsed.
//!
//! Guarantees: the answer is at least the depth that libyaml's scanner reaches, and for a text without block scalars and
//! comments it is that depth. The text is read once. Pure.
//!
//! libyaml does work for every open collection at every token, so a text that is nested deeply takes time that grows with the
//! square of its length, before any limit of the parser above it counts. Where a flow collection begins is known only to a full
//! scanner. What follows inside of one is simple, so the text is read from every place where one may begin, at once: of all
//! readings that are in the same state, the deepest stays the deepest.

use apimachinery::steps;

/// Where a reading is.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before a token.
    Between,
    Plain,
    /// In an anchor or alias.
    Anchor,
    Tag,
    /// In a tag in angle brackets.
    VerbatimTag,
    DoubleQuoted,
    /// After a backslash in double quotes.
    Escaped,
    SingleQuoted,
    Comment,
}

use State::{Anchor, Between, Comment, DoubleQuoted, Escaped, Plain, SingleQuoted, Tag, VerbatimTag};

const STATES: [State; 9] = [Between, Plain, Anchor, Tag, VerbatimTag, DoubleQuoted, Escaped, SingleQuoted, Comment];

/// The depth, or more.
pub(super) fn flow_depth(text: &[u8]) -> usize {
    // Of the readings in each state, the depth of the deepest; 0 if there is none.
    let mut depths = [0_usize; STATES.len()];
    let mut deepest = 0;
    for (place, byte) in text.iter().copied().enumerate() {
        steps::add(1);
        let (before, after) = (place.checked_sub(1).map(|before| text[before]), text.get(place + 1).copied());
        let mut next = [0; STATES.len()];
        let mut reach = |state: State, depth: usize| {
            let known = &mut next[state as usize];
            *known = depth.max(*known);
        };
        for state in STATES {
            let depth = depths[state as usize];
            if depth > 0 {
                read(state, byte, before, after, depth, &mut reach);
            }
        }
        if matches!(byte, b'[' | b'{') && before.is_none_or(may_be_blank) {
            reach(Between, 1);
        }
        deepest = deepest.max(next[Between as usize]);
        depths = next;
    }
    deepest
}

/// Whether the byte is a blank or a line break; some line breaks have several bytes.
fn may_be_blank(byte: u8) -> bool {
    is_blank(byte) || byte >= 0x80
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads one byte in a state, and tells what state and depth follow; more than one where that depends on a longer look.
#[allow(clippy::match_same_arms, reason = "an arm for each state and byte")]
fn read(
    state: State,
    byte: u8,
    before: Option<u8>,
    after: Option<u8>,
    depth: usize,
    reach: &mut impl FnMut(State, usize),
) {
    if matches!(state, Between | Plain | Anchor | Tag) && b"[]{}".contains(&byte) {
        return reach(Between, if matches!(byte, b'[' | b'{') { depth + 1 } else { depth - 1 });
    }
    let mut stay = |state: State| reach(state, depth);
    match (state, byte) {
        (Between | Plain | Anchor | Tag, b',')
        | (Between | Anchor, b':' | b'?')
        | (VerbatimTag, b'>')
        | (DoubleQuoted, b'"')
        | (SingleQuoted, b'\'') => stay(Between),
        (Between, b'"') => stay(DoubleQuoted),
        (Between, b'\'') => stay(SingleQuoted),
        (Between, b'#') => stay(Comment),
        (Between, b'&' | b'*') => stay(Anchor),
        (Between, b'!') => stay(if after == Some(b'<') { VerbatimTag } else { Tag }),
        (Between, b'-') if after.is_some_and(is_blank) => stay(Between),
        (Between | Anchor | Tag, byte) if is_blank(byte) => stay(Between),
        (Between | Plain, _) => {
            let ends = byte == b':' && after.is_none_or(|after| is_blank(after) || b",[]{}".contains(&after));
            let is_comment = byte == b'#' && before.is_some_and(is_blank);
            match (state, ends, is_comment) {
                (Plain, true, _) => stay(Between),
                (Plain, _, true) => stay(Comment),
                _ => stay(Plain),
            }
        }
        (DoubleQuoted, b'\\') => stay(Escaped),
        (Escaped, _) => stay(DoubleQuoted),
        (Comment, b'\n' | b'\r') => stay(Between),
        (state, _) => stay(state),
    }
    // A byte beyond ASCII may be the end of a line break.
    let is_wide = |byte: Option<u8>| byte.is_some_and(|byte| byte >= 0x80);
    match (state, byte) {
        (Between | Anchor | Tag | Comment, 0x80..) => stay(Between),
        (Plain, b'#') if is_wide(before) => stay(Comment),
        (Plain, b':') | (Between, b'-') if is_wide(after) => stay(Between),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
