// ---- Inner: contexts and machine code

/// The context of a device, current until it is dropped.
struct Entered(Option<&'static Driver>);

/// Makes the context of a device current, if it is not.
fn enter(number: i32) -> Result<Entered> {
    try_enter(number)?.or_else(|code| {
        let why = cuda_error(code);
        failed(Status::NoDevice, format!("device {number} has no context: {why}"))
    })
}

/// The same, with what the driver says where it refuses.
fn try_enter(number: i32) -> Result<std::result::Result<Entered, c_int>> {
    let device = need_device(number)?;
    let driver = &need_driver()?.driver;
    let (mut context, mut current) = (ptr::null_mut(), -1);
    // SAFETY: places for what is asked for.
    let mut code = unsafe { (driver.context_current)(&mut context) };
    if code == 0 && !context.is_null() {
        code = unsafe { (driver.context_device)(&mut current) };
        if code == 0 && current == device.handle {
            return Ok(Ok(Entered(None)));
        }
    }
    let guard = lock();
    context = device.primary.load(Ordering::Relaxed) as *mut c_void;
    code = 0;
    if context.is_null() {
        // SAFETY: a place for the context.
        code = unsafe { (driver.primary_retain)(&mut context, device.handle) };
        if code == 0 {
            device.primary.store(context as usize, Ordering::Relaxed);
        }
    }
    drop(guard);
    if code == 0 {
        // SAFETY: a context that is retained for as long as the program runs.
        code = unsafe { (driver.context_push)(context) };
    }
    Ok(if code == 0 { Ok(Entered(Some(driver))) } else { Err(code) })
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(driver) = self.0 {
            let mut context = ptr::null_mut();
            // SAFETY: what was pushed is taken off.
            unsafe { (driver.context_pop)(&mut context) };
        }
    }
}

/// With the lock held, in the context of the device.
fn load_entry(cubin: &Cubin, variant: &Variant, number: i32) -> Result<()> {
    let driver = &need_driver()?.driver;
    let (state, entry) = (&cubin.state, &cubin.state.entries[variant.entry]);
    let not_loaded = |code| {
        let (file, symbol, why) = (cubin.file, variant.symbol, cuda_error(code));
        failed(Status::Load, format!("{file}: the driver does not load `{symbol}`: {why}"))
    };
    if state.library.load(Ordering::Relaxed) == 0 {
        let (image, none, nothing) = (cubin.image.as_ptr().cast(), ptr::null_mut(), ptr::null_mut());
        let mut library = ptr::null_mut();
        // SAFETY: a cubin, aligned as any allocation is, and no options.
        let code = unsafe { (driver.library_load)(&mut library, image, none, nothing, 0, none, nothing, 0) };
        if code != 0 {
            return not_loaded(code);
        }
        state.library.store(library as usize, Ordering::Relaxed);
    }
    let mut function = entry.function.load(Ordering::Relaxed) as *mut c_void;
    if function.is_null() {
        let library = state.library.load(Ordering::Relaxed) as *mut c_void;
        let symbol = std::ffi::CString::new(variant.symbol).unwrap_or_default();
        // SAFETY: a library of the driver, and a text that ends.
        let code = unsafe { (driver.library_kernel)(&mut function, library, symbol.as_ptr()) };
        if code != 0 {
            return not_loaded(code);
        }
        entry.function.store(function as usize, Ordering::Relaxed);
    }
    let bytes = variant.static_bytes + variant.dynamic_bytes;
    if variant.dynamic_bytes != 0 && bytes > 48 * 1024 {
        let (wanted, device) = (variant.dynamic_bytes as c_int, need_device(number)?.handle);
        // SAFETY: a kernel of the driver.
        let code = unsafe { (driver.kernel_set)(CU_MAX_DYNAMIC_SHARED_BYTES, wanted, function, device) };
        if code != 0 {
            let (symbol, why) = (variant.symbol, cuda_error(code));
            return failed(Status::Launch, format!("`{symbol}` needs {bytes} bytes of shared memory: {why}"));
        }
    }
    entry.ready_on.fetch_or(1 << number, Ordering::Release);
    Ok(())
}

/// The entry point of a variant on a device, whose context is current.
fn need_entry(cubin: &Cubin, variant: &Variant, number: i32) -> Result<*mut c_void> {
    let entry = &cubin.state.entries[variant.entry];
    let is_ready = || entry.ready_on.load(Ordering::Acquire) & 1 << number != 0;
    if !is_ready() {
        let _guard = lock();
        if !is_ready() {
            load_entry(cubin, variant, number)?;
        }
    }
    Ok(entry.function.load(Ordering::Relaxed) as *mut c_void)
}

/// Loads all that some sets launch, before the first launch does.
pub(super) fn preload(sets: &[&'static Set], number: i32) -> Result<()> {
    let _entered = enter(number)?;
    for set in sets {
        let build = build_for(set, number)?;
        for kernel in build.groups.iter().flat_map(|group| group.kernels) {
            for variant in kernel.variants {
                need_entry(build.cubin, variant, number)?;
            }
        }
    }
    Ok(())
}
