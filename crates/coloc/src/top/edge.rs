//! The edge: keys, the daemon, the time and the terminal.

use super::app::App;
use super::feed;
use super::keys::Key;
use super::paint::Palette;
use super::screen::Screen;
use super::update::{Effect, Msg, update};
use super::view::draw;
use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::local_time::LocalTime;
use crate::output::print_text;
use crate::signals::note_signal;
use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

/// Nothing is drawn more often.
const FRAME: Duration = Duration::from_millis(250);
/// How often the time is told.
const TICK: Duration = Duration::from_secs(1);
/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn now_s() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

fn wall_clock(at_s: f64) -> (u32, u32, u32) {
    let parts = LocalTime::of(at_s as i64);
    parts.map_or((0, 0, 0), |at| (at.hour as u32, at.minute as u32, at.second as u32))
}

/// What the environment says of colours.
fn palette() -> Palette {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    Palette::of_terminal(no_color || dumb, &std::env::var("COLORTERM").unwrap_or_default())
}

fn fail(source: io::Error) -> CliError {
    CliError::Write { file: PathBuf::from("the terminal"), source }
}

/// One frame as text.
pub(crate) fn once(socket: &SocketArg, size: (u16, u16), coloured: bool) -> Result<(), CliError> {
    let mut client = socket.connect()?;
    let mut app = App::new(wall_clock);
    let now_s = now_s();
    update(&mut app, Msg::Tick(now_s));
    let mut asked = update(&mut app, feed::snapshot(&mut client)?);
    let gpus: Vec<u32> = app.data.gpus.iter().map(|gpu| gpu.index).collect();
    for msg in feed::activity(&mut client, &gpus, now_s) {
        update(&mut app, msg);
    }
    if let Ok(expected) = client.all_expected() {
        asked.extend(update(&mut app, Msg::Expected(expected.tasks)));
    }
    for effect in asked {
        let told = match effect {
            Effect::AskWhy(id) => client.why(id).map(|why| Msg::Why(Box::new(why))),
            Effect::AskLog(id) => feed::last_of_log(&mut client, id).map(Msg::Log),
            _ => continue,
        };
        // Of a task that has not run, or is another user's, there is no output to be seen.
        if let Ok(msg) = told {
            update(&mut app, msg);
        }
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    let palette = if coloured { palette() } else { Palette::PLAIN };
    draw(&app, palette, &mut buffer);
    print_text(&text(&buffer, palette != Palette::PLAIN))
}

/// A buffer as lines, with colours if they are wanted.
pub(super) fn text(buffer: &Buffer, coloured: bool) -> String {
    use ratatui_core::style::{Color, Modifier};
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        if y > buffer.area.top() {
            out.push('\n');
        }
        let (mut skip, mut last) = (0, (Color::Reset, Modifier::empty()));
        for x in buffer.area.left()..buffer.area.right() {
            let cell = &buffer[(x, y)];
            // A wide character takes the cell after it too.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = super::paint::width(cell.symbol()).saturating_sub(1);
            if coloured && last != (cell.fg, cell.modifier) {
                last = (cell.fg, cell.modifier);
                out.push_str(&sequence(cell.fg, cell.modifier));
            }
            out.push_str(cell.symbol());
        }
        if coloured && last != (Color::Reset, Modifier::empty()) {
            out.push_str("\x1b[0m");
        }
    }
    out
}

fn sequence(color: ratatui_core::style::Color, modifier: ratatui_core::style::Modifier) -> String {
    use ratatui_core::style::{Color, Modifier};
    let mut parts = vec!["0".to_owned()];
    for (flag, code) in [(Modifier::BOLD, "1"), (Modifier::DIM, "2"), (Modifier::REVERSED, "7")] {
        if modifier.contains(flag) {
            parts.push(code.to_owned());
        }
    }
    match color {
        Color::Rgb(r, g, b) => parts.push(format!("38;2;{r};{g};{b}")),
        Color::Indexed(index) => parts.push(format!("38;5;{index}")),
        _ => {}
    }
    format!("\x1b[{}m", parts.join(";"))
}

/// Something for the loop.
enum Input {
    Msg(Box<Msg>),
    /// The terminal has another size, or is to be drawn anew.
    Redraw,
}

