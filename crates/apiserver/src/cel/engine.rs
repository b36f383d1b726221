//! Reads and evaluates expressions with the crates `cel` and `kube-cel`.
//!
//! Guarantees: what a tree is made of is in `language`. A tree calls the functions of `functions` in place of the evaluator's own
//! where those have other results than kube-apiserver: members, equality, optional members, sizes and patterns. A panic of the
//! parser or of the evaluator is one more reason not to judge.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, Value as Cel};
use serde_json::Value;

use super::cost::{self, Extent};
use super::language::{growth, takes_zone};
use super::values::of_json;
use super::{Answer, Budget, NotJudged, Shape, functions, shape};

/// The names of functions that are replaced, and the prefix of what replaces them.
const REPLACED: [&str; 10] = ["_==_", "_!=_", "@in", "_?._", "_[?_]", "size", "string", "int", "matches", "format"];
/// The variable of an admission policy with the others, each of which is a variable here.
const VARIABLES: &str = "variables";
const LONGEST_PATTERN: usize = 512;

/// An expression that was read.
pub struct Tree(IdedExpr);

/// A value of a variable, or a result.
pub struct Bound {
    value: Cel,
    extent: Extent,
}

/// The value of a variable.
pub fn bind(value: &Value, shape: Option<&dyn Shape>) -> Bound {
    let value = of_json(value, shape);
    Bound { extent: Extent::of(&value), value }
}

/// A result as its reader needs it.
pub fn answer(bound: &Bound) -> Answer {
    match &bound.value {
        Cel::Bool(value) => Answer::Bool(*value),
        Cel::String(text) => Answer::Text(text.to_string()),
        _ => Answer::Other,
    }
}

/// Reads an expression.
///
/// # Errors
/// When it cannot be parsed, or has something that is not evaluated here.
pub fn read(text: &str) -> Result<Tree, NotJudged> {
    shape::judge(text)?;
    let parsed = catch_unwind(|| Parser::new().enable_optional_syntax(true).parse(text));
    let Ok(Ok(mut tree)) = parsed else { return Err(NotJudged("it cannot be parsed here".to_owned())) };
    prepare(&mut tree)?;
    Ok(Tree(tree))
}

/// Evaluates an expression.
///
/// # Errors
/// When it may take too many steps, or has no result.
pub fn evaluate(
    Tree(tree): &Tree,
    variables: &BTreeMap<String, Result<Bound, NotJudged>>,
    budget: &mut Budget,
) -> Result<Bound, NotJudged> {
    let mut sizes = cost::Sizes::new();
    for (name, bound) in variables {
        match bound {
            Ok(bound) => drop(sizes.insert(name.clone(), bound.extent)),
            Err(reason) if mentions(tree, name) => return Err(NotJudged(format!("{name}: {reason}"))),
            Err(_) => {}
        }
    }
    budget.spend(cost::steps(tree, &mut sizes)?)?;
    functions::with_library(|library| {
        let mut context = library.new_inner_scope();
        for (name, bound) in variables {
            if let Ok(bound) = bound {
                context.add_variable_from_value(name.as_str(), bound.value.clone());
            }
        }
        resolve(tree, &context)
    })
}

fn resolve(tree: &IdedExpr, context: &Context<'_>) -> Result<Bound, NotJudged> {
    match catch_unwind(AssertUnwindSafe(|| Cel::resolve(tree, context))) {
        Ok(Ok(value)) => Ok(Bound { extent: Extent::of(&value), value }),
        Ok(Err(error)) => Err(NotJudged(words(&error.to_string()))),
        Err(_) => Err(NotJudged("it cannot be evaluated here".to_owned())),
    }
}

/// The first line of an error, short.
fn words(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let short: String = line.chars().take(100).collect();
    let end = if short.len() < line.len() { "…" } else { "" };
    format!("it has no result here: {short}{end}")
}

/// Whether a tree has a variable of this name.
fn mentions(tree: &IdedExpr, name: &str) -> bool {
    let mut found = false;
    each(tree, &mut |part| found |= matches!(&part.expr, Expr::Ident(ident) if ident == name));
    found
}

