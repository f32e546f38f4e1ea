//! The page's HTML: from what Trunk reads to what a browser reads.
//!
//! One `index.html` serves both tools. It marks its assets the way Trunk has
//! them, `<link data-trunk rel="css" href="www/style.css">`; this module does
//! the same with these links as Trunk does, but for adding inline scripts,
//! which a strict content security policy forbids. The page starts the
//! application by a module of its own instead.

use anyhow::{Context, Result, bail};
use html5gum::emitters::default::{DefaultEmitter, StartTag};
use html5gum::{Token, Tokenizer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::site;

/// A page rewritten, and the files it needs.
pub struct Page {
    /// The HTML for the browser.
    pub html: String,
    /// Files and folders to copy.
    pub copies: Vec<Copy>,
}

/// One file or folder of the repository that belongs to the site.
#[derive(Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where it is, from the root of the repository.
    pub from: String,
    /// Where it goes, from the root of the site.
    pub to: String,
}

/// Replaces the `data-trunk` links of `html` by what they stand for.
pub fn rewrite(html: &str) -> Result<Page> {
    let mut page = Page {
        html: String::new(),
        copies: Vec::new(),
    };
    let mut done = 0;
    for tag in tags(html) {
        if tag.name != "link" || !tag.attributes.contains_key("data-trunk") {
            continue;
        }
        let (replacement, copy) =
            replace(&tag).with_context(|| format!("{}: {}", site::INDEX, &html[tag.at.clone()]))?;
        page.html.push_str(&html[done..tag.at.start]);
        page.html.push_str(&replacement);
        page.copies.extend(copy);
        done = tag.at.end;
        if replacement.is_empty() && html[done..].starts_with('\n') {
            done += 1;
        }
    }
    page.html.push_str(&html[done..]);
    Ok(page)
}

/// The files of the site that `html` makes a browser load, in order.
pub fn references(html: &str) -> Vec<String> {
    const LOADED: [&str; 5] = ["stylesheet", "modulepreload", "preload", "icon", "manifest"];
    let mut files = Vec::new();
    for tag in tags(html) {
        let file = match tag.name.as_str() {
            "script" | "img" | "iframe" => tag.attributes.get("src"),
            "link" if LOADED.contains(&tag.attribute("rel")) => tag.attributes.get("href"),
            _ => None,
        };
        files.extend(file.filter(|file| is_relative(file)).cloned());
    }
    files
}

/// Whether `url` means a file of the site.
pub fn is_relative(url: &str) -> bool {
    !url.is_empty() && !url.starts_with(['/', '#']) && !url.contains(':')
}

struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
    at: Range<usize>,
}

impl Tag {
    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

fn tags(html: &str) -> Vec<Tag> {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter)
        .flatten()
        .filter_map(|token| match token {
            Token::StartTag(tag) => Some(convert(&tag)),
            _ => None,
        })
        .collect()
}

fn convert(tag: &StartTag<usize>) -> Tag {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let attributes = tag.attributes.iter();
    Tag {
        name: text(&tag.name),
        attributes: attributes.map(|(k, v)| (text(k), text(v))).collect(),
        at: tag.span.start..tag.span.end,
    }
}

