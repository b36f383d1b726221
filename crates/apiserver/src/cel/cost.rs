//! How many steps an expression can take at most, from its shape and the sizes of its variables.
//!
//! Guarantee: an evaluation visits no more values, and copies no more of them, than the bound says; a step is a value or 64 bytes of
//! a text. The work of most functions grows with the sum of what they look at, so that an item of a list counts with its share of the
//! list; where each item is compared with each, it counts as the whole list (`peak`). Pure.
//!
//! Matches k8s.io/apiserver `pkg/cel/library/cost.go` in what it counts, not in its numbers: the evaluator here copies a value
//! whenever it takes a part of it.

use std::collections::BTreeMap;

use kube_cel::cel::Value as Cel;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::objects::OptionalValue;

use super::NotJudged;
use super::language::{Growth, growth};

/// The bytes of a text that count as a value.
const BYTES: u64 = 64;
/// What it costs to prepare a pattern.
const PATTERN: u64 = 500;

/// How large a value is at most, with all that is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The items of the longest list or map.
    pub items: u64,
    /// The bytes of the longest text.
    pub bytes: u64,
    /// The steps to copy it; of an item of a list, those of all items together, shared among them.
    pub weight: u64,
    /// The steps to copy it, whichever item it is.
    pub peak: u64,
}

impl Extent {
    const SCALAR: Self = Self { items: 0, bytes: 32, weight: 2, peak: 2 };

    fn text(bytes: u64) -> Self {
        let weight = (bytes / BYTES).saturating_add(1);
        Self { items: 0, bytes, weight, peak: weight }
    }

    /// Of a value.
    pub fn of(value: &Cel) -> Self {
        match value {
            Cel::String(text) => Self::text(text.len() as u64),
            Cel::Bytes(bytes) => Self::text(bytes.len() as u64),
            Cel::List(items) => Self::collection(items.len(), items.iter().map(Self::of)),
            Cel::Map(map) => {
                let of = |value| Self::of(value).and(Self::text(256));
                Self::collection(map.map.len(), map.map.values().map(of))
            }
            Cel::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>().and_then(OptionalValue::value) {
                Some(value) => Self::of(value).and(Self::SCALAR),
                None => Self::text(256),
            },
            _ => Self::SCALAR,
        }
    }

    fn collection(items: usize, of: impl Iterator<Item = Self>) -> Self {
        let empty = Self { items: items as u64, bytes: 0, weight: 1, peak: 1 };
        of.fold(empty, Self::beside)
    }

    /// Both, as items of one list.
    fn beside(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            bytes: self.bytes.max(other.bytes),
            weight: self.weight.saturating_add(other.weight),
            peak: self.peak.saturating_add(other.peak),
        }
    }

    /// Both, one behind the other.
    fn and(self, other: Self) -> Self {
        Self {
            items: self.items.saturating_add(other.items),
            bytes: self.bytes.saturating_add(other.bytes),
            weight: self.weight.saturating_add(other.weight),
            peak: self.peak.saturating_add(other.peak),
        }
    }

    /// A list of so many of it.
    fn times(self, times: u64) -> Self {
        let weight = self.weight.saturating_mul(times).saturating_add(1);
        Self { items: self.items.max(times), weight, peak: self.peak.max(weight), ..self }
    }

    /// One of its items, if it has so many.
    fn item(self, of: u64) -> Self {
        Self { weight: (self.weight / of.max(1)).saturating_add(1), ..self }
    }
}

/// A part of an expression: how large its value is at most, and the steps to have it.
#[derive(Clone, Copy, Default)]
struct Bound {
    extent: Extent,
    steps: u64,
}

/// The sizes of variables.
pub type Sizes = BTreeMap<String, Extent>;

/// The most steps of an expression.
///
/// # Errors
/// When it has a part that is not evaluated here.
pub fn steps(tree: &IdedExpr, sizes: &mut Sizes) -> Result<u64, NotJudged> {
    bound(tree, sizes).map(|bound| bound.steps)
}

fn bound(tree: &IdedExpr, sizes: &mut Sizes) -> Result<Bound, NotJudged> {
    match &tree.expr {
        Expr::Literal(LiteralValue::String(text)) => Ok(whole(Extent::text(text.inner().len() as u64))),
        Expr::Literal(LiteralValue::Bytes(bytes)) => Ok(whole(Extent::text(bytes.inner().len() as u64))),
        Expr::Literal(_) => Ok(whole(Extent::SCALAR)),
        Expr::Ident(name) => Ok(whole(sizes.get(name).copied().unwrap_or(Extent::SCALAR))),
        Expr::Select(select) => {
            let of = bound(&select.operand, sizes)?;
            Ok(Bound { steps: of.steps.saturating_add(of.extent.weight), ..of })
        }
        Expr::List(list) => {
            let parts = list.elements.iter().map(|element| bound(element, sizes)).collect::<Result<Vec<_>, _>>()?;
            Ok(collected(&parts))
        }
        Expr::Map(map) => {
            let mut parts = Vec::new();
            for entry in &map.entries {
                let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(unknown()) };
                parts.extend([bound(&entry.key, sizes)?, bound(&entry.value, sizes)?]);
            }
            Ok(collected(&parts))
        }
        Expr::Call(call) => called(call, sizes),
        Expr::Comprehension(comprehension) => repeated(comprehension, sizes),
        Expr::Struct(_) | Expr::Unspecified => Err(unknown()),
    }
}

