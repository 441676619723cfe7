// ---- Inner: the launch

impl Call<'_> {
    /// The parameters of the machine code, each in a cell of 64 bits, as docs/abi.md orders them.
    fn packed(&self) -> Vec<u64> {
        let dims = self.kernel.dims.len();
        let mut cells = Vec::with_capacity(16);
        for (given, value) in self.arguments.iter().zip(&self.values[dims..]) {
            let Some(tensor) = given.tensor else {
                cells.push(value.bits);
                continue;
            };
            cells.push(tensor.data);
            cells.extend((0..tensor.rank().saturating_sub(1)).map(|axis| tensor.step(axis) as u64));
        }
        cells.extend(self.values[..dims].iter().map(|value| value.whole as u64));
        cells
    }

    /// In the context of the device.
    fn start(&self, driver: &Driver, variant: &'static Variant, stream: *mut c_void) -> Result<()> {
        let cubin = self.build.cubin;
        let function = need_entry(cubin, variant, self.device)?;
        let (mut cells, mut maps) = (self.packed(), Vec::new());
        for wanted in variant.maps {
            maps.push(need_map(driver, self.kernel, wanted, self.arguments[wanted.parameter].raw())?);
        }
        let mut ready = Ready { kernel: self.kernel, variant, function, grid: self.grid };
        ready.fit_clusters(driver, cubin, self.device)?;
        // SAFETY: slots point to the parameters of the kernel, as its manifest lists them.
        unsafe { ready.send(driver, &mut slots_of(&mut cells, &mut maps), stream, false) }
    }

    /// What is left to find out once the contract is known to hold and there is something to launch.
    fn take_machine(&mut self) -> Result<()> {
        self.device = self.likely_device();
        let device = need_device(self.device)?;
        self.build = build_for(self.set, self.device)?;
        self.sm_count = device.sm_count;
        Ok(())
    }
}

/// Where each parameter of the machine code lies.
fn slots_of(cells: &mut [u64], maps: &mut [Map]) -> Vec<*mut c_void> {
    let mut slots = Vec::with_capacity(cells.len() + maps.len());
    slots.extend(cells.iter_mut().map(|cell| ptr::from_mut(cell).cast()));
    slots.extend(maps.iter_mut().map(|map| ptr::from_mut(map).cast()));
    slots
}

/// A launch that is worked out, as the driver is told of it.
#[derive(Clone, Copy)]
struct Ready {
    kernel: &'static Kernel,
    variant: &'static Variant,
    function: *mut c_void,
    grid: [u32; 3],
}

impl Ready {
    fn plan(&self, cubin: &Cubin, device: i32) -> Plan {
        let Ready { kernel, variant, grid, .. } = *self;
        Plan {
            kernel: kernel.symbol,
            variant: variant.symbol,
            target: cubin.target,
            grid,
            block: [variant.threads, 1, 1],
            cluster: variant.cluster,
            shared_bytes: variant.dynamic_bytes,
            device,
        }
    }

    /// Calls with the launch for cuLaunchKernelEx; `early`: it may begin while the one before it on its stream runs.
    fn configured<R>(&self, stream: *mut c_void, early: bool, call: impl FnOnce(&mut LaunchConfig) -> R) -> R {
        let mut attributes = [attribute(0, &[]); 2];
        let mut count = 0;
        if self.variant.cluster != [1, 1, 1] {
            attributes[count] = attribute(CU_CLUSTER_DIMENSION, &self.variant.cluster);
            count += 1;
        }
        if early {
            attributes[count] = attribute(CU_PROGRAMMATIC_SERIALIZATION, &[1]);
            count += 1;
        }
        call(&mut LaunchConfig {
            grid: self.grid,
            block: [self.variant.threads, 1, 1],
            shared_bytes: self.variant.dynamic_bytes,
            stream,
            attributes: attributes.as_mut_ptr(),
            attribute_count: count as c_uint,
        })
    }

