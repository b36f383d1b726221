//! A terminal's screen as a picture.

use std::fmt::Write as _;

const CHARACTER: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 12.0;
const BACKGROUND: &str = "#16181d";
const TEXT: &str = "#d8dce4";

/// How text is drawn.
#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    colour: Option<&'static str>,
    bold: bool,
    dim: bool,
}

impl Style {
    /// The style after a sequence with these numbers.
    fn after(mut self, numbers: &str) -> Self {
        // A basic colour, as one number or as one of 256.
        let numbers = numbers.replace("38;5;", "3");
        for number in numbers.split(';') {
            match number {
                "" | "0" => self = Self::default(),
                "1" => self.bold = true,
                "2" => self.dim = true,
                "22" => (self.bold, self.dim) = (false, false),
                "31" | "91" => self.colour = Some("#f2777a"),
                "32" | "92" => self.colour = Some("#8fc98f"),
                "33" | "93" => self.colour = Some("#f0c674"),
                "36" | "96" => self.colour = Some("#7cc4d8"),
                "39" => self.colour = None,
                // The view sets no background.
                "49" => {}
                other => panic!("the view uses {other:?}, which this picture does not know"),
            }
        }
        self
    }

    fn attributes(self) -> String {
        let mut text = format!("fill=\"{}\"", self.colour.unwrap_or(TEXT));
        if self.bold {
            text += " font-weight=\"bold\"";
        }
        if self.dim {
            text += " opacity=\"0.65\"";
        }
        text
    }
}

/// The screen, with the sequences that colour it, as an SVG picture. Each word has its place, so the columns are straight with
/// any font.
pub fn svg(screen: &str, (width, height): (u16, u16)) -> String {
    let (wide, high) = CHARACTER;
    let (all_width, all_height) = (f32::from(width) * wide + 2.0 * MARGIN, f32::from(height) * high + 2.0 * MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all_width:.0} {all_height:.0}\" width=\"{all_width:.0}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <title>cronjob-controller dev on a terminal</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    let mut style = Style::default();
    let mut y = MARGIN + high * 0.75;
    for line in screen.lines() {
        let mut column = 0_u16;
        let mut word = (0, String::new());
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            if letter == '\x1b' {
                let end = rest.find('m').unwrap();
                let after = style.after(&rest[1..end]);
                if after != style {
                    draw(&mut picture, &mut word, style, y);
                }
                (style, rest) = (after, &rest[end + 1..]);
                continue;
            }
            if letter == ' ' {
                draw(&mut picture, &mut word, style, y);
            } else {
                if word.1.is_empty() {
                    word.0 = column;
                }
                word.1.push(letter);
            }
            column += 1;
        }
        draw(&mut picture, &mut word, style, y);
        y += high;
    }
    picture + "</svg>\n"
}

fn draw(picture: &mut String, word: &mut (u16, String), style: Style, y: f32) {
    let (column, text) = std::mem::take(word);
    if text.is_empty() {
        return;
    }
    let x = MARGIN + f32::from(column) * CHARACTER.0;
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(picture, "<text x=\"{x:.1}\" y=\"{y:.1}\" {}>{text}</text>", style.attributes()).unwrap();
}
