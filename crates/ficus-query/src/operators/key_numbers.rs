//! Groups of vertices by the text that they have under a key, found by the codes of columns.
//!
//! Where few different texts are under a key the store keeps codes. The group of a vertex is then looked up by its code in a table;
//! the text itself is made, hashed and compared once for each tablet, and not once for each vertex.

use ficus_model::{Value, VertexId};
use ficus_storage::TextCode;

use crate::budget::{Held, MemoryAccount};
use crate::context::{QueryContext, Result};
use crate::elements::KeyRef;
use crate::growing::Keyed;

/// The number of no group: of a vertex that has no value.
pub const NO_GROUP: u32 = u32::MAX;

/// Questions that columns may leave open, beyond those that they answer, before they are not asked any more.
const LEFT_OPEN_MAX: u32 = 4;

/// The numbers that groups have in a [`Keyed`], by codes.
#[derive(Debug, Default)]
pub struct KeyNumbers {
    /// By tablet and code; [`NO_GROUP`] where no vertex was met that has it.
    of_codes: Vec<Vec<u32>>,
    held: Held,
    codes: Vec<Option<TextCode>>,
    /// By how many questions more were left open than answered.
    left_open: u32,
}

impl KeyNumbers {
    /// Replaces what is in `numbers` by the number of each vertex's group, made with `make` where it is new, in the order of the vertices.
    /// False if columns do not say: nothing was made then.
    ///
    /// Errors: as [`Keyed::entry`].
    pub fn of<V: Send + 'static>(
        &mut self,
        key: &mut KeyRef,
        vertices: &[VertexId],
        groups: &mut Keyed<V>,
        make: impl Fn() -> (V, usize),
        numbers: &mut Vec<u32>,
        context: &QueryContext,
    ) -> Result<bool> {
        if self.left_open >= LEFT_OPEN_MAX || (!context.computed.is_empty() && context.computed.has(&key.name)) {
            return Ok(false);
        }
        numbers.clear();
        self.codes.clear();
        let Some(key) = key.id(context) else {
            numbers.resize(vertices.len(), NO_GROUP);
            return Ok(true);
        };
        if !context.transaction.text_codes(key, vertices, &mut self.codes) {
            self.left_open += 1;
            return Ok(false);
        }
        self.left_open = self.left_open.saturating_sub(1);
        for code in &self.codes {
            let Some(code) = code else {
                numbers.push(NO_GROUP);
                continue;
            };
            let number = known(&mut self.of_codes, &mut self.held, *code, &context.memory)?;
            if *number == NO_GROUP
                && let Some(text) = context.transaction.text_of_code(key, *code)
            {
                *number = groups.number_or(Value::String(text), &context.memory, &make)? as u32;
            }
            numbers.push(*number);
        }
        Ok(true)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = KeyNumbers::default();
    }
}

/// What is known of a code. Errors: `Budget` or `ServerMemory` if there is no room to know more.
#[inline]
fn known<'n>(
    of_codes: &'n mut Vec<Vec<u32>>,
    held: &mut Held,
    code: TextCode,
    account: &MemoryAccount,
) -> Result<&'n mut u32> {
    let (tablet, place) = (code.tablet as usize, code.code as usize);
    if of_codes.get(tablet).is_none_or(|numbers| place >= numbers.len()) {
        if of_codes.len() <= tablet {
            held.add(account, (tablet + 1 - of_codes.len()) * size_of::<Vec<u32>>())?;
            of_codes.resize_with(tablet + 1, Vec::new);
        }
        let length = (place + 1).next_power_of_two().max(16);
        held.add(account, (length - of_codes[tablet].len()) * size_of::<u32>())?;
        of_codes[tablet].resize(length, NO_GROUP);
    }
    Ok(&mut of_codes[tablet][place])
}
