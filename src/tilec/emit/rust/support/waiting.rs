// ---- Inner: waiting until what was borrowed may be given back

/// Errors after which nothing of this process runs on the device any more: a driver or a context that is gone (4, 709),
/// memory or links that are broken (214, 220, 226), and those of kernels, after which "any further CUDA work will return
/// the same error" (cuda.h, CUresult).
const ENDED: [c_int; 15] = [4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721];
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.
const CAPTURING: std::ops::RangeInclusive<c_int> = 900..=908;
const CAPTURE_LIMIT: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Returns when a stream has done all that it was given. It does so by any means, for what kernels use is borrowed only
/// until then: no error of the driver may cut that short but one after which nothing runs.
///
/// While a blocking stream is captured, by whatever library, CUDA refuses to wait for the default stream (CUDA
/// Programming Guide, "Prohibited and Unhandled Operations"): the capture is waited for then. Other refusals: all of the
/// context is waited for. Where that is refused too, the process ends: to return would be to give memory back that
/// kernels write.
fn settle(stream: *mut c_void, device: i32) -> Result<()> {
    let code = settled_by(stream, device);
    if code == 0 {
        return Ok(());
    }
    let why = cuda_error(code);
    if !ENDED.contains(&code) {
        eprintln!("tilec: device {device} does not say when its work on borrowed memory is done: {why}");
        std::process::abort();
    }
    failed(Status::Launch, format!("work on a stream failed: {why}"))
}

/// What the driver says last; 0 where the work is done.
fn settled_by(stream: *mut c_void, device: i32) -> c_int {
    let (Ok(entered), Ok(started)) = (try_enter(device), need_driver()) else { return CU_INVALID_VALUE };
    let _entered = match entered {
        Ok(entered) => entered,
        Err(code) => return code,
    };
    let driver = &started.driver;
    // SAFETY: a stream of the driver, in the context of its device.
    let wait = || unsafe { (driver.stream_wait)(stream) };
    let mut code = wait();
    let since = Instant::now();
    while CAPTURING.contains(&code) && since.elapsed() < CAPTURE_LIMIT {
        std::thread::sleep(BETWEEN_LOOKS);
        // Looking does not spoil the capture, as waiting does.
        if !is_captured_nearby(driver, stream) {
            code = relaxed(driver, wait);
        }
    }
    if let Some(wait) = driver.context_wait.filter(|_| code != 0 && !ENDED.contains(&code)) {
        // SAFETY: in the context of the device.
        code = relaxed(driver, || unsafe { wait() });
    }
    code
}

/// Whether a stream is being captured or, of the default one, a stream that it waits for.
fn is_captured_nearby(driver: &Driver, stream: *mut c_void) -> bool {
    let mut how = 0;
    // SAFETY: a stream of the driver, and a place for what is asked for.
    let looked = driver.stream_captured.map(|captured| unsafe { captured(stream, &mut how) });
    looked.is_some_and(|code| CAPTURING.contains(&code) || how != 0)
}

/// Calls with this thread allowed to do what only may disturb captures of other streams.
fn relaxed(driver: &Driver, call: impl FnOnce() -> c_int) -> c_int {
    let mut mode = CU_CAPTURE_RELAXED;
    let exchange = |mode: &mut c_int| {
        // SAFETY: a mode, whose place gets the one before.
        driver.exchange_capture_mode.map(|exchange| unsafe { exchange(mode) })
    };
    let is_exchanged = exchange(&mut mode) == Some(0);
    let code = call();
    if is_exchanged {
        exchange(&mut mode);
    }
    code
}

/// What a call that waits gives: `started` says whether the stream was given anything.
fn settled<R>(result: Result<R>, started: &Cell<bool>, stream: &Stream) -> Result<R> {
    if !started.get() {
        return result;
    }
    let waited = settle(stream.handle, stream.device);
    result.and_then(|made| waited.map(|()| made))
}
