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
pub struct Viewport {
    /// The order of the rows.
    pub order: Order,
    /// The first row that is shown.
    first: usize,
    /// The number of rows that fit, as drawn last.
    page: usize,
}

impl Viewport {
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
mod tests;
