// ---- Public: tensors

fn packed_strides(extents: &[i64]) -> Vec<i64> {
    let mut stride = 1i64;
    let mut strides = vec![0; extents.len()];
    for (place, &extent) in strides.iter_mut().zip(extents).rev() {
        *place = stride;
        stride = stride.wrapping_mul(extent.max(1)); // wraps only above what launches take
    }
    strides
}

fn signed(numbers: &[usize]) -> Vec<i64> {
    numbers.iter().map(|&number| i64::try_from(number).unwrap_or(i64::MAX)).collect()
}

/// A tensor in memory that has room for it.
fn fitted<M: DeviceMemory + ?Sized>(memory: &M, first: usize, extents: &[i64], strides: &[i64]) -> Result<Raw> {
    let dtype = M::Element::DTYPE;
    let offset = first as i128 * i128::from(dtype.bytes());
    let raw = Raw::new(memory.address().wrapping_add(offset as u64), dtype, memory.device(), extents, strides)?;
    let mut last = i128::from(dtype.bytes());
    for (&extent, &stride) in extents.iter().zip(strides) {
        let step = i128::from(extent - 1).checked_mul(i128::from(stride) * i128::from(dtype.bytes()));
        last = last.saturating_add(step.unwrap_or(i128::MAX));
    }
    if !raw.is_empty() && offset.saturating_add(last) > memory.bytes() as i128 {
        let (shape, steps, bytes) = (tuple(extents), tuple(strides), memory.bytes());
        let needed = offset.saturating_add(last);
        return failed(
            Status::Extent,
            format!("shape {shape}, strides {steps} need {needed} bytes of memory, got {bytes}"),
        );
    }
    Ok(raw)
}

fn described(name: &str, raw: &Raw, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut fields = formatter.debug_struct(name);
    fields.field("dtype", &raw.dtype).field("address", &format_args!("{:#x}", raw.data));
    fields.field("extents", &raw.extents()).field("strides", &raw.strides()).finish_non_exhaustive()
}

macro_rules! tensors {
    ($(#[$attribute:meta])* $name:ident, $reference:ty, $memory:ident, $borrowed:ty) => {
        $(#[$attribute])*
        pub struct $name<'a, T> {
            pub(super) raw: Raw,
            borrowed: PhantomData<$reference>,
        }

        impl<T> fmt::Debug for $name<'_, T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                described(stringify!($name), &self.raw, formatter)
            }
        }

        impl<'a, T: Element<Same = T>> $name<'a, T> {
            /// All of a tensor without gaps, in row-major order, at the start of the memory.
            ///
            /// Errors: `Extent` where the memory is smaller, `Rank` for more than 8 axes.
            pub fn new<M>(memory: $borrowed, extents: impl AsRef<[usize]>) -> Result<Self>
            where
                M: $memory + ?Sized,
                M::Element: Element<Same = T>,
            {
                let extents = signed(extents.as_ref());
                let raw = fitted(memory, 0, &extents, &packed_strides(&extents))?;
                Ok(Self { raw, borrowed: PhantomData })
            }

            /// A tensor of any strides, whose first element is element `first` of the memory.
            ///
            /// Errors: `Extent` where the memory is smaller, `Rank` for more than 8 axes.
            pub fn strided<M>(
                memory: $borrowed,
                first: usize,
                extents: impl AsRef<[usize]>,
                strides: impl AsRef<[usize]>,
            ) -> Result<Self>
            where
                M: $memory + ?Sized,
                M::Element: Element<Same = T>,
            {
                let raw = fitted(memory, first, &signed(extents.as_ref()), &signed(strides.as_ref()))?;
                Ok(Self { raw, borrowed: PhantomData })
            }

            /// A tensor at an address. `device` is the driver's number of its device, or -1 to ask the driver.
            ///
            /// # Safety
            /// The memory that extents and strides reach is of the device, and stays alive for `'a`; nobody else writes
            /// it, nor reads it if kernels are to write it.
            pub unsafe fn from_raw(address: u64, extents: &[i64], strides: &[i64], device: i32) -> Result<Self> {
                let raw = Raw::new(address, T::DTYPE, device, extents, strides)?;
                Ok(Self { raw, borrowed: PhantomData })
            }

            pub fn extents(&self) -> &[i64] {
                self.raw.extents()
            }

            pub fn strides(&self) -> &[i64] {
                self.raw.strides()
            }

            pub fn address(&self) -> u64 {
                self.raw.data
            }
        }
    };
}

tensors!(
    /// A tensor that kernels read. It borrows its memory.
    Tensor, &'a T, DeviceMemory, &'a M
);
tensors!(
    /// A tensor that kernels may write. It borrows its memory exclusively.
    TensorMut, &'a mut T, DeviceMemoryMut, &'a mut M
);

impl<T: Element<Same = T>> Tensor<'_, T> {
    /// A copy of a tensor without gaps for the host, in row-major order.
    ///
    /// Errors: `Stride` for a tensor with gaps.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let raw = &self.raw;
        let packed = packed_strides(raw.extents());
        if !raw.is_empty() && (0..raw.rank()).any(|axis| raw.step(axis) != 0 && raw.strides[axis] != packed[axis]) {
            let (strides, shape) = (tuple(raw.strides()), tuple(raw.extents()));
            return failed(
                Status::Stride,
                format!("expected a tensor without gaps, got strides {strides} (shape {shape})"),
            );
        }
        let count = (raw.span_bytes() / i128::from(raw.dtype.bytes())) as usize;
        // SAFETY: all bits 0 are a value of every element type.
        let mut elements = vec![unsafe { zeroed::<T>() }; count];
        if count > 0 {
            copy_to_host(device_of("tensor", raw)?, raw.data, &mut elements)?;
        }
        Ok(elements)
    }
}

impl<T> Clone for Tensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tensor<'_, T> {}

impl<T> TensorMut<'_, T> {
    /// The tensor to read, for as long as nobody writes it.
    pub fn as_tensor(&self) -> Tensor<'_, T> {
        Tensor { raw: self.raw, borrowed: PhantomData }
    }

    /// The tensor for a shorter time.
    pub fn reborrow(&mut self) -> TensorMut<'_, T> {
        TensorMut { raw: self.raw, borrowed: PhantomData }
    }
}
