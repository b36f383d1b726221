//! What a user changes in the live view: the order of the rows and the place in them. Pure.
//!
//! Guarantee: the first row that is shown always exists, and no empty lines are shown while there are rows for them.

use std::ops::Range;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::Order;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Ignore,
    /// To draw the view again.
    Redraw,
    /// To end `dev`.
    Quit,
}

/// The order of the rows and the place in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The order of the rows.
    pub order: Order,
    /// The first row that is shown.
    first: usize,
    /// The number of rows that fit, as drawn last.
    page: usize,
}

impl Place {
    /// The rows to show, of so many, where `page` of them fit.
    pub fn visible(&mut self, rows: usize, page: usize) -> Range<usize> {
        self.page = page;
        self.first = self.first.min(rows.saturating_sub(page));
        self.first..rows.min(self.first + page)
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Ignore;
        }
        let page = self.page.max(1);
        self.first = match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Action::Quit,
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first.saturating_add(1),
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first.saturating_add(page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX - page,
            KeyCode::Char('s') => {
                self.order = self.order.next();
                0
            }
            _ => return Action::Ignore,
        };
        Action::Redraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first row that is shown of 200 on a page of 10, and the order, after these keys.
    fn after(keys: &[KeyCode]) -> (usize, Order) {
        let mut place = Place::default();
        place.visible(200, 10);
        for key in keys {
            assert_eq!(place.press(KeyEvent::from(*key)), Action::Redraw, "{key:?}");
            place.visible(200, 10);
        }
        (place.first, place.order)
    }

    #[test]
    fn keys_scroll_and_sort() {
        use KeyCode::{Char, Down, End, Home, PageDown, PageUp, Up};
        let rows: [(&[KeyCode], usize, Order); 12] = [
            (&[Down, Char('j'), Down], 3, Order::Failed),
            (&[Down, Down, Up, Char('k'), Up], 0, Order::Failed),
            (&[PageDown], 10, Order::Failed),
            (&[Char(' '), PageDown, PageUp], 10, Order::Failed),
            (&[End], 190, Order::Failed),
            (&[Char('G'), Down], 190, Order::Failed),
            (&[End, PageDown, Up], 189, Order::Failed),
            (&[End, Home], 0, Order::Failed),
            (&[End, Char('g')], 0, Order::Failed),
            (&[End, Char('s')], 0, Order::Next),
            (&[Char('s'), Char('s')], 0, Order::Last),
            (&[Char('s'), Char('s'), Char('s'), Char('s')], 0, Order::Failed),
        ];
        for (keys, first, order) in rows {
            assert_eq!(after(keys), (first, order), "{keys:?}");
        }
    }

    #[test]
    fn keys_that_quit_and_keys_without_effect() {
        let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        let rows = [
            (KeyEvent::from(KeyCode::Char('q')), Action::Quit),
            (control('c'), Action::Quit),
            (KeyEvent::from(KeyCode::Char('c')), Action::Ignore),
            (KeyEvent::from(KeyCode::Enter), Action::Ignore),
            (KeyEvent::new_with_kind(KeyCode::Down, KeyModifiers::NONE, KeyEventKind::Release), Action::Ignore),
        ];
        for (key, want) in rows {
            let mut place = Place::default();
            assert_eq!(place.press(key), want, "{key:?}");
            assert_eq!(place, Place::default(), "{key:?}");
        }
    }

    #[test]
    fn place_follows_rows_and_pages() {
        let mut place = Place::default();
        place.visible(200, 10);
        place.press(KeyEvent::from(KeyCode::End));
        assert_eq!(place.visible(200, 10), 190..200);
        assert_eq!(place.visible(200, 30), 170..200, "a larger terminal");
        assert_eq!(place.visible(5, 30), 0..5, "fewer CronJobs");
        assert_eq!(place.visible(0, 30), 0..0);
        assert_eq!(place.visible(3, 0), 0..0, "no room");
    }
}
