// ---- Inner: the launch

impl Call<'_> {
    /// The parameters of the machine code, each in a cell of 64 bits, as docs/abi.md orders them; how many.
    fn pack(&self, cells: &mut [u64; SLOTS]) -> usize {
        let mut count = 0;
        let mut put = |cell| {
            cells[count] = cell;
            count += 1;
        };
        for (p, given) in self.arguments.iter().enumerate() {
            let Some(tensor) = given.tensor else {
                put(self.bits[p]);
                continue;
            };
            put(tensor.data);
            for axis in 0..tensor.rank() - 1 {
                put(tensor.step(axis) as u64);
            }
        }
        for value in &self.values[..self.kernel.dims.len()] {
            put(value.whole as u64);
        }
        count
    }

    /// So many of the blocks of a persistent variant that all their clusters run at one time: multiprocessors come in
    /// groups, which hold whole clusters, and a cluster without room would begin when all others are done.
    fn fit_clusters(&self, driver: &Driver, variant: &Variant, function: *mut c_void, config: &mut LaunchConfig) {
        let (along, grid) = (variant.cluster[0], config.grid[0]);
        if variant.persistent == 0 || along <= 2 {
            return;
        }
        let entry = &self.build.cubin.state.entries[variant.entry];
        let on = u64::from(self.device as u32 + 1) << 32;
        let mut known = entry.clusters.load(Ordering::Relaxed);
        if known & !0xffff_ffff != on {
            let mut clusters = 0;
            config.grid[0] = (variant.persistent * self.sm_count as u32 / along * along).max(along);
            // SAFETY: a place for the number, a function and a whole configuration.
            if unsafe { (driver.clusters_at_once)(&mut clusters, function, config) } != 0 {
                clusters = 0;
            }
            known = on | clusters.max(0) as u64;
            entry.clusters.store(known, Ordering::Relaxed);
        }
        let room = known as u32 * along;
        config.grid[0] = if room > 0 { grid.min(room) } else { grid };
    }

    /// In the context of the device.
    fn start(&self, driver: &Driver, variant: &Variant, stream: *mut c_void, early: bool) -> Result<()> {
        let function = need_entry(self.build.cubin, variant, self.device)?;
        let (mut cells, mut maps) = ([0u64; SLOTS], [NO_MAP; MAPS]);
        let mut slots = [ptr::null_mut::<c_void>(); SLOTS];
        let count = self.pack(&mut cells);
        for (slot, cell) in slots.iter_mut().zip(&mut cells[..count]) {
            *slot = ptr::from_mut(cell).cast();
        }
        for ((slot, map), wanted) in slots[count..].iter_mut().zip(&mut maps).zip(variant.maps) {
            *map = self.need_map(driver, wanted)?;
            *slot = ptr::from_mut(map).cast();
        }
        let [x, y, z] = self.grid;
        let (threads, shared, none) = (variant.threads, variant.dynamic_bytes, ptr::null_mut());
        let early = early && variant.starts_early;
        let code = if variant.cluster == [1, 1, 1] && !early {
            // SAFETY: slots point to the parameters of the kernel, as its manifest lists them.
            unsafe { (driver.launch)(function, x, y, z, threads, 1, 1, shared, stream, slots.as_mut_ptr(), none) }
        } else {
            let mut attributes = Vec::with_capacity(2);
            if variant.cluster != [1, 1, 1] {
                attributes.push(attribute(CU_CLUSTER_DIMENSION, &variant.cluster));
            }
            if early {
                attributes.push(attribute(CU_PROGRAMMATIC_STREAM_SERIALIZATION, &[1]));
            }
            let mut config = LaunchConfig {
                grid: self.grid,
                block: [threads, 1, 1],
                shared_bytes: shared,
                stream,
                attributes: attributes.as_mut_ptr(),
                attribute_count: attributes.len() as c_uint,
            };
            self.fit_clusters(driver, variant, function, &mut config);
            // SAFETY: as above, and a whole configuration.
            unsafe { (driver.launch_extended)(&config, function, slots.as_mut_ptr(), none) }
        };
        if code != 0 {
            let (kernel, why) = (self.kernel.symbol, cuda_error(code));
            return failed(Status::Launch, format!("`{kernel}` was not launched: {why}"));
        }
        Ok(())
    }

    /// What is left to find out once the contract is known to hold and there is something to launch on a stream of
    /// device `on`; -1: of any.
    fn take_machine(&mut self, on: i32) -> Result<()> {
        if self.device < 0 {
            self.device = if on < 0 { current_device() } else { on };
        }
        let device = need_device(self.device)?;
        self.build = build_for(self.set, self.device)?;
        self.sm_count = device.sm_count;
        Ok(())
    }

    /// That a stream is one of the device; for machines with several. The default streams are of every device.
    fn check_stream(&self, stream: *mut c_void, on: i32) -> Result<()> {
        if on >= 0 && on != self.device {
            return self.not_of(on);
        }
        let started = need_driver()?;
        let Some(stream_device) = started.driver.stream_device.filter(|_| started.device_count > 1) else {
            return Ok(());
        };
        let mut device = -1;
        // SAFETY: a stream, and a place for the number of its device.
        if stream as usize <= 2 || unsafe { stream_device(stream, &mut device) } != 0 {
            return Ok(());
        }
        if device == need_device(self.device)?.handle {
            return Ok(());
        }
        self.not_of(device)
    }

    #[cold]
    fn not_of(&self, stream: i32) -> Result<()> {
        let (kernel, device) = (self.kernel.symbol, self.device);
        failed(Status::Device, format!("`{kernel}`: the tensors are on device {device}, the stream on device {stream}"))
    }
}

fn attribute(id: c_int, numbers: &[u32]) -> LaunchAttribute {
    let mut value = [0; 16];
    value[..numbers.len()].copy_from_slice(numbers);
    LaunchAttribute { id, padding: [0; 4], value }
}

/// Checks the contract and starts the kernel on a stream, which is one of device `on`; -1: of any.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until the kernel is done.
pub(super) unsafe fn launch(set: &'static Set, stream: *mut c_void, on: i32, arguments: &[Argument<'_>]) -> Result<()> {
    let mut call = Call::new(set, arguments, true);
    let variant = call.work_out()?;
    if call.programs == 0 {
        return Ok(()); // without programs there is nothing to do, and that is success
    }
    call.take_machine(on)?;
    call.check_stream(stream, on)?;
    let _entered = enter(call.device)?;
    call.start(&need_driver()?.driver, variant, stream, false)
}
