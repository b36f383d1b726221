#![allow(clippy::unwrap_used)]

use futures::FutureExt as _;

use super::*;
use crate::terminal::tests::{HOSTILE, harmful};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_wait_for_the_end_of_the_view() {
    let page = Page::default();
    let output = Output::new(page.clone());
    output.say("before");
    output.begin_view();
    output.say("first");
    output.make_writer().write_all(b"second\nthird\n").unwrap();
    assert_eq!(output.newest(2), ["second", "third"]);
    assert_eq!(page.0.lock().as_slice(), b"before\n");
    output.end_view();
    output.say("bye");
    assert_eq!(page.0.lock().as_slice(), b"before\nfirst\nsecond\nthird\nbye\n");
}

#[test]
fn lines_are_plain_with_and_without_the_view() {
    let page = Page::default();
    let output = Output::new(page.clone());
    let say_all = || HOSTILE.iter().for_each(|(_, words)| output.say(words));
    say_all();
    output.begin_view();
    say_all();
    assert_eq!(harmful(&output.newest(usize::MAX).join("\n")), [""; 0]);
    output.end_view();
    let text = String::from_utf8(page.0.lock().clone()).unwrap();
    assert_eq!((harmful(&text), text.lines().count()), (vec![], 2 * HOSTILE.len()), "{text}");
}

#[test]
fn each_change_of_a_line_is_written_until_the_end() {
    let (page, end) = (Page::default(), CancellationToken::new());
    let output = Output::new(page.clone());
    let (sender, mut lines) = watch::channel("first".to_owned());
    lines.mark_unchanged();
    let mut work = std::pin::pin!(output.say_changes("a link: ", lines, &end));
    for text in ["second", "third"] {
        sender.send_replace(text.to_owned());
        assert!(work.as_mut().now_or_never().is_none(), "{text}");
    }
    end.cancel();
    assert!(work.as_mut().now_or_never().is_some());
    assert_eq!(page.0.lock().as_slice(), b"a link: second\na link: third\n");
}

#[test]
fn oldest_waiting_lines_are_dropped() {
    let output = Output::new(Page::default());
    output.begin_view();
    (0..=MAX_WAITING).for_each(|number| output.say(&number.to_string()));
    let kept = output.newest(usize::MAX);
    assert_eq!((kept.len(), kept[0].as_str()), (MAX_WAITING, "1"));
}
