//! The words in the tags of a template. A template reads a value only by its name, so other values need not be computed.

use std::{collections::BTreeSet, ops::Range};

/// The words in tags. A word in a string counts too, which only costs time.
#[derive(Clone, Debug, Default)]
pub struct Words(BTreeSet<Box<str>>);

impl Words {
    pub(super) fn of(source: &str, tags: &[Range<usize>]) -> Self {
        let texts = tags.iter().filter_map(|tag| source.get(tag.clone()));
        let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
        Self(words.filter(|word| !word.is_empty()).map(Box::from).collect())
    }

    /// Returns whether a template can read the field `path`, such as `token.symbol`, or a part of it.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains(path.split('.').next().unwrap_or(path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::ContextTree;
    use super::super::{SampleScope, Template, TemplateEngine, extra_names};
    use crate::{on::On, vocabulary::Vocabulary};

    /// Renders a template with the values of its words, and with all values.
    fn both(on: On, source: &str) -> [Result<String, String>; 2] {
        let (template, findings) = Template::check(&TemplateEngine::new(), source, on, None);
        assert!(findings.iter().all(|finding| !finding.is_error), "{source}: {findings:?}");
        let sample = SampleScope::of(on, true, &template.windows);
        let render = |is_read: &dyn Fn(&str) -> bool| {
            let mut tree = ContextTree::of(&sample.scope(), is_read);
            tree.put_labels(&[], &Default::default());
            template.annotation(&tree.into_value())
        };
        [render(&|name| template.words.has(name)), render(&|_| true)]
    }

    /// Each field of each kind of rule is rendered as if all others were computed too.
    #[test]
    fn every_name_has_its_value() {
        let mut rendered = 0;
        for on in On::all() {
            let vocabulary = Vocabulary::of(on);
            let functions = vocabulary.functions();
            let names = vocabulary.all().into_iter().chain(extra_names(on, true));
            for name in names.filter(|name| !functions.contains(name) && !name.starts_with("position")) {
                let source = format!("{{{{ {name} | json }}}}");
                let (_, findings) = Template::check(&TemplateEngine::new(), &source, on, None);
                if findings.iter().any(|finding| finding.is_error) {
                    continue;
                }
                let [read, all] = both(on, &source);
                assert!(all.is_ok(), "{on:?}: {source}: {all:?}");
                assert_eq!(read, all, "{on:?}: {source}");
                rendered += 1;
            }
        }
        assert!(rendered > 300, "{rendered}");
    }

    #[test]
    fn names_are_found_wherever_a_template_reads_them() {
        for (on, source) in [
            (On::Record(model::Resource::Unlock), "{% if false %}{% set tokenSymbol = 1 %}{% endif %}{{ tokenSymbol }}"),
            (
                On::Record(model::Resource::Unlock),
                "{% for part in allocations %}{{ part.cliffAmount }},{% endfor %}{{token['symbol']}}",
            ),
            (
                On::Record(model::Resource::Unlock),
                "{%-set value=cliffValue-%}{{-value|usd-}} {{ record.cliffUnlocks.cliffAmount }}",
            ),
            (On::Token, "{{ ahead('30d').value | usd }} {{ share(\"portfolio\") }} {{ burned(\"7d\").count }}"),
            (
                On::Portfolio,
                "{% for token in tokens %}{{ token.symbol }} {{ token.ahead('30d').value }}{% endfor %} of {{ tokenCount }}",
            ),
        ] {
            let [read, all] = both(on, source);
            assert!(all.is_ok(), "{source}: {all:?}");
            assert_eq!(read, all, "{source}");
        }
    }
}
