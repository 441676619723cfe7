// ---- Inner: the workspace of a pipeline

/// Where slots begin, as what cuMemAlloc gives does.
const SLOT_BYTES: i128 = 256;
/// Where nothing lies, for when there is no workspace yet; no better aligned than any other.
const SOMEWHERE: u64 = (1 << 62) + SLOT_BYTES as u64;

fn temporary_of(temporary: &Temporary, call: &Call<'_>) -> Result<Raw> {
    let name = temporary.name;
    let mut extents = Vec::with_capacity(temporary.extents.len());
    let mut count = 1i128;
    for claim in temporary.extents {
        let mut e = Evaluation::default();
        let extent = (call.kernel.evaluate)(claim.expression, &call.values, &mut e);
        if e.overflow {
            return too_large(claim, call);
        }
        if !(0..=COUNT_LIMIT).contains(&extent) {
            return failed(Status::Limit, format!("the temporary `{name}` has the extent {extent}"));
        }
        extents.push(extent as i64);
        count = count.saturating_mul(extent.max(1));
    }
    if count > ELEMENT_LIMIT {
        return failed(Status::Limit, format!("the temporary `{name}` has more than 2^60 elements"));
    }
    Raw::new(0, temporary.dtype, call.device, &extents, &packed_strides(&extents))
}

impl Run {
    /// The extents of the temporaries, and where they lie: slots one after the other, each as large as its largest.
    fn take_temporaries(&mut self, call: &Call<'_>) -> Result<()> {
        let (first, temporaries) = (self.tensors.len(), self.pipeline.temporaries);
        for temporary in temporaries {
            let tensor = temporary_of(temporary, call)?;
            let size = (tensor.span_bytes() + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
            self.slots[temporary.slot] = self.slots[temporary.slot].max(size);
            self.tensors.push(tensor);
        }
        for slot in &mut self.slots {
            let size = std::mem::replace(slot, self.bytes);
            self.bytes += size;
        }
        if self.bytes > i128::from(i64::MAX) {
            let bytes = self.bytes;
            return failed(Status::Limit, format!("the workspace has {bytes} bytes, more than there are addresses"));
        }
        for (tensor, temporary) in self.tensors[first..].iter_mut().zip(temporaries) {
            tensor.data = self.workspace.wrapping_add(self.slots[temporary.slot] as u64);
        }
        Ok(())
    }

    /// Puts the temporaries into a workspace: in the parameters of all steps, too.
    fn place(&mut self, workspace: u64) {
        let parameters = self.pipeline.contract.parameters.len();
        let moved = workspace.wrapping_sub(self.workspace);
        self.workspace = workspace;
        for tensor in &mut self.tensors[parameters..] {
            tensor.data = tensor.data.wrapping_add(moved);
        }
        for step in &mut self.steps {
            let mut cell = 0;
            for (given, parameter) in step.launch.given.iter().zip(step.ready.kernel.parameters) {
                if matches!(given, Given::Tensor(number, _) if *number >= parameters) {
                    step.cells[cell] = step.cells[cell].wrapping_add(moved);
                }
                cell += parameter.extents.len().max(1);
            }
        }
    }

    /// That a workspace that the caller brought will do.
    fn check_workspace(&self, given: &Raw) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let (bytes, got, start) = (self.bytes, given.span_bytes(), i128::from(given.data));
        if given.rank != 1 || given.strides[0] != 1 {
            return failed(Status::Workspace, String::from("expected a workspace of one axis, without gaps"));
        }
        if got < bytes {
            return failed(Status::Workspace, format!("expected a workspace of {bytes} bytes, got {got}"));
        }
        if start == 0 || start % SLOT_BYTES != 0 {
            return failed(
                Status::Workspace,
                format!("expected a workspace at a multiple of {SLOT_BYTES} bytes, got {start:#x}"),
            );
        }
        let end = start + bytes;
        if end > ADDRESS_END {
            return failed(
                Status::Workspace,
                format!("the workspace: {bytes} bytes from address {start:#x} on pass the end of the address space"),
            );
        }
        for (parameter, tensor) in self.pipeline.contract.parameters.iter().zip(&self.tensors) {
            let first = i128::from(tensor.data);
            let last = first + tensor.span_bytes();
            // What stands for a number lies at address 0, before any workspace.
            if !tensor.is_empty() && first < end && start < last {
                let name = parameter.name;
                let places = format!("bytes {start:#x} to {end:#x} and {first:#x} to {last:#x}");
                return failed(Status::Workspace, format!("the workspace overlaps `{name}`: {places}"));
            }
        }
        let device = device_of("workspace", given)?;
        if device >= 0 && device != self.device {
            let other = self.device;
            return failed(Status::Device, format!("the workspace is on device {device}, the tensors on {other}"));
        }
        Ok(())
    }

    /// Memory for the temporaries, in the order of a stream.
    fn take_workspace(&mut self, driver: &Driver, stream: *mut c_void) -> Result<Taken> {
        let mut taken = Taken { address: 0, stream, give: None };
        if self.bytes > 0 {
            let take = needed(driver.memory_take, c"cuMemAllocAsync")?;
            let give = needed(driver.memory_give, c"cuMemFreeAsync")?;
            // SAFETY: a place for an address.
            let code = unsafe { take(&mut taken.address, self.bytes as usize, stream) };
            if code != 0 {
                let (symbol, bytes, why) = (self.pipeline.contract.symbol, self.bytes, cuda_error(code));
                return failed(
                    Status::Memory,
                    format!("`{symbol}` was not launched: no workspace of {bytes} bytes: {why}"),
                );
            }
            taken.give = Some(give);
        }
        self.place(taken.address);
        Ok(taken)
    }
}

/// Memory of a stream, which comes back when this is dropped and the stream has done what it was given.
struct Taken {
    address: u64,
    stream: *mut c_void,
    give: Option<unsafe extern "C" fn(u64, *mut c_void) -> c_int>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(give) = self.give {
            // SAFETY: what was taken on this stream.
            unsafe { give(self.address, self.stream) };
        }
    }
}
