//! What is said over a connection that was upgraded: the bytes of a terminal or of a program, and a few words beside them.
//!
//! A frame is a byte for its kind, four for the length of what follows, the most significant first, and that many bytes.

use crate::spec::TerminalSize;

/// The name of this protocol in the header `upgrade`.
pub const PROTOCOL: &str = "coloc-frames";
/// No frame has more bytes than this after its head.
pub const LARGEST: usize = 64 << 10;
/// Bytes before what a frame says.
pub const HEAD: usize = 5;
/// A client says something at least this often, so that one that is gone is noticed.
pub const PING: std::time::Duration = std::time::Duration::from_secs(20);

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// From the client: what is typed, or the input of a program.
    Input(Vec<u8>),
    /// From the client: its window has this size.
    Resize(TerminalSize),
    /// From the client: there is no more input. To the client: no more of it is wanted.
    Eof,
    /// From the client: it is still there.
    Ping,
    /// From the client: a signal for the program.
    Signal(i32),
    /// From the daemon: the client is gone. Without this word, the daemon is.
    Gone,
    /// To the client: what the program prints, on a terminal both its streams.
    Output(Vec<u8>),
    /// To the client: what the program prints on standard error.
    Errors(Vec<u8>),
    /// To the client: what was printed before it came.
    Replay(Vec<u8>),
    /// To the client: the position of the byte that comes next.
    At(u64),
    /// To the client: the program ended, with this code; 128 and the signal if it was killed.
    Exit(i32),
    /// To the daemon: it may begin.
    Accepted,
    /// To the daemon: it may not, for a reason with a word for programs.
    Refused(String, String),
}

/// Bytes that are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than any may be.
    #[error("a frame of {0} bytes: {LARGEST} are the most")]
    TooLong(usize),
    /// Its kind is not known, or it does not say what its kind says.
    #[error("a frame of kind {0} with {1} bytes is not known")]
    Unknown(u8, usize),
}

impl Frame {
    /// Writes it, at the end of what is there. What is too long for one frame goes into several.
    pub fn write(&self, into: &mut Vec<u8>) {
        match self {
            Frame::Input(bytes) => put_all(into, 0, bytes),
            Frame::Resize(size) => {
                let [[a, b], [c, d]] = [size.rows.to_be_bytes(), size.columns.to_be_bytes()];
                put(into, 1, &[a, b, c, d]);
            }
            Frame::Eof => put(into, 2, &[]),
            Frame::Ping => put(into, 3, &[]),
            Frame::Signal(signal) => put(into, 4, &signal.to_be_bytes()),
            Frame::Gone => put(into, 5, &[]),
            Frame::Output(bytes) => put_all(into, 16, bytes),
            Frame::Errors(bytes) => put_all(into, 17, bytes),
            Frame::Replay(bytes) => put_all(into, 18, bytes),
            Frame::At(position) => put(into, 19, &position.to_be_bytes()),
            Frame::Exit(code) => put(into, 20, &code.to_be_bytes()),
            Frame::Accepted => put(into, 21, &[]),
            Frame::Refused(code, why) => {
                let mut text = format!("{code}\n{why}").into_bytes();
                text.truncate(LARGEST);
                put(into, 22, &text);
            }
        }
    }

    /// It alone.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// Takes the first frame of what has come, if all of it has.
    pub fn take(from: &mut Vec<u8>) -> Result<Option<Frame>, FrameError> {
        let Some((&[kind, a, b, c, d], rest)) = from.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > LARGEST {
            return Err(FrameError::TooLong(length));
        }
        let Some(said) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::read(kind, said).ok_or(FrameError::Unknown(kind, length))?;
        from.drain(..HEAD + length);
        Ok(Some(frame))
    }

    fn read(kind: u8, said: &[u8]) -> Option<Frame> {
        let number = || Some(i32::from_be_bytes(said.try_into().ok()?));
        let empty = |frame| said.is_empty().then_some(frame);
        match kind {
            0 => Some(Frame::Input(said.to_vec())),
            1 => {
                let &[a, b, c, d] = said else { return None };
                let (rows, columns) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                Some(Frame::Resize(TerminalSize { rows, columns }))
            }
            2 => empty(Frame::Eof),
            3 => empty(Frame::Ping),
            4 => number().map(Frame::Signal),
            5 => empty(Frame::Gone),
            16 => Some(Frame::Output(said.to_vec())),
            17 => Some(Frame::Errors(said.to_vec())),
            18 => Some(Frame::Replay(said.to_vec())),
            19 => Some(Frame::At(u64::from_be_bytes(said.try_into().ok()?))),
            20 => number().map(Frame::Exit),
            21 => empty(Frame::Accepted),
            22 => {
                let text = String::from_utf8_lossy(said);
                let (code, why) = text.split_once('\n')?;
                Some(Frame::Refused(code.to_owned(), why.to_owned()))
            }
            _ => None,
        }
    }

    /// Whether a client may say it.
    pub fn is_clients(&self) -> bool {
        matches!(
            self,
            Frame::Input(_) | Frame::Resize(_) | Frame::Eof | Frame::Ping | Frame::Signal(_)
        )
    }
}

fn put(into: &mut Vec<u8>, kind: u8, said: &[u8]) {
    into.push(kind);
    into.extend_from_slice(&(said.len() as u32).to_be_bytes());
    into.extend_from_slice(said);
}

fn put_all(into: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    bytes.chunks(LARGEST).for_each(|part| put(into, kind, part));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let all = [
            Frame::Input(b"ls\r".to_vec()),
            Frame::Resize(TerminalSize { rows: 24, columns: 300 }),
            Frame::Eof,
            Frame::Ping,
            Frame::Signal(2),
            Frame::Gone,
            Frame::Output(vec![0xff; 9]),
            Frame::Errors(b"no".to_vec()),
            Frame::Replay(b"$ ".to_vec()),
            Frame::At(1 << 40),
            Frame::Exit(130),
            Frame::Accepted,
            Frame::Refused("over_limit".to_owned(), "too many".to_owned()),
        ];
        let said: Vec<u8> = all.iter().flat_map(Frame::bytes).collect();
        for size in [1, 2, 7, said.len()] {
            let (mut come, mut read) = (Vec::new(), Vec::new());
            for part in said.chunks(size) {
                come.extend_from_slice(part);
                while let Some(frame) = Frame::take(&mut come).expect("frames") {
                    read.push(frame);
                }
            }
            assert_eq!((read.as_slice(), come.len()), (&all[..], 0), "{size}");
        }
    }

    #[test]
    fn what_is_long_goes_into_several_and_no_frame_is_longer() {
        let mut said = Frame::Output(vec![7; 3 * LARGEST + 1]).bytes();
        let mut lengths = Vec::new();
        while let Some(Frame::Output(bytes)) = Frame::take(&mut said).expect("frames") {
            lengths.push(bytes.len());
        }
        assert_eq!(lengths, [LARGEST, LARGEST, LARGEST, 1]);
        let mut huge = vec![0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Frame::take(&mut huge), Err(FrameError::TooLong(u32::MAX as usize)));
        assert_eq!(Frame::take(&mut vec![9, 0, 0, 0, 0]), Err(FrameError::Unknown(9, 0)));
        assert_eq!(Frame::take(&mut vec![1, 0, 0, 0, 1, 0]), Err(FrameError::Unknown(1, 1)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_frame_or_an_error(mut come in proptest::collection::vec(any::<u8>(), 0..200)) {
            let before = come.len();
            while let Ok(Some(_)) = Frame::take(&mut come) {}
            prop_assert!(come.len() <= before);
        }
    }
}
