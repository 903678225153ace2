//! What the checks need of a Rust file: its names, doc comments, functions, constants, and text.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, Meta, Signature, Type,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::tidy::prose::Prose;

/// A doc comment and the item that it documents.
pub struct Doc {
    pub line: usize,
    pub text: String,
    pub name: String,
}

/// The definition of a name.
pub struct Definition {
    pub line: usize,
    pub name: String,
}

pub struct Function {
    pub line: usize,
    pub name: String,
    /// From the signature to the closing brace.
    pub lines: usize,
    pub is_test: bool,
    pub returns_bool: bool,
}

pub struct Constant {
    pub line: usize,
    pub name: String,
    /// Type and value as tokens.
    pub value: String,
}

/// The parts of one file.
#[derive(Default)]
pub struct RustFile {
    pub docs: Vec<Doc>,
    pub definitions: Vec<Definition>,
    pub functions: Vec<Function>,
    pub constants: Vec<Constant>,
    /// Comments, and string literals of two words or more.
    pub prose: Vec<Prose>,
}

impl RustFile {
    pub fn parse(text: &str) -> syn::Result<Self> {
        let file = syn::parse_file(text)?;
        let mut found = Self::default();
        found.prose.extend(text.lines().enumerate().filter_map(|(number, line)| Some(Prose::new(number + 1, comment(line)?))));
        found.visit_file(&file);
        Ok(found)
    }

    fn define(&mut self, name: &Ident, attributes: &[Attribute]) {
        let line = name.span().start().line;
        self.definitions.push(Definition { line, name: name.to_string() });
        let text = doc(attributes);
        if !text.is_empty() {
            let line = attributes.iter().map(|attribute| attribute.span().start().line).min().unwrap_or(line);
            self.docs.push(Doc { line, text, name: name.to_string() });
        }
    }

    fn function(&mut self, signature: &Signature, attributes: &[Attribute], lines: usize) {
        self.define(&signature.ident, attributes);
        let is_test =
            attributes.iter().any(|attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "test"));
        let output = signature.output.to_token_stream().to_string();
        let returns_bool = output == "-> bool" || output.ends_with("Result < bool >") || output.contains("Result < bool ,");
        let (line, name) = (signature.ident.span().start().line, signature.ident.to_string());
        self.functions.push(Function { line, name, lines, is_test, returns_bool });
    }

    fn constant(&mut self, name: &Ident, kind: &Type, value: &Expr) {
        let value = format!("{} = {}", kind.to_token_stream(), value.to_token_stream());
        self.constants.push(Constant { line: name.span().start().line, name: name.to_string(), value });
    }

    fn string(&mut self, line: usize, text: &str) {
        if text.trim().contains(' ') {
            self.prose.push(Prose::new(line, text));
        }
    }

    /// Finds the string literals among the arguments of a macro, and its doc comments.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal.clone()) {
                        self.string(literal.span().start().line, &text.value());
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// The lines from the first to the last token.
fn lines(item: &impl Spanned) -> usize {
    item.span().end().line - item.span().start().line + 1
}

/// The text of a `//` comment that is not a doc comment of an item.
fn comment(line: &str) -> Option<&str> {
    let start = line.match_indices("//").map(|(at, _)| at).find(|at| {
        let before = &line[..*at];
        !before.ends_with(':') && before.matches('"').count().is_multiple_of(2)
    })?;
    let text = &line[start..];
    (!text.starts_with("///")).then_some(text.trim_start_matches(['/', '!']))
}

/// The text of all doc comments of an item, on one line.
fn doc(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            text = format!("{text} {}", line.value().trim());
        }
    }
    text.trim().to_owned()
}

impl<'ast> Visit<'ast> for RustFile {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.attrs, lines(&item.block));
        visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.attrs, lines(&item.block));
        visit::visit_impl_item_fn(self, item);
    }
    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, &item.attrs, lines(item));
        visit::visit_trait_item_fn(self, item);
    }
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_struct(self, item);
    }
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_enum(self, item);
    }
    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.define(&item.ident, &item.attrs);
        visit::visit_variant(self, item);
    }
    fn visit_field(&mut self, item: &'ast syn::Field) {
        if let Some(name) = &item.ident {
            self.define(name, &item.attrs);
        }
        visit::visit_field(self, item);
    }
    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_trait(self, item);
    }
    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_type(self, item);
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_mod(self, item);
    }
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.define(&item.ident, &item.attrs);
        self.constant(&item.ident, &item.ty, &item.expr);
        visit::visit_item_const(self, item);
    }
    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.define(&item.ident, &item.attrs);
        visit::visit_impl_item_const(self, item);
    }
    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.define(&item.ident, &item.attrs);
        visit::visit_item_static(self, item);
    }
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.define(&pattern.ident, &[]);
        visit::visit_pat_ident(self, pattern);
    }
    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.string(literal.span().start().line, &literal.value());
    }
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
    }
}
