//! Elements, built by a call per attribute and child.
//!
//! `html!` writes the whole construction of an element out at its place, which
//! is several hundred bytes of the first visit each; a call is some twenty.
//! What is the same for all elements is here, once.
//!
//! Invariant: an element always gets the same number of children. Yew tells
//! children without a key apart by their places, and would build those anew,
//! canvases among them, that change places: what may be absent is a `maybe`.

use std::rc::Rc;
use yew::html::{onchange, onclick, oninput};
use yew::prelude::*;
use yew::virtual_dom::{Listener, VTag};

/// An element in the making.
pub struct Tag(Box<VTag>);

/// A new element.
pub fn tag(name: &'static str) -> Tag {
    Tag(Box::new(VTag::new(name)))
}

/// A new element of a class.
pub fn with_class(name: &'static str, class: &'static str) -> Tag {
    tag(name).set("class", class)
}

/// The places of children that are one after the other without an element of
/// their own around them.
pub fn list(children: impl IntoIterator<Item = Html>) -> Html {
    Html::from_iter(children.into_iter().collect::<Vec<Html>>())
}

/// Those of `names` that are not empty, as one class attribute.
pub fn classes(names: &[&str]) -> String {
    let mut classes = String::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        if !classes.is_empty() {
            classes.push(' ');
        }
        classes += name;
    }
    classes
}

/// `name` if it applies, for [`classes`].
pub fn class_if(applies: bool, name: &'static str) -> &'static str {
    if applies { name } else { "" }
}

impl Tag {
    /// Sets an attribute. The value and whether it is checked are an input's
    /// properties, and have methods of their own.
    pub fn set(mut self, name: &'static str, value: impl Into<AttrValue>) -> Tag {
        self.0.add_attribute(name, value);
        self
    }

    /// Sets an attribute to what it has to be by itself.
    pub fn set_some(self, name: &'static str, value: Option<String>) -> Tag {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// Sets the class, if there is one.
    pub fn class(self, names: &[&str]) -> Tag {
        let class = classes(names);
        self.set_some("class", (!class.is_empty()).then_some(class))
    }

    /// Sets the value of an input.
    pub fn value(mut self, value: String) -> Tag {
        self.0.set_value(AttrValue::from(value));
        self
    }

    /// Sets whether an input is checked.
    pub fn checked(mut self, is_checked: bool) -> Tag {
        self.0.set_checked(is_checked);
        self
    }

    /// Tells `node` where the element is.
    pub fn at(mut self, node: &NodeRef) -> Tag {
        self.0.node_ref = node.clone();
        self
    }

    /// Makes it the same element as the one with this key before.
    pub fn key(mut self, key: &str) -> Tag {
        self.0.key = Some(key.into());
        self
    }

    /// Adds a child.
    pub fn child(mut self, child: impl Into<Html>) -> Tag {
        self.0.add_child(child.into());
        self
    }

    /// Adds the place of a child, which may be empty.
    pub fn maybe(self, child: Option<Tag>) -> Tag {
        self.child(child.map_or_else(Html::default, Html::from))
    }

    /// Adds text.
    pub fn text(self, words: impl Into<AttrValue>) -> Tag {
        self.child(yew::virtual_dom::VText::new(words))
    }

    /// Adds these children, each of which has a key, and no others.
    pub fn keyed(mut self, children: impl IntoIterator<Item = Tag>) -> Tag {
        self.0.add_children(children.into_iter().map(Html::from));
        self
    }

    /// Adds one place with all these children.
    pub fn children(self, children: impl IntoIterator<Item = Tag>) -> Tag {
        self.child(list(children.into_iter().map(Html::from)))
    }

    /// Reacts to clicks.
    pub fn on_click(self, react: Callback<MouseEvent>) -> Tag {
        self.listen(Rc::new(onclick::Wrapper::new(react)))
    }

    /// Reacts to another choice.
    pub fn on_change(self, react: Callback<Event>) -> Tag {
        self.listen(Rc::new(onchange::Wrapper::new(react)))
    }

    /// Reacts to every move of a slider.
    pub fn on_input(self, react: Callback<InputEvent>) -> Tag {
        self.listen(Rc::new(oninput::Wrapper::new(react)))
    }

    fn listen(mut self, listener: Rc<dyn Listener>) -> Tag {
        self.0.add_listener(listener);
        self
    }
}

impl From<Tag> for Html {
    fn from(tag: Tag) -> Html {
        (*tag.0).into()
    }
}

/// A button with a name for those who do not see it.
pub fn button(label: &'static str, on_click: Callback<MouseEvent>) -> Tag {
    let button = tag("button").set("type", "button");
    button.set("aria-label", label).on_click(on_click)
}
