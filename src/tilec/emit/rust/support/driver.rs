// ---- Inner: the CUDA driver, found and started

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;

fn lacks<T>(name: &CStr) -> Result<T> {
    let name = name.to_string_lossy();
    failed(Status::NoDriver, format!("the CUDA driver has no `{name}`: CUDA 12 or later is needed"))
}

/// A function that only some programs need.
fn needed<F>(function: Option<F>, name: &CStr) -> Result<F> {
    function.map_or_else(
        || {
            let name = name.to_string_lossy();
            failed(Status::NoDriver, format!("the CUDA driver has no `{name}`: a later one is needed"))
        },
        Ok,
    )
}

fn find(library: usize, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a handle of dlopen, and a text that ends.
    let found = unsafe { dlsym(library as *mut c_void, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

struct Started {
    library: usize,
    driver: Driver,
    device_count: i32,
}

static STARTED: OnceLock<Started> = OnceLock::new();
/// For all that is done once; holds what dlopen or the program gave, or 0.
static LOCK: Mutex<usize> = Mutex::new(0);

fn lock() -> MutexGuard<'static, usize> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of an error of the driver, its name.
fn cuda_error(code: c_int) -> String {
    let unknown = "an unknown error of CUDA";
    STARTED.get().map_or_else(|| String::from(unknown), |started| error_name(&started.driver, code))
}

fn error_name(driver: &Driver, code: c_int) -> String {
    let mut name = ptr::null();
    // SAFETY: a place for a pointer to a constant.
    unsafe { (driver.error_name)(code, &mut name) };
    if name.is_null() {
        return String::from("an unknown error of CUDA");
    }
    // SAFETY: the driver gave a text that ends.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// With the lock held.
fn open_driver(library: &mut usize) -> Result<Started> {
    if *library == 0 {
        // SAFETY: a text that ends.
        *library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW) } as usize;
    }
    if *library == 0 {
        // SAFETY: what it gives is a text of this thread, or nothing.
        let why = unsafe { dlerror() };
        let why = if why.is_null() {
            String::from("no reason given")
        } else {
            // SAFETY: it ends, and nothing of dlopen was called in between.
            unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned()
        };
        return failed(Status::NoDriver, format!("the CUDA driver cannot be loaded: {why}"));
    }
    let driver = Driver::find(*library)?;
    let mut device_count = 0;
    // SAFETY: flags are 0, and there is a place for the count.
    let mut code = unsafe { (driver.init)(0) };
    if code == 0 {
        code = unsafe { (driver.device_count)(&mut device_count) };
    }
    if code != 0 {
        let why = error_name(&driver, code);
        return failed(Status::NoDevice, format!("the CUDA driver does not start: {why}"));
    }
    Ok(Started { library: *library, driver, device_count })
}

/// The driver, started. Cheap from the second time on.
fn need_driver() -> Result<&'static Started> {
    if let Some(started) = STARTED.get() {
        return Ok(started);
    }
    let mut library = lock();
    if STARTED.get().is_none() {
        let started = open_driver(&mut library)?;
        return Ok(STARTED.get_or_init(|| started));
    }
    drop(library);
    need_driver()
}

/// Says which driver to use, before the first launch; otherwise `libcuda.so.1` is opened.
///
/// # Safety
/// `handle` is one of dlopen, of a library with the functions of a CUDA driver.
pub unsafe fn set_driver(handle: *mut c_void) -> Result<()> {
    let mut library = lock();
    if STARTED.get().is_some_and(|started| started.library != handle as usize) {
        return failed(Status::NoDriver, String::from("another CUDA driver is in use already"));
    }
    *library = handle as usize;
    drop(library);
    need_driver().map(|_| ())
}
