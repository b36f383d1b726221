//! RFC 6902, as github.com/evanphx/json-patch (the real server's library) implements it: replacing a missing member adds it.

use apimachinery::steps;
use serde_json::Value;

/// Why an operation fails. The real server does not report this to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible;

type Result<T> = std::result::Result<T, Impossible>;

/// The maximum number of JSON bytes that a patch may copy. Matches `JSONPatchMaxCopyBytes`.
const MAX_COPIED: usize = 3 << 20;
/// The maximum number of list items that a patch may move to make room or to close a gap. The real server has no such limit, and
/// works for minutes on a patch that exceeds it.
const MAX_SHIFTED: usize = 16 << 20;

/// What a patch may still do.
struct Left {
    copied: usize,
    shifted: usize,
}

impl Left {
    /// Inserting or removing an item moves those behind it.
    fn shift(&mut self, behind: usize) -> Result<()> {
        steps::add(1);
        self.shifted = self.shifted.checked_sub(behind).ok_or(Impossible)?;
        Ok(())
    }
}

/// Applies all operations of `patch`, a list.
///
/// # Errors
/// When an operation fails or the patch copies too much. `target` may then be partly changed.
pub fn apply(target: &mut Value, patch: &[Value]) -> Result<()> {
    let mut left = Left { copied: MAX_COPIED, shifted: MAX_SHIFTED };
    patch.iter().try_for_each(|operation| one(target, operation, &mut left))
}

fn one(target: &mut Value, operation: &Value, left: &mut Left) -> Result<()> {
    let text = |key: &str| operation[key].as_str().ok_or(Impossible);
    let path = parse(text("path")?)?;
    let value = operation["value"].clone();
    match text("op")? {
        "add" => add(target, &path, value, left),
        "remove" => remove(target, &path, left).map(drop),
        "replace" => replace(target, &path, value),
        "move" => {
            let moved = remove(target, &parse(text("from")?)?, left)?;
            add(target, &path, moved, left)
        }
        "copy" => {
            let copied = get(target, &parse(text("from")?)?).ok_or(Impossible)?;
            left.copied = left.copied.checked_sub(copied.to_string().len()).ok_or(Impossible)?;
            add(target, &path, copied.clone(), left)
        }
        "test" => {
            // A missing member equals null.
            let equal = get(target, &path).map_or(value.is_null(), |found| *found == value);
            equal.then_some(()).ok_or(Impossible)
        }
        _ => Err(Impossible),
    }
}

fn parse(pointer: &str) -> Result<Vec<String>> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer.strip_prefix('/').ok_or(Impossible)?;
    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

fn get<'a>(target: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(target, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(list) => list.get(index(part, list.len())?),
        _ => None,
    })
}

/// Negative indices count from the end.
fn index(part: &str, length: usize) -> Option<usize> {
    let number: i64 = part.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if number < 0 { number + length } else { number }).ok()
}

fn parent<'a, 'p>(target: &'a mut Value, path: &'p [String]) -> Result<(&'a mut Value, &'p str)> {
    let (end, above) = path.split_last().ok_or(Impossible)?;
    let found = above.iter().try_fold(target, |value, part| match value {
        Value::Object(map) => map.get_mut(part),
        Value::Array(list) => {
            let at = index(part, list.len())?;
            list.get_mut(at)
        }
        _ => None,
    });
    Ok((found.ok_or(Impossible)?, end))
}

fn add(target: &mut Value, path: &[String], value: Value, left: &mut Left) -> Result<()> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match parent(target, path)? {
        (Value::Object(map), key) => {
            map.insert(key.to_owned(), value);
        }
        (Value::Array(list), "-") => list.push(value),
        (Value::Array(list), part) => {
            let at = index(part, list.len() + usize::from(part.starts_with('-'))).ok_or(Impossible)?;
            if at > list.len() {
                return Err(Impossible);
            }
            left.shift(list.len() - at)?;
            list.insert(at, value);
        }
        _ => return Err(Impossible),
    }
    Ok(())
}

fn replace(target: &mut Value, path: &[String], value: Value) -> Result<()> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match parent(target, path)? {
        (Value::Object(map), key) => {
            map.insert(key.to_owned(), value);
        }
        (Value::Array(list), part) => {
            let at = index(part, list.len()).ok_or(Impossible)?;
            *list.get_mut(at).ok_or(Impossible)? = value;
        }
        _ => return Err(Impossible),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &[String], left: &mut Left) -> Result<Value> {
    match parent(target, path)? {
        (Value::Object(map), key) => map.remove(key).ok_or(Impossible),
        (Value::Array(list), part) => {
            let at = index(part, list.len()).filter(|at| *at < list.len()).ok_or(Impossible)?;
            left.shift(list.len() - at)?;
            Ok(list.remove(at))
        }
        _ => Err(Impossible),
    }
}