/// Calls `look` for a tree and all that is in it.
fn each(tree: &IdedExpr, look: &mut dyn FnMut(&IdedExpr)) {
    look(tree);
    match &tree.expr {
        Expr::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).for_each(|part| each(part, look));
        }
        Expr::List(list) => list.elements.iter().for_each(|part| each(part, look)),
        Expr::Select(select) => each(&select.operand, look),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    each(&entry.key, look);
                    each(&entry.value, look);
                }
            }
        }
        Expr::Comprehension(of) => {
            for part in [&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result] {
                each(part, look);
            }
        }
        _ => {}
    }
}

/// Puts the functions of this module in place of the evaluator's, and refuses what is not evaluated here.
fn prepare(tree: &mut IdedExpr) -> Result<(), NotJudged> {
    match &mut tree.expr {
        Expr::Select(select) => {
            if let (Expr::Ident(ident), false) = (&select.operand.expr, select.test)
                && ident == VARIABLES
            {
                tree.expr = Expr::Ident(format!("{VARIABLES}.{}", select.field));
                return Ok(());
            }
            prepare(&mut select.operand)?;
            let function = if select.test { "@has" } else { "@select" };
            let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
            let operand = std::mem::take(&mut *select.operand);
            tree.expr = call(function, vec![operand, IdedExpr { id: 0, expr: field }]);
            Ok(())
        }
        Expr::Call(_) => prepare_call(tree),
        Expr::List(list) => list.elements.iter_mut().try_for_each(prepare),
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
            EntryExpr::MapEntry(entry) => prepare(&mut entry.key).and_then(|()| prepare(&mut entry.value)),
            EntryExpr::StructField(_) => Err(NotJudged("it makes an object of a type".to_owned())),
        }),
        Expr::Comprehension(of) => {
            [&mut of.iter_range, &mut of.accu_init, &mut of.loop_cond, &mut of.loop_step, &mut of.result]
                .into_iter()
                .try_for_each(prepare)
        }
        Expr::Struct(_) => Err(NotJudged("it makes an object of a type, which is not evaluated here".to_owned())),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
    }
}

fn call(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}

fn prepare_call(tree: &mut IdedExpr) -> Result<(), NotJudged> {
    let Expr::Call(found) = &mut tree.expr else { return Ok(()) };
    let name = found.func_name.clone();
    let qualified = found.target.as_ref().and_then(|target| match &target.expr {
        Expr::Ident(prefix) => Some(format!("{prefix}.{name}")).filter(|name| growth(name).is_ok()),
        _ => None,
    });
    if qualified.is_none() {
        growth(&name)?;
        found.target.iter_mut().try_for_each(|target| prepare(target))?;
    }
    if takes_zone(&name) && !found.args.is_empty() {
        return Err(NotJudged(format!("{name} with a time zone is not evaluated here")));
    }
    if name == "matches" {
        check_pattern(found.args.last())?;
    }
    found.args.iter_mut().try_for_each(prepare)?;
    if name == "quantity" || name == "isQuantity" {
        found.args = std::mem::take(&mut found.args)
            .into_iter()
            .map(|argument| IdedExpr { id: 0, expr: call("@short", vec![argument]) })
            .collect();
    }
    if REPLACED.contains(&name.as_str()) {
        let target = found.target.take().map(|target| *target);
        let args = target.into_iter().chain(std::mem::take(&mut found.args)).collect();
        tree.expr = call(&format!("{}{name}", functions::OWN), args);
    }
    Ok(())
}

/// A pattern is written in the expression, and small when it is prepared.
fn check_pattern(pattern: Option<&IdedExpr>) -> Result<(), NotJudged> {
    let Some(Expr::Literal(LiteralValue::String(pattern))) = pattern.map(|pattern| &pattern.expr) else {
        return Err(NotJudged("a pattern that is no literal is not evaluated here".to_owned()));
    };
    let pattern = pattern.inner();
    let is_unknown = functions::is_read_otherwise(pattern) || functions::regex(pattern).is_none();
    if pattern.len() > LONGEST_PATTERN || is_unknown {
        return Err(NotJudged(
            "it has a pattern that is too large, or that RE2 refuses or may read otherwise".to_owned(),
        ));
    }
    Ok(())
}
