//! Keeps the conventions of CONTRIBUTING.md: plain language, short files and functions, and one definition per constant.
//!
//! The rules are data: `language.toml` has words and phrases with what to write instead, and `allow.toml` has the exceptions, each
//! with a reason. An exception that no longer applies fails, so the list only gets shorter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an unreadable file fails the test")]

mod allow;
mod language;
mod project;
mod prose;
mod rust;
mod shape;

use allow::assert_none;
use language::Language;
use project::PROJECT;

#[test]
fn phrases_are_plain_english() {
    assert_none("phrase", Language::load().phrases(&PROJECT));
}

#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    assert_none("opening", Language::load().openings(&PROJECT));
}

#[test]
fn doc_comments_say_more_than_the_name() {
    assert_none("short-doc", language::short_docs(&PROJECT));
}

#[test]
fn identifiers_use_the_glossary() {
    assert_none("identifier", Language::load().identifiers(&PROJECT));
}

#[test]
fn test_names_state_the_behavior() {
    assert_none("test-name", Language::load().test_names(&PROJECT));
}

#[test]
fn predicates_return_bool() {
    assert_none("predicate", shape::predicates(&PROJECT));
}

#[test]
fn files_and_functions_are_short() {
    assert_none("length", shape::lengths(&PROJECT));
}

#[test]
fn constants_are_defined_once() {
    assert_none("constant", shape::duplicate_constants(&PROJECT));
}
