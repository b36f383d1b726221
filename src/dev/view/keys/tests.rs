use super::*;

/// The first row that is shown of 200 on a page of 10, and the order, after these keys.
fn after(keys: &[KeyCode]) -> (usize, Order) {
    let mut place = Viewport::default();
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
        (&[Down, Char('j'), Down], 3, Order::Worst),
        (&[Down, Down, Up, Char('k'), Up], 0, Order::Worst),
        (&[PageDown], 10, Order::Worst),
        (&[Char(' '), PageDown, PageUp], 10, Order::Worst),
        (&[End], 190, Order::Worst),
        (&[Char('G'), Down], 190, Order::Worst),
        (&[End, PageDown, Up], 189, Order::Worst),
        (&[End, Home], 0, Order::Worst),
        (&[End, Char('g')], 0, Order::Worst),
        (&[End, Char('s')], 0, Order::Next),
        (&[Char('s'), Char('s')], 0, Order::Last),
        (&[Char('s'), Char('s'), Char('s'), Char('s')], 0, Order::Worst),
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
        let mut place = Viewport::default();
        assert_eq!(place.press(key), want, "{key:?}");
        assert_eq!(place, Viewport::default(), "{key:?}");
    }
}

#[test]
fn place_follows_rows_and_pages() {
    let mut place = Viewport::default();
    place.visible(200, 10);
    place.press(KeyEvent::from(KeyCode::End));
    assert_eq!(place.visible(200, 10), 190..200);
    assert_eq!(place.visible(200, 30), 170..200, "a larger terminal");
    assert_eq!(place.visible(5, 30), 0..5, "fewer CronJobs");
    assert_eq!(place.visible(0, 30), 0..0);
    assert_eq!(place.visible(3, 0), 0..0, "no room");
}
