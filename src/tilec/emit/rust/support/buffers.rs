// ---- Public: memory

/// Memory of a device for elements of one type; given back when it is dropped. Copies to and from the host return when
/// they are done.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    address: u64,
    length: usize,
    device: i32,
    elements: PhantomData<T>,
}

impl<T: Element> DeviceBuffer<T> {
    /// So many elements whose bits are 0.
    ///
    /// Errors: `NoDevice` where there is no such device, `Limit` where it has not so much memory.
    pub fn zeroed(device: i32, length: usize) -> Result<Self> {
        let _entered = enter(device)?;
        let driver = &need_driver()?.driver;
        let allocate = needed(driver.memory_allocate, c"cuMemAlloc_v2")?;
        let set = needed(driver.memory_set, c"cuMemsetD8_v2")?;
        let Some(bytes) = length.checked_mul(size_of::<T>()) else {
            return failed(Status::Limit, format!("a buffer of {length} elements is too large"));
        };
        let mut buffer = DeviceBuffer { address: 0, length, device, elements: PhantomData };
        if bytes == 0 {
            return Ok(buffer);
        }
        // SAFETY: a place for an address.
        let code = unsafe { allocate(&mut buffer.address, bytes) };
        if code != 0 {
            let why = cuda_error(code);
            return failed(Status::Limit, format!("device {device} gives no {bytes} bytes: {why}"));
        }
        // SAFETY: the memory that was just given.
        let code = unsafe { set(buffer.address, 0, bytes) };
        copied(device, code)?;
        Ok(buffer)
    }

    /// A copy of elements of the host.
    pub fn from_slice(device: i32, elements: &[T]) -> Result<Self> {
        let mut buffer = Self::zeroed(device, elements.len())?;
        buffer.copy_from_slice(elements)?;
        Ok(buffer)
    }

    /// A copy of elements of the host into memory that is there.
    ///
    /// Errors: `Extent` for another number of elements.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        self.check_length(elements.len())?;
        if self.address == 0 {
            return Ok(());
        }
        let _entered = enter(self.device)?;
        let copy = needed(need_driver()?.driver.memory_to_device, c"cuMemcpyHtoD_v2")?;
        // SAFETY: both places hold so many bytes.
        let code = unsafe { copy(self.address, elements.as_ptr().cast(), size_of_val(elements)) };
        copied(self.device, code)
    }

    /// A copy of the elements for the host.
    ///
    /// Errors: `Extent` for another number of elements.
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<()> {
        self.check_length(elements.len())?;
        if self.address == 0 {
            return Ok(());
        }
        copy_to_host(self.device, self.address, elements)
    }

    pub fn to_vec(&self) -> Result<Vec<T>> {
        // SAFETY: all bits 0 are a value of every element type.
        let mut elements = vec![unsafe { zeroed() }; self.length];
        self.copy_to_slice(&mut elements)?;
        Ok(elements)
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn check_length(&self, given: usize) -> Result<()> {
        let length = self.length;
        if given != length {
            return failed(Status::Extent, format!("expected {length} elements, got {given}"));
        }
        Ok(())
    }
}

/// The bytes at an address, which are those of as many elements.
fn copy_to_host<T: Element>(device: i32, address: u64, elements: &mut [T]) -> Result<()> {
    let _entered = enter(device)?;
    let copy = needed(need_driver()?.driver.memory_to_host, c"cuMemcpyDtoH_v2")?;
    // SAFETY: both places hold so many bytes, and any that the device has are elements.
    let code = unsafe { copy(elements.as_mut_ptr().cast(), address, size_of_val(elements)) };
    copied(device, code)
}

/// Waits for the default stream: what is copied from pageable memory, or set, may still be on its way.
fn copied(device: i32, code: c_int) -> Result<()> {
    if code != 0 {
        let why = cuda_error(code);
        return failed(Status::Launch, format!("a copy of memory failed: {why}"));
    }
    Stream::of_device(device).wait()
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        if let (Ok(_entered), Ok(started)) = (enter(self.device), need_driver()) {
            if let Some(free) = started.driver.memory_free {
                // SAFETY: what this value was given; nothing borrows it any more.
                unsafe { free(self.address) };
            }
        }
    }
}

// SAFETY: the memory is this value's own, for as long as it lives.
unsafe impl<T: Element> DeviceMemory for DeviceBuffer<T> {
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

// SAFETY: whoever has it by `&mut` is alone.
unsafe impl<T: Element> DeviceMemoryMut for DeviceBuffer<T> {}
