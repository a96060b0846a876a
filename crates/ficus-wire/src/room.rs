//! How long a message may become while it is written.

use crate::EncodeError;

/// Where the bytes of a message go. It is asked now and then, so that whoever has to find the memory can do so step by step, and refuse.
pub trait Room {
    /// The length that `bytes` may have, beyond which it is to be asked again; less than it has: there is no room. Bytes may be taken out, so that what is written
    /// need not be moved as it grows.
    fn grow(&mut self, bytes: &mut Vec<u8>) -> usize;
}

/// A bound that stands from the beginning.
impl Room for usize {
    fn grow(&mut self, _bytes: &mut Vec<u8>) -> usize {
        *self
    }
}

/// What a writer has of the room of its message; without anybody to ask there is no bound.
pub struct Bound<'a> {
    room: Option<&'a mut dyn Room>,
    length_max: usize,
}

impl<'a> Bound<'a> {
    pub(crate) fn none() -> Bound<'a> {
        Bound { room: None, length_max: usize::MAX }
    }

    /// That of a message that is about to be written.
    pub fn of(room: &'a mut dyn Room) -> Bound<'a> {
        Bound { room: Some(room), length_max: 0 }
    }

    /// To be called before each part of the message that may be long.
    ///
    /// Errors: `TooLarge` if there is no room for what is there.
    #[inline]
    pub fn check(&mut self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        if bytes.len() < self.length_max { Ok(()) } else { self.ask(bytes) }
    }

    #[cold]
    fn ask(&mut self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        if let Some(room) = &mut self.room {
            self.length_max = room.grow(bytes);
        }
        match bytes.len() > self.length_max {
            true => Err(EncodeError::TooLarge { limit: self.length_max }),
            false => Ok(()),
        }
    }
}
