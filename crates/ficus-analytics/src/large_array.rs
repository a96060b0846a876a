//! Arrays that are read at random places.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::AnalyticsError;

/// An array of zeros in pages as large as the system gives: with small ones, finding the page costs as much as reading the
/// number. Memory becomes real when it is first written.
#[derive(Debug)]
pub(crate) struct LargeArray<T> {
    /// `None` if it is empty, since nothing cannot be mapped.
    map: Option<MmapMut>,
    _of: std::marker::PhantomData<T>,
}

impl<T: Pod> LargeArray<T> {
    /// Zeros.
    ///
    /// Errors: `Memory` if the system refuses so much.
    pub(crate) fn zeroed(length: usize) -> Result<LargeArray<T>, AnalyticsError> {
        let bytes = length * size_of::<T>();
        if bytes == 0 {
            return Ok(LargeArray { map: None, _of: std::marker::PhantomData });
        }
        let map = MmapMut::map_anon(bytes).map_err(|_| AnalyticsError::Memory {
            what: "the state of a pass",
            needed_bytes: bytes as u64,
            limit_bytes: 0,
        })?;
        // A wish: without large pages it is slower, not wrong.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(LargeArray { map: Some(map), _of: std::marker::PhantomData })
    }
}

impl<T: Pod> Deref for LargeArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.map.as_ref().map_or(&[], |map| bytemuck::cast_slice(map))
    }
}

impl<T: Pod> DerefMut for LargeArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.map.as_mut().map_or(&mut [], |map| bytemuck::cast_slice_mut(map))
    }
}
