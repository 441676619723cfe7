// ---- Inner: devices

struct Device {
    handle: c_int,
    sm_count: i32,
    major: i32,
    minor: i32,
    name: String,
    /// Its primary context, or 0 if nobody needed it.
    primary: AtomicUsize,
}

static KNOWN: [OnceLock<Device>; DEVICES] = [const { OnceLock::new() }; DEVICES];

/// With the lock held.
fn ask_device(driver: &Driver, number: i32) -> Result<Device> {
    let (mut handle, mut asked) = (0, [0; 3]);
    let mut name = [0 as c_char; 128];
    // SAFETY: places for what is asked for.
    let mut code = unsafe { (driver.device_get)(&mut handle, number) };
    for (place, attribute) in asked.iter_mut().zip([CU_MULTIPROCESSOR_COUNT, CU_CAPABILITY_MAJOR, CU_CAPABILITY_MINOR])
    {
        if code == 0 {
            code = unsafe { (driver.device_attribute)(place, attribute, handle) };
        }
    }
    if code == 0 {
        code = unsafe { (driver.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, handle) };
    }
    if code != 0 {
        let why = cuda_error(code);
        return failed(Status::NoDevice, format!("device {number} does not answer: {why}"));
    }
    // SAFETY: the last place was left as it was: 0.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let [sm_count, major, minor] = asked;
    Ok(Device { handle, sm_count, major, minor, name, primary: AtomicUsize::new(0) })
}

fn need_device(number: i32) -> Result<&'static Device> {
    let started = need_driver()?;
    let count = started.device_count;
    let place = match usize::try_from(number) {
        Ok(index) if number < count && index < DEVICES => &KNOWN[index],
        _ => return failed(Status::NoDevice, format!("there is no device {number}: the driver has {count}")),
    };
    if let Some(device) = place.get() {
        return Ok(device);
    }
    let guard = lock();
    if place.get().is_none() {
        let device = ask_device(&started.driver, number)?;
        return Ok(place.get_or_init(|| device));
    }
    drop(guard);
    need_device(number)
}

/// The device of this thread's context, or the first one.
fn current_device() -> i32 {
    let Ok(started) = need_driver() else { return 0 };
    let (mut context, mut device) = (ptr::null_mut(), 0);
    // SAFETY: places for what is asked for.
    let is_known = unsafe {
        (started.driver.context_current)(&mut context) == 0
            && !context.is_null()
            && (started.driver.context_device)(&mut device) == 0
    };
    if is_known { device } else { 0 }
}

/// The device of a tensor; -1 if nobody knows, as without a driver.
fn device_of(name: &str, tensor: &Raw) -> Result<i32> {
    if tensor.device >= 0 || tensor.data == 0 || tensor.is_empty() {
        return Ok(tensor.device);
    }
    let Ok(started) = need_driver() else { return Ok(tensor.device) };
    let mut found: c_int = -1;
    // SAFETY: a place for the number of a device; any address may be asked about.
    let code =
        unsafe { (started.driver.pointer_attribute)(ptr::from_mut(&mut found).cast(), CU_DEVICE_ORDINAL, tensor.data) };
    if code == CU_INVALID_VALUE {
        let address = tensor.data;
        return failed(Status::Device, format!("`{name}`: {address:#x} is the address of no memory that CUDA knows"));
    }
    Ok(if code == 0 { found } else { -1 })
}

/// Whether a cubin runs on a compute capability: an `a` target on its own, others on later minor revisions too.
fn runs_on(cubin: &Cubin, major: i32, minor: i32) -> bool {
    if cubin.major != major {
        return false;
    }
    if cubin.specific == b'a' { cubin.minor == minor } else { cubin.minor <= minor }
}

/// The build for a device: the first that runs there.
fn build_for(set: &'static Set, number: i32) -> Result<&'static Build> {
    let device = need_device(number)?;
    let found = set.builds.iter().find(|build| runs_on(build.cubin, device.major, device.minor));
    if let Some(build) = found {
        return Ok(build);
    }
    let targets: Vec<&str> = set.builds.iter().map(|build| build.cubin.target).collect();
    let (file, targets) = (set.builds[0].cubin.file, targets.join(", "));
    let Device { name, major, minor, .. } = device;
    failed(
        Status::Architecture,
        format!("{file} is built for {targets}, device {number} ({name}) is sm_{major}{minor}"),
    )
}

impl Call<'_> {
    /// The device of an argument, for which the driver is asked once in a call; -1 of a number. What was said in other
    /// calls does not count, for memory is freed and given out again.
    fn device_of_argument(&mut self, number: usize, name: &str) -> Result<i32> {
        let Some(tensor) = self.arguments[number].tensor else { return Ok(-1) };
        if let Some(device) = self.devices[number] {
            return Ok(device);
        }
        let device = device_of(name, tensor)?;
        self.devices[number] = Some(device);
        Ok(device)
    }

    /// That all tensors lie on one device, which becomes the call's.
    fn take_device(&mut self) -> Result<()> {
        let mut first = None;
        self.device = -1;
        for (number, parameter) in self.kernel.parameters.iter().enumerate() {
            let device = self.device_of_argument(number, parameter.name)?;
            if device < 0 {
                continue;
            }
            let owner = *first.get_or_insert(parameter.name);
            if self.device < 0 {
                self.device = device;
            }
            if device != self.device {
                let (name, other) = (parameter.name, self.device);
                return failed(Status::Device, format!("`{name}` is on device {device}, `{owner}` on device {other}"));
            }
        }
        Ok(())
    }

    /// Where no tensor says the device, that of the stream, or else the current one.
    fn likely_device(&self) -> i32 {
        let said = if self.device < 0 { self.on } else { self.device };
        if said < 0 { current_device() } else { said }
    }

    /// What choices and persistent grids ask of the device. Without a driver, a check, and a launch of no programs, go
    /// on as if for some device.
    fn need_machine(&mut self) -> Result<()> {
        if self.sm_count != 0 {
            return Ok(());
        }
        match need_device(self.likely_device()) {
            Ok(device) => {
                self.sm_count = device.sm_count;
                self.card = &device.name;
            }
            Err(error) if self.needs_driver && self.programs > 0 => return Err(error),
            Err(_) => self.sm_count = 1,
        }
        Ok(())
    }
}
