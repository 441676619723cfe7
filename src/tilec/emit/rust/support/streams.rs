// ---- Public: streams

/// A stream of a device. Kernels on one stream run in order; the host waits by `wait`, by leaving a `scope`, or because
/// a launch function without a scope does.
#[derive(Debug)]
pub struct Stream {
    handle: *mut c_void,
    device: i32,
    is_owned: bool,
}

// SAFETY: the driver takes streams from any thread.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream of its own, which does not wait for the default stream.
    pub fn new(device: i32) -> Result<Stream> {
        let _entered = enter(device)?;
        let mut handle = ptr::null_mut();
        // SAFETY: a place for the stream.
        let code = unsafe { (need_driver()?.driver.stream_create)(&mut handle, CU_STREAM_NON_BLOCKING) };
        if code != 0 {
            let why = cuda_error(code);
            return failed(Status::Launch, format!("device {device} gives no stream: {why}"));
        }
        Ok(Stream { handle, device, is_owned: true })
    }

    /// The default stream of a device.
    pub const fn of_device(device: i32) -> Stream {
        Stream { handle: ptr::null_mut(), device, is_owned: false }
    }

    /// A stream of others, a `CUstream` or `cudaStream_t`.
    ///
    /// # Safety
    /// It is a stream of the device, not under capture, and outlives this value. It is not `CU_STREAM_PER_THREAD`, which
    /// is another stream in each thread: what one launches another would not wait for.
    pub const unsafe fn from_raw(handle: *mut c_void, device: i32) -> Stream {
        Stream { handle, device, is_owned: false }
    }

    pub fn as_raw(&self) -> *mut c_void {
        self.handle
    }

    pub fn device(&self) -> i32 {
        self.device
    }

    /// The handle, and the device, of which there are none below 0.
    fn parts(&self) -> Result<(*mut c_void, i32)> {
        let device = self.device;
        if device < 0 {
            return failed(Status::NoDevice, format!("there is no device {device}"));
        }
        Ok((self.handle, device))
    }

    /// Returns when all that was given to the stream is done.
    ///
    /// Errors: `Launch` for what went wrong while kernels ran.
    pub fn wait(&self) -> Result<()> {
        let _entered = enter(self.device)?;
        // SAFETY: a stream of the driver, in the context of its device.
        let code = unsafe { (need_driver()?.driver.stream_wait)(self.handle) };
        if code != 0 {
            let why = cuda_error(code);
            return failed(Status::Launch, format!("work on a stream failed: {why}"));
        }
        Ok(())
    }

    /// Calls `work`, in which kernels may be started without waiting for each, and waits for all of them before it
    /// returns: also where `work` fails or panics, as `std::thread::scope` does.
    ///
    /// Aborts: where the driver refuses to wait for kernels that were started. While another library captures a blocking
    /// stream it refuses to wait for the default stream; that is waited out for a minute.
    pub fn scope<'env, R>(
        &'env self,
        work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let scope = Scope { stream: self, started: Cell::new(false), scope: PhantomData, env: PhantomData };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&scope)));
        let waited = if scope.started.get() { settle(self.handle, self.device) } else { self.wait() };
        match result {
            Ok(result) => result.and_then(|made| waited.map(|()| made)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let (true, Ok(_entered), Ok(started)) = (self.is_owned, enter(self.device), need_driver()) {
            // SAFETY: a stream that this value made; the driver lets its work be done.
            unsafe { (started.driver.stream_destroy)(self.handle) };
        }
    }
}

/// In a `Stream::scope`: where kernels are started without waiting for each. What they use is borrowed until the scope
/// ends, and belongs to this scope alone: kernels on one stream run in order, on two they would not. A scope stays on its
/// thread: on another one the default stream may be that of another context.
pub struct Scope<'scope, 'env: 'scope> {
    stream: &'env Stream,
    /// Whether the stream was given anything.
    started: Cell<bool>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A tensor that kernels of a scope read.
pub struct InFlight<'scope, T> {
    pub(super) raw: Raw,
    scope: PhantomData<&'scope mut &'scope T>,
}

/// A tensor that kernels of a scope may write.
pub struct InFlightMut<'scope, T> {
    pub(super) raw: Raw,
    scope: PhantomData<&'scope mut &'scope mut T>,
}

impl<'scope> Scope<'scope, '_> {
    /// Lends a tensor to kernels that read it, until the scope ends.
    pub fn read<T>(&self, tensor: Tensor<'scope, T>) -> InFlight<'scope, T> {
        InFlight { raw: tensor.raw, scope: PhantomData }
    }

    /// Lends a tensor to kernels that may write it, until the scope ends.
    pub fn write<T>(&self, tensor: TensorMut<'scope, T>) -> InFlightMut<'scope, T> {
        InFlightMut { raw: tensor.raw, scope: PhantomData }
    }

    pub fn stream(&self) -> &Stream {
        self.stream
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scope").field("stream", self.stream).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for InFlight<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        described("InFlight", &self.raw, formatter)
    }
}

impl<T> fmt::Debug for InFlightMut<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        described("InFlightMut", &self.raw, formatter)
    }
}

impl<T> Clone for InFlight<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for InFlight<'_, T> {}

impl<'scope, T> InFlightMut<'scope, T> {
    /// The tensor for kernels that read what earlier ones write: those of a scope run in order.
    pub fn as_read(&self) -> InFlight<'scope, T> {
        InFlight { raw: self.raw, scope: PhantomData }
    }
}

/// Starts a kernel in a scope.
pub(super) fn launch_in(set: &'static Set, scope: &Scope<'_, '_>, arguments: &[Argument<'_>]) -> Result<()> {
    let (handle, device) = scope.stream.parts()?;
    // SAFETY: the tensors are borrowed until the scope has waited for the stream.
    unsafe { launch(set, handle, device, arguments, &scope.started) }
}

/// Starts a kernel and waits for the stream.
pub(super) fn launch_and_wait(set: &'static Set, stream: &Stream, arguments: &[Argument<'_>]) -> Result<()> {
    let (handle, device) = stream.parts()?;
    let started = Cell::new(false);
    // SAFETY: the tensors are borrowed until this returns, and it waits.
    settled(unsafe { launch(set, handle, device, arguments, &started) }, &started, stream)
}
