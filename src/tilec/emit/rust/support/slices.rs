// ---- Public: parts of memory, and memory of other files

/// A part of a buffer, to be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice<'a, T> {
    address: u64,
    length: usize,
    device: i32,
    elements: PhantomData<&'a T>,
}

/// A part of a buffer, to be written.
#[derive(Debug)]
pub struct DeviceSliceMut<'a, T> {
    address: u64,
    length: usize,
    device: i32,
    elements: PhantomData<&'a mut T>,
}

impl<T: Element> DeviceBuffer<T> {
    /// The elements before `middle`, and those from there on.
    ///
    /// Errors: `Extent` where there are not so many.
    pub fn split_at(&self, middle: usize) -> Result<(DeviceSlice<'_, T>, DeviceSlice<'_, T>)> {
        let ((first, length), (second, rest)) = self.halves(middle)?;
        let (device, elements) = (self.device, PhantomData);
        Ok((
            DeviceSlice { address: first, length, device, elements },
            DeviceSlice { address: second, length: rest, device, elements },
        ))
    }

    /// As `split_at`, to be written: both at one time.
    pub fn split_at_mut(&mut self, middle: usize) -> Result<(DeviceSliceMut<'_, T>, DeviceSliceMut<'_, T>)> {
        let ((first, length), (second, rest)) = self.halves(middle)?;
        let (device, elements) = (self.device, PhantomData);
        Ok((
            DeviceSliceMut { address: first, length, device, elements },
            DeviceSliceMut { address: second, length: rest, device, elements },
        ))
    }

    /// Addresses and lengths.
    fn halves(&self, middle: usize) -> Result<((u64, usize), (u64, usize))> {
        let (address, length) = (self.address, self.length);
        if middle > length {
            return failed(Status::Extent, format!("expected up to {length} elements, got {middle}"));
        }
        Ok(((address, middle), (address + (middle * size_of::<T>()) as u64, length - middle)))
    }
}

macro_rules! slices {
    ($($name:ident;)*) => {
        $(
            // SAFETY: a part of a buffer, which stays while it is borrowed.
            unsafe impl<T: Element> DeviceMemory for $name<'_, T> {
                type Element = T;

                fn address(&self) -> u64 {
                    self.address
                }

                fn bytes(&self) -> usize {
                    self.length * size_of::<T>()
                }

                fn device(&self) -> i32 {
                    self.device
                }
            }
        )*
    };
}

slices! {
    DeviceSlice;
    DeviceSliceMut;
}

// SAFETY: no two of them have an element in common.
unsafe impl<T: Element> DeviceMemoryMut for DeviceSliceMut<'_, T> {}

/// Makes the buffers of another emitted file memory for the tensors of this one: with two files as modules `axpy` and
/// `matmul`, `axpy::take_buffers!(axpy, matmul);` lets tensors of `axpy` be made of buffers of `matmul`.
macro_rules! take_buffers {
    ($own:ident, $other:ident) => {
        // SAFETY: as the other file says of its own tensors.
        unsafe impl<T: $own::Element + $other::Element> $own::DeviceMemory for $other::DeviceBuffer<T> {
            type Element = T;

            fn address(&self) -> u64 {
                $other::DeviceMemory::address(self)
            }

            fn bytes(&self) -> usize {
                $other::DeviceMemory::bytes(self)
            }

            fn device(&self) -> i32 {
                $other::DeviceMemory::device(self)
            }
        }

        // SAFETY: as above.
        unsafe impl<T: $own::Element + $other::Element> $own::DeviceMemoryMut for $other::DeviceBuffer<T> {}

        $own::take_buffers!(@element $own, $other, BF16);
        $own::take_buffers!(@element $own, $other, F16);
        $own::take_buffers!(@element $own, $other, F8E4M3);
        $own::take_buffers!(@element $own, $other, F8E5M2);
    };
    (@element $own:ident, $other:ident, $name:ident) => {
        // SAFETY: both are the bits of such a number.
        unsafe impl $own::Element for $other::$name {
            type Same = $own::$name;
            const DTYPE: $own::Dtype = $own::Dtype::$name;
        }
    };
}

pub(crate) use take_buffers;
