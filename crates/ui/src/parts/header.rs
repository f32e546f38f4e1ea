//! The head of the page: its name, the design, the seed, and the colours.

use crate::dom;
use crate::tag::{Tag, tag, with_class};
use web_sys::HtmlInputElement;
use yew::{Callback, Event, TargetCast};
use zswap_lab::Context as Design;
use zswap_view::scene::Theme;

/// Which colours somebody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThemeChoice {
    /// Those of the system.
    System,
    /// Light ones.
    Light,
    /// Dark ones.
    Dark,
}

/// Where the choice is remembered.
const REMEMBERED: &str = "zswap-explainer.theme";

impl ThemeChoice {
    const ALL: [ThemeChoice; 3] = [ThemeChoice::System, ThemeChoice::Light, ThemeChoice::Dark];

    fn name(self) -> &'static str {
        match self {
            ThemeChoice::System => "system",
            ThemeChoice::Light => "light",
            ThemeChoice::Dark => "dark",
        }
    }

    /// The choice made before in this browser. Where nothing can be remembered
    /// the system decides.
    pub fn remembered() -> ThemeChoice {
        let storage = dom::window().and_then(|window| window.local_storage().ok()?);
        let name = storage.and_then(|storage| storage.get_item(REMEMBERED).ok()?);
        let known = |choice: &ThemeChoice| Some(choice.name()) == name.as_deref();
        ThemeChoice::ALL
            .into_iter()
            .find(known)
            .unwrap_or(ThemeChoice::System)
    }

    /// Colours the page, and remembers.
    pub fn apply(self) {
        let Some(window) = dom::window() else {
            return;
        };
        let root = window
            .document()
            .and_then(|document| document.document_element());
        if let Some(root) = root {
            // It fails for names that are none.
            let _ = root.set_attribute("data-theme", self.name());
        }
        if let Ok(Some(storage)) = window.local_storage() {
            // A browser that keeps nothing is no reason to stop.
            let _ = storage.set_item(REMEMBERED, self.name());
        }
    }

    /// Light or dark.
    pub fn effective(self) -> Theme {
        let is_dark = || {
            let query = dom::window()?
                .match_media("(prefers-color-scheme: dark)")
                .ok()??;
            Some(query.matches())
        };
        match self {
            ThemeChoice::Light => Theme::Light,
            ThemeChoice::Dark => Theme::Dark,
            ThemeChoice::System if is_dark() == Some(true) => Theme::Dark,
            ThemeChoice::System => Theme::Light,
        }
    }
}

/// What the head shows and tells.
pub struct Props {
    /// The chosen design.
    pub design: Design,
    /// The seed.
    pub seed: u64,
    /// The chosen colours.
    pub theme: ThemeChoice,
    /// Another design.
    pub on_design: Callback<Design>,
    /// Another seed.
    pub on_seed: Callback<u64>,
    /// Other colours.
    pub on_theme: Callback<ThemeChoice>,
}

/// A design's name on the page.
pub fn design_name(design: Design) -> &'static str {
    match design {
        Design::Shared => "Before",
        Design::Split => "Patch 1",
        Design::Onstack => "Patch 2",
    }
}

/// The head of the page.
pub fn header(props: &Props) -> Tag {
    let on_seed = props.on_seed.clone();
    let current = props.seed;
    let change = Callback::from(move |event: Event| {
        let input: HtmlInputElement = event.target_unchecked_into();
        match input.value().trim().parse() {
            Ok(seed) if seed != current => on_seed.emit(seed),
            Ok(_) => {}
            Err(_) => input.set_value(&current.to_string()),
        }
    });
    let designs = Design::ALL.map(|design| {
        let choose = props.on_design.reform(move |_| design);
        let input = choice("design", design.name(), design == props.design, choose);
        (input, design_name(design))
    });
    let themes = ThemeChoice::ALL.map(|theme| {
        let choose = props.on_theme.reform(move |_| theme);
        let input = choice("theme", theme.name(), theme == props.theme, choose);
        (input, theme_name(theme))
    });
    let seed = tag("input")
        .set("type", "text")
        .set("inputmode", "numeric")
        .set("size", "5")
        .set("autocomplete", "off")
        .set("name", "seed")
        .value(props.seed.to_string())
        .on_change(change);
    tag("header")
        .child(with_class("strong", "brand").text("Zswap Explainer"))
        .child(segmented("designs", "Design of the lock", designs))
        .child(
            with_class("label", "seed")
                .child(tag("span").text("Seed"))
                .child(seed),
        )
        .child(segmented("themes", "Colours", themes))
}

/// Radio buttons that look like the segments of one thing.
fn segmented(class: &str, legend: &'static str, choices: [(Tag, &'static str); 3]) -> Tag {
    let labelled = |(input, words)| tag("label").child(input).child(tag("span").text(words));
    tag("fieldset")
        .class(&["segmented", class])
        .child(tag("legend").text(legend))
        .children(choices.map(labelled))
}

fn theme_name(theme: ThemeChoice) -> &'static str {
    match theme {
        ThemeChoice::System => "Auto",
        ThemeChoice::Light => "Light",
        ThemeChoice::Dark => "Dark",
    }
}

/// The radio button of one of several.
fn choice(
    group: &'static str,
    value: &'static str,
    is_checked: bool,
    choose: Callback<Event>,
) -> Tag {
    tag("input")
        .set("type", "radio")
        .set("name", group)
        .value(value.to_owned())
        .checked(is_checked)
        .on_change(choose)
}