/// What stands in the page instead of a `data-trunk` link, and what it copies.
fn replace(tag: &Tag) -> Result<(String, Option<Copy>)> {
    let from = tag.attribute("href").to_owned();
    let rel = tag.attribute("rel");
    if from.is_empty() {
        bail!("a data-trunk link takes an href");
    }
    if rel == "rust" {
        // A program that is not the page's own is loaded when it is needed.
        let is_page = !tag.attributes.contains_key("data-type");
        return Ok((if is_page { preloads() } else { String::new() }, None));
    }
    let name = Path::new(&from)
        .file_name()
        .context("the href names no file")?
        .to_string_lossy();
    let to = match tag.attribute("data-target-path") {
        "" => name.into_owned(),
        folder if rel == "copy-dir" => folder.to_owned(),
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    };
    let html = match rel {
        "css" => format!(r#"<link rel="stylesheet" href="./{to}">"#),
        "icon" => format!(r#"<link rel="icon" href="./{to}">"#),
        "copy-file" | "copy-dir" => String::new(),
        other => bail!(
            "rel is \"{other}\"; this tool takes rust, css, icon, copy-file and copy-dir \
             (add it to crates/xtask/src/page.rs to use more of Trunk)"
        ),
    };
    Ok((html, Some(Copy { from, to })))
}

/// Lets the browser load the application while it still reads the page.
fn preloads() -> String {
    format!(
        r#"<link rel="modulepreload" href="./{}">
<link rel="preload" href="./{}" as="fetch" type="application/wasm" crossorigin>"#,
        site::APPLICATION_JS,
        site::APPLICATION_WASM
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(html: &str) -> Page {
        rewrite(html).expect("a page this tool takes")
    }

    #[test]
    fn links_of_trunk_become_links_of_the_browser() {
        let page = rewritten(
            "<head>\n<link data-trunk rel=\"css\" href=\"www/style.css\" />\n<title>é</title>\
             <link data-trunk rel='copy-file' href='www/worker.js'></head>",
        );
        assert_eq!(
            page.html,
            "<head>\n<link rel=\"stylesheet\" href=\"./style.css\">\n<title>é</title></head>"
        );
        let copies: Vec<_> = page.copies.iter().map(|c| (&*c.from, &*c.to)).collect();
        assert_eq!(
            copies,
            [
                ("www/style.css", "style.css"),
                ("www/worker.js", "worker.js")
            ]
        );
    }

    #[test]
    fn a_target_path_is_the_folder_of_a_file_and_the_name_of_a_folder() {
        let page = rewritten(
            r#"<link data-trunk rel="copy-dir" href="www/pages" data-target-path="data/pages">
               <link data-trunk rel="copy-file" href="www/a.txt" data-target-path="data">"#,
        );
        let to: Vec<_> = page.copies.iter().map(|c| &*c.to).collect();
        assert_eq!(to, ["data/pages", "data/a.txt"]);
    }

    #[test]
    fn the_application_is_preloaded_and_no_inline_script_appears() {
        let page = rewritten(r#"<link data-trunk rel="rust" href="crates/ui/Cargo.toml">"#);
        assert!(!page.html.contains("<script"));
        assert_eq!(
            references(&page.html),
            ["./zswap-explainer.js", "./zswap-explainer_bg.wasm"]
        );
    }

    #[test]
    fn a_program_beside_the_application_is_not_preloaded() {
        let page = rewritten(
            r#"<link data-trunk rel="rust" href="crates/ui/Cargo.toml" data-type="worker">"#,
        );
        assert_eq!(page.html, "");
        assert!(page.copies.is_empty());
    }

    #[test]
    fn what_is_no_link_of_trunk_stays_as_it_is() {
        let html = "<!-- <link data-trunk rel=css href=x> --><link rel=icon href=i.svg>\
                    <script>\"<link data-trunk rel='css' href='y'>\"</script>";
        let page = rewritten(html);
        assert_eq!(page.html, html);
        assert!(page.copies.is_empty());
    }

    #[test]
    fn an_unknown_kind_of_link_is_named() {
        let error = rewrite(r#"<link data-trunk rel="sass" href="a.scss">"#)
            .err()
            .expect("sass is not supported");
        assert!(format!("{error:#}").contains("rel is \"sass\""));
    }

    #[test]
    fn references_are_the_files_of_the_site_only() {
        let html = r##"<script type="module" src="./loader.js"></script>
            <link rel="canonical" href="https://example.org/"><link rel="stylesheet" href="a.css">
            <img src="data:image/png;base64,AA=="><a href="other.html">x</a><img src="#x">"##;
        assert_eq!(references(html), ["./loader.js", "a.css"]);
    }
}