fn unknown() -> NotJudged {
    NotJudged("it makes an object of a type, which is not evaluated here".to_owned())
}

fn whole(extent: Extent) -> Bound {
    Bound { extent, steps: extent.weight }
}

fn collected(parts: &[Bound]) -> Bound {
    let extent = Extent::collection(parts.len(), parts.iter().map(|part| part.extent));
    let steps = parts.iter().fold(0_u64, |steps, part| steps.saturating_add(part.steps));
    Bound { extent, steps: steps.saturating_add(extent.weight) }
}

fn called(call: &CallExpr, sizes: &mut Sizes) -> Result<Bound, NotJudged> {
    let name = call.func_name.strip_prefix("@own:").unwrap_or(&call.func_name);
    let mut parts = Vec::new();
    let mut qualified = None;
    if let Some(target) = &call.target {
        match &target.expr {
            Expr::Ident(prefix) if growth(&format!("{prefix}.{name}")).is_ok() => {
                qualified = Some(format!("{prefix}.{name}"));
            }
            _ => parts.push(bound(target, sizes)?),
        }
    }
    for argument in &call.args {
        parts.push(bound(argument, sizes)?);
    }
    let of = parts.iter().fold(Extent::default(), |sum, part| sum.and(part.extent));
    let before = parts.iter().fold(1_u64, |steps, part| steps.saturating_add(part.steps));
    let extent = |index: usize| parts.get(index).map_or(Extent::default(), |part| part.extent);
    let (result, work) = match growth(qualified.as_deref().unwrap_or(name))? {
        Growth::Scalar => (Extent::SCALAR, of.weight),
        Growth::Linear => (of, of.weight),
        Growth::Letters => {
            let items = of.bytes.saturating_add(1).max(of.items);
            let weight = of.weight.saturating_add(of.bytes.saturating_mul(2));
            (Extent { items, weight, peak: of.peak.saturating_add(of.bytes.saturating_mul(2)), ..of }, weight)
        }
        Growth::Pairs => (of, of.peak.saturating_mul(of.peak)),
        Growth::Product => {
            let text = extent(0);
            let with = parts.iter().skip(1).map(|part| part.extent.bytes).max().unwrap_or_default();
            let times = text.bytes.max(text.items).saturating_add(1);
            let bytes = times.saturating_mul(with.saturating_add(1)).saturating_add(text.peak.saturating_mul(BYTES));
            let result = Extent { items: of.items, ..Extent::text(bytes) };
            (result, result.weight.saturating_add(of.weight))
        }
        Growth::Pattern => {
            let work = (extent(0).bytes / BYTES).saturating_add(1).saturating_mul(extent(1).bytes.saturating_add(1));
            (Extent::SCALAR, work.saturating_add(PATTERN))
        }
    };
    Ok(Bound { extent: result, steps: before.saturating_add(work) })
}

/// Whether a part is a number, a truth value, or the like.
fn is_scalar(tree: &IdedExpr) -> bool {
    matches!(&tree.expr, Expr::Call(call) if growth(&call.func_name) == Ok(Growth::Scalar))
}

/// A macro: its step is taken once for each item of the range.
fn repeated(macro_: &ComprehensionExpr, sizes: &mut Sizes) -> Result<Bound, NotJudged> {
    let range = bound(&macro_.iter_range, sizes)?;
    let start = bound(&macro_.accu_init, sizes)?;
    let times = range.extent.items;
    let names = [Some(&macro_.iter_var), macro_.iter_var2.as_ref(), Some(&macro_.accu_var)];
    let hidden: Vec<(String, Option<Extent>)> =
        names.into_iter().flatten().map(|name| (name.clone(), sizes.get(name).copied())).collect();
    for name in names[..2].iter().flatten() {
        // A key of a map is a text.
        sizes.insert((*name).clone(), range.extent.item(times).beside(Extent::text(256)));
    }
    // What a step adds, and then what it costs when everything was added.
    sizes.insert(macro_.accu_var.clone(), Extent::default());
    let added = bound(&macro_.loop_step, sizes)?.extent;
    let grown = if is_scalar(&macro_.loop_step) { Extent::SCALAR } else { start.extent.beside(added.times(times)) };
    sizes.insert(macro_.accu_var.clone(), grown);
    let each = bound(&macro_.loop_cond, sizes)?.steps.saturating_add(bound(&macro_.loop_step, sizes)?.steps);
    let result = bound(&macro_.result, sizes)?;
    for (name, extent) in hidden {
        match extent {
            Some(extent) => drop(sizes.insert(name, extent)),
            None => drop(sizes.remove(&name)),
        }
    }
    let steps = [range.steps, range.extent.weight, start.steps, each.saturating_mul(times), result.steps];
    Ok(Bound { extent: result.extent, steps: steps.iter().fold(0, |sum, steps| sum.saturating_add(*steps)) })
}
