//! The pool: every zspage with its objects, and how many pages are stored.

use super::stage::{Layout, Stage};
use super::units::push_path;
use super::{Area, units};
use crate::{PoolFrame, ZspageFrame};

/// Draws it.
pub(crate) fn draw(stage: &mut Stage<'_>, area: Area) {
    let pool = &stage.frame.pool;
    let stored = units::count(pool.stored_pages);
    let note = match stage.layout {
        Layout::Wide => format!("{stored} pages, in {} zspages", pool.zspages.len()),
        Layout::Narrow => format!("{stored} pages"),
    };
    let cells = Cells::fitting(pool, area);
    stage.scene.heading(area, "Compressed memory", &note);
    stage.scene.path("hole", cells.outlines(pool, area, false));
    stage.scene.path("object", cells.outlines(pool, area, true));
}

/// How large the cells are: one per object, a zspage in a row of its own cells.
struct Cells {
    size: f32,
}

/// Between two zspages.
const GAP: f32 = 5.0;
/// Between two rows.
const ROW_GAP: f32 = 3.0;

impl Cells {
    /// The largest cells of which all zspages fit.
    fn fitting(pool: &PoolFrame, area: Area) -> Cells {
        let mut size = 14.0;
        while size > 2.0 && !Self::fits(pool, area, size) {
            size -= 0.5;
        }
        Cells { size }
    }

    fn fits(pool: &PoolFrame, area: Area, size: f32) -> bool {
        let mut at = Cursor::new(area, size);
        pool.zspages.iter().all(|zspage| {
            at.place(zspage.used.len());
            at.y + size <= area.bottom()
        })
    }

    /// The cells in use, or those that are not, as one path.
    fn outlines(&self, pool: &PoolFrame, area: Area, used: bool) -> String {
        let mut d = String::new();
        let mut at = Cursor::new(area, self.size);
        for zspage in &pool.zspages {
            let x = at.place(zspage.used.len());
            if at.y + self.size > area.bottom() + 0.1 {
                break;
            }
            self.push_zspage(&mut d, zspage, (x, at.y), used);
        }
        d
    }

    fn push_zspage(&self, d: &mut String, zspage: &ZspageFrame, at: (f32, f32), used: bool) {
        let inner = self.size - 1.0;
        for (index, &is_used) in zspage.used.iter().enumerate() {
            if is_used == used {
                let x = at.0 + index as f32 * self.size;
                push_path(d, "M# #h#v#h-#z", &[x, at.1, inner, inner, inner]);
            }
        }
    }
}

/// Where the next zspage goes.
struct Cursor {
    area: Area,
    size: f32,
    x: f32,
    y: f32,
}

impl Cursor {
    fn new(area: Area, size: f32) -> Cursor {
        Cursor {
            area,
            size,
            x: area.x,
            y: area.y + 2.0,
        }
    }

    /// The left end of a zspage of so many objects; goes on behind it.
    fn place(&mut self, objects: usize) -> f32 {
        let w = objects as f32 * self.size;
        if self.x > self.area.x && self.x + w > self.area.right() {
            self.x = self.area.x;
            self.y += self.size + ROW_GAP;
        }
        let x = self.x;
        self.x += w + GAP;
        x
    }
}
