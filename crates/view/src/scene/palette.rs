//! The colours, for those who cannot read a style sheet: the canvas painters
//! and the written SVG file.

/// Light or dark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The colours of a theme by their names in `palette.css`, without the dashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Palette {
    colours: Vec<(&'static str, &'static str)>,
}

/// The style sheet that the page reads as well.
const SHEET: &str = include_str!("palette.css");

impl Palette {
    /// The colours of a theme.
    ///
    /// ```
    /// use zswap_view::scene::{Palette, Theme};
    /// assert_eq!(Palette::of(Theme::Dark).get("pane"), "#191f24");
    /// ```
    #[must_use]
    pub fn of(theme: Theme) -> Palette {
        let pair = |line: &'static str| {
            let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
            let pair = value.trim().strip_prefix("light-dark(")?;
            let (light, dark) = pair.strip_suffix(");")?.split_once(", ")?;
            let colour = match theme {
                Theme::Light => light,
                Theme::Dark => dark,
            };
            Some((name, colour))
        };
        Palette {
            colours: SHEET.lines().filter_map(pair).collect(),
        }
    }

    /// A colour by its name; that of text if there is none of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> &'static str {
        let named = |name| self.colours.iter().find(|colour| colour.0 == name);
        let colour = named(name).or_else(|| named("ink"));
        colour.map_or("currentColor", |colour| colour.1)
    }

    /// A style sheet with its `var(--name)` replaced by the colours.
    pub(crate) fn resolve(&self, sheet: &str) -> String {
        let mut resolved = sheet.to_owned();
        for (name, colour) in &self.colours {
            resolved = resolved.replace(&format!("var(--{name})"), colour);
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_sheet_is_a_colour_of_both_themes() {
        let lines = SHEET.lines().filter(|line| line.contains("--")).count();
        for theme in [Theme::Light, Theme::Dark] {
            assert_eq!(Palette::of(theme).colours.len(), lines);
        }
    }
}