/// Shows everything until the user has seen enough.
pub(crate) fn run(socket: &SocketArg) -> Result<(), CliError> {
    // A daemon that is not there at all is said before the terminal is taken.
    let mut client = socket.connect()?;
    let first = feed::snapshot(&mut client)?;
    let (inputs, input) = mpsc::channel();
    let (questions, asked) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        note_signal(signal, &stop).map_err(fail)?;
    }
    let mut app = App::new(wall_clock);
    update(&mut app, Msg::Tick(now_s()));
    send_all(&questions, update(&mut app, first));
    let gpus: Vec<u32> = app.data.gpus.iter().map(|gpu| gpu.index).collect();
    for msg in feed::activity(&mut client, &gpus, now_s()) {
        update(&mut app, msg);
    }
    drop(client);
    let screen = Screen::take().map_err(fail)?;
    start(socket, inputs, asked);
    let shown = Loop { app, screen, questions, palette: palette(), drawn: None };
    shown.run(&input, &stop).map_err(fail)
}

fn send_all(questions: &Sender<Effect>, effects: Vec<Effect>) -> bool {
    let mut quits = false;
    for effect in effects {
        quits |= effect == Effect::Quit;
        let _ = questions.send(effect);
    }
    quits
}

/// Threads that end with the program.
fn start(socket: &SocketArg, inputs: Sender<Input>, asked: mpsc::Receiver<Effect>) {
    let forward = |inputs: Sender<Input>| {
        let (to, msgs) = mpsc::channel::<Msg>();
        std::thread::spawn(move || {
            for msg in msgs {
                if inputs.send(Input::Msg(Box::new(msg))).is_err() {
                    return;
                }
            }
        });
        to
    };
    let (to, own) = (forward(inputs.clone()), socket.clone());
    std::thread::spawn(move || feed::listen(&own, &to));
    let (to, own) = (forward(inputs.clone()), socket.clone());
    std::thread::spawn(move || feed::answer(&own, &asked, &to));
    std::thread::spawn(move || read_keys(&inputs));
}

fn read_keys(inputs: &Sender<Input>) {
    while let Ok(event) = event::read() {
        let input = match event {
            event::Event::Key(key) => match pressed(key) {
                Some(key) => Input::Msg(Box::new(Msg::Key(key))),
                None if is_redraw(key) => Input::Redraw,
                None => continue,
            },
            event::Event::Resize(..) => Input::Redraw,
            _ => continue,
        };
        if inputs.send(input).is_err() {
            return;
        }
    }
}

/// Ctrl-L, as everywhere.
fn is_redraw(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('l')
}

fn pressed(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Key::Interrupt);
    }
    Some(match key.code {
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

struct Loop {
    app: App,
    screen: Screen,
    questions: Sender<Effect>,
    palette: Palette,
    drawn: Option<Instant>,
}

impl Loop {
    fn run(mut self, input: &mpsc::Receiver<Input>, stop: &AtomicBool) -> io::Result<()> {
        let (mut dirty, mut ticked) = (true, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let since = self.drawn.map_or(FRAME, |drawn| drawn.elapsed());
            if dirty && since >= FRAME {
                self.draw()?;
                dirty = false;
            }
            let wait = if dirty { FRAME.saturating_sub(since) } else { LOOK };
            match input.recv_timeout(wait.max(Duration::from_millis(1))) {
                Ok(first) => {
                    for one in std::iter::once(first).chain(input.try_iter()) {
                        if self.take(one) {
                            return Ok(());
                        }
                    }
                    dirty = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                dirty |= !self.take(Input::Msg(Box::new(Msg::Tick(now_s()))));
            }
        }
        Ok(())
    }

    /// Says whether that was all.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::Redraw => {
                self.screen.forget();
                false
            }
            Input::Msg(msg) => {
                let effects = update(&mut self.app, *msg);
                send_all(&self.questions, effects)
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let mut buffer = Buffer::empty(self.screen.area()?);
        draw(&self.app, self.palette, &mut buffer);
        self.screen.show(buffer)?;
        self.drawn = Some(Instant::now());
        Ok(())
    }
}