    /// So many of the blocks of a persistent variant that all their clusters run at one time: multiprocessors come in
    /// groups, which hold whole clusters, and a cluster without room would begin when all others are done.
    fn fit_clusters(&mut self, driver: &Driver, cubin: &Cubin, device: i32) -> Result<()> {
        let (persistent, along) = (self.variant.persistent, self.variant.cluster[0]);
        if persistent == 0 || along <= 2 {
            return Ok(());
        }
        let entry = &cubin.state.entries[self.variant.entry];
        let on = u64::from(device as u32 + 1) << 32;
        let mut known = entry.clusters.load(Ordering::Relaxed);
        if known & !0xffff_ffff != on {
            let (mut clusters, sm_count) = (0, need_device(device)?.sm_count as u32);
            let code = self.configured(ptr::null_mut(), false, |config| {
                config.grid[0] = (persistent * sm_count / along * along).max(along);
                // SAFETY: a place for the number, a function and a whole configuration.
                unsafe { (driver.clusters_at_once)(&mut clusters, self.function, config) }
            });
            known = on | if code == 0 { clusters.max(0) as u64 } else { 0 };
            entry.clusters.store(known, Ordering::Relaxed);
        }
        let room = known as u32 * along;
        if room > 0 {
            self.grid[0] = self.grid[0].min(room);
        }
        Ok(())
    }

    /// Starts it, in the context of the device.
    ///
    /// # Safety
    /// Slots point to the parameters of the kernel.
    unsafe fn send(&self, driver: &Driver, slots: &mut [*mut c_void], stream: *mut c_void, early: bool) -> Result<()> {
        let [x, y, z] = self.grid;
        let (threads, shared, none) = (self.variant.threads, self.variant.dynamic_bytes, ptr::null_mut());
        let slots = slots.as_mut_ptr();
        let code = if self.variant.cluster == [1, 1, 1] && !early {
            // SAFETY: as the caller says.
            unsafe { (driver.launch)(self.function, x, y, z, threads, 1, 1, shared, stream, slots, none) }
        } else {
            // SAFETY: as the caller says, and a whole configuration.
            self.configured(stream, early, |config| unsafe {
                (driver.launch_extended)(config, self.function, slots, none)
            })
        };
        if code != 0 {
            let (kernel, why) = (self.kernel.symbol, cuda_error(code));
            return failed(Status::Launch, format!("`{kernel}` was not launched: {why}"));
        }
        Ok(())
    }
}

/// That a stream, which is one of device `on`, -1: of any, may be given what is on a device. The default streams are of
/// every device.
fn check_stream(symbol: &str, device: i32, stream: *mut c_void, on: i32) -> Result<()> {
    let refused = |found| {
        failed(Status::Device, format!("`{symbol}`: the tensors are on device {device}, the stream on device {found}"))
    };
    if on >= 0 && on != device {
        return refused(on);
    }
    let started = need_driver()?;
    let Some(stream_device) = started.driver.stream_device.filter(|_| started.device_count > 1) else {
        return Ok(());
    };
    let mut found = -1;
    // SAFETY: a stream, and a place for the number of its device.
    if stream as usize <= 2 || unsafe { stream_device(stream, &mut found) } != 0 {
        return Ok(());
    }
    if found == need_device(device)?.handle { Ok(()) } else { refused(found) }
}

fn attribute(id: c_int, numbers: &[u32]) -> LaunchAttribute {
    let mut value = [0; 16];
    value[..numbers.len()].copy_from_slice(numbers);
    LaunchAttribute { id, padding: [0; 4], value }
}

/// Checks the contract and starts the kernel on a stream, which is one of device `on`; -1: of any. `started` is set
/// where the stream may have been given something.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until the kernel is done.
pub(super) unsafe fn launch(
    set: &'static Set,
    stream: *mut c_void,
    on: i32,
    arguments: &[Argument<'_>],
    started: &Cell<bool>,
) -> Result<()> {
    let mut call = Call::new(set, arguments, true);
    call.on = on;
    let variant = call.work_out()?;
    if call.programs == 0 {
        return Ok(()); // without programs there is nothing to do, and that is success
    }
    call.take_machine()?;
    check_stream(call.kernel.symbol, call.device, stream, on)?;
    let _entered = enter(call.device)?;
    started.set(true);
    call.start(&need_driver()?.driver, variant, stream)
}
