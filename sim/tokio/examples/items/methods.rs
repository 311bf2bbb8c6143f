//! Reads the methods of types.

use std::collections::BTreeSet;

use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Visibility};

use crate::left_out::{is_left_out, is_left_out_body, is_left_out_macro};

/// A method.
#[derive(Clone)]
pub(crate) struct Method {
    pub(crate) name: String,
    pub(crate) is_refused: bool,
}

/// Methods from the body of a macro.
struct ImplItems(Vec<ImplItem>);

impl Parse for ImplItems {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let is_left_out = is_left_out_body(&input.call(Attribute::parse_inner)?);
        let mut items = Vec::new();
        while !input.is_empty() {
            items.push(input.parse()?);
        }
        if is_left_out {
            items.clear();
        }
        Ok(Self(items))
    }
}

/// Adds the public methods among `items`.
pub(crate) fn collect(items: Vec<ImplItem>, found: &mut Vec<Method>) {
    for item in items {
        match item {
            ImplItem::Fn(method) if !method.attrs.iter().any(is_left_out) => {
                if matches!(method.vis, Visibility::Public(_)) {
                    let name = method.sig.ident.to_string();
                    found.push(Method { name, is_refused: refuses(&method.block) });
                }
            }
            ImplItem::Macro(called) if !called.attrs.iter().any(is_left_out) => {
                let name =
                    called.mac.path.segments.last().map(|step| step.ident.to_string()).unwrap_or_default();
                if is_left_out_macro(&name) {
                    continue;
                }
                let text = called.mac.tokens.to_string();
                match syn::parse_str(&text) {
                    Ok(ImplItems(items)) => collect(items, found),
                    Err(_) if !name.starts_with("cfg_") => found.extend(entries(&name, &text)),
                    Err(_) => {}
                }
            }
            _ => {}
        }
    }
}

/// Returns the methods of a macro with an entry for each, such as `flags! { read => how.read; }`: the names
/// at the beginning of each entry. Those of a macro called `refused` are refused.
fn entries(called: &str, text: &str) -> Vec<Method> {
    let mut seen = BTreeSet::new();
    for entry in text.split(';') {
        // The names end before the first other sign; attributes and comments come before them.
        let entry = entry.rsplit(']').next().unwrap_or(entry);
        let end = entry.find([':', '(', '=']).unwrap_or(entry.len());
        let names = entry[..end].split(',').map(str::trim);
        seen.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    let is_refused = called == "refused";
    seen.into_iter().map(|name| Method { name, is_refused }).collect()
}

/// Finds code that refuses in all cases: the call `refused`, a value of the type `Refused`, a field of that
/// name that is set, or a match without arms, since the call that makes its value is refused.
struct Refusals(bool);

fn is_refusal(path: &syn::Expr) -> bool {
    let syn::Expr::Path(path) = path else { return false };
    path.path.segments.last().is_some_and(|last| last.ident.to_string().eq_ignore_ascii_case("refused"))
}

impl Visit<'_> for Refusals {
    fn visit_expr_if(&mut self, _: &syn::ExprIf) {}

    fn visit_expr_match(&mut self, matched: &syn::ExprMatch) {
        self.0 |= matched.arms.is_empty();
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        self.0 |= is_refusal(&call.func) || call.args.iter().any(is_refusal);
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_assign(&mut self, assigned: &syn::ExprAssign) {
        self.0 |= matches!(&*assigned.left, syn::Expr::Field(field)
            if matches!(&field.member, syn::Member::Named(name) if name == "refused"));
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        self.0 |= called.tokens.to_string().contains("refused");
    }
}

/// Returns true if the code refuses what it is called for.
pub(crate) fn refuses(block: &syn::Block) -> bool {
    let mut refusals = Refusals(false);
    visit::visit_block(&mut refusals, block);
    refusals.0
}
