// ---- Inner: pipelines on several streams

/// Events of the driver, given back when this is dropped; `code` is what it said first against one.
struct Events<'a> {
    driver: &'a Driver,
    streams: &'a [*mut c_void],
    made: Vec<*mut c_void>,
    code: c_int,
}

impl Events<'_> {
    fn note(&mut self, code: c_int) {
        if self.code == 0 {
            self.code = code;
        }
    }

    /// An event that is done when a stream has done all that it was given so far. Null if the driver refuses.
    fn recorded(&mut self, lane: usize) -> *mut c_void {
        let mut event = ptr::null_mut();
        let (Some(create), Some(record)) = (self.driver.event_create, self.driver.event_record) else {
            return event;
        };
        // SAFETY: a place for the event.
        let mut code = unsafe { create(&mut event, CU_EVENT_WITHOUT_TIME) };
        if code == 0 {
            self.made.push(event);
            // SAFETY: a new event, and a stream of the driver.
            code = unsafe { record(event, self.streams[lane]) };
        } else {
            event = ptr::null_mut();
        }
        self.note(code);
        event
    }

    fn wait(&mut self, lane: usize, event: *mut c_void) {
        let Some(wait) = self.driver.stream_wait_event.filter(|_| !event.is_null()) else { return };
        // SAFETY: a recorded event, and a stream of the driver.
        let code = unsafe { wait(self.streams[lane], event, 0) };
        self.note(code);
    }

    fn result(&self, run: &Run) -> Result<()> {
        if self.code == 0 {
            return Ok(());
        }
        let why = cuda_error(self.code);
        let message = format!("streams could not be ordered: {why}");
        Err(blamed(run.pipeline.contract, Error { status: Status::Launch, message }))
    }

    /// After a failure: has the first stream wait for what was started on the others, or waits itself.
    fn join_started(&mut self, was_used: &[bool], device: i32) {
        self.code = 0;
        for lane in (1..was_used.len()).filter(|&lane| was_used[lane]) {
            let event = self.recorded(lane);
            self.wait(0, event);
        }
        if self.code != 0 {
            for lane in (1..was_used.len()).filter(|&lane| was_used[lane]) {
                let _ended = settle(self.streams[lane], device);
            }
        }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.driver.event_destroy {
            for &event in &self.made {
                // SAFETY: made by this value; the driver keeps it until nobody waits for it.
                unsafe { destroy(event) };
            }
        }
    }
}

/// Starts the steps of a run, each when those before it are done; in the context of the device, with the temporaries
/// placed.
///
/// # Safety
/// The tensors' memory stays as it is borrowed until all is done.
unsafe fn send_lanes(run: &mut Run, lanes: &Lanes, events: &mut Events<'_>) -> Result<()> {
    let driver = events.driver;
    let mut was_used = vec![false; lanes.used];
    let mut by_step = vec![ptr::null_mut(); run.steps.len()];
    let fork = if lanes.used > 1 { events.recorded(0) } else { ptr::null_mut() };
    let mut sent = Ok(());
    for step in 0..run.steps.len() {
        let lane = lanes.lane_of[step];
        let mut waits = false;
        for one in lanes.waits[step].steps() {
            events.wait(lane, by_step[one]);
            waits = true;
        }
        if !waits && lane > 0 && !was_used[lane] {
            events.wait(lane, fork);
        }
        let early = !waits && was_used[lane];
        let stream = events.streams[lane];
        // SAFETY: as the caller says.
        sent = events.result(run).and_then(|()| unsafe { run.send(driver, step, stream, early) });
        if sent.is_err() {
            break;
        }
        was_used[lane] = true;
        if lanes.awaited.has(step) {
            by_step[step] = events.recorded(lane);
        }
    }
    if sent.is_ok() {
        lanes.joins.steps().for_each(|one| events.wait(0, by_step[one]));
        sent = events.result(run);
    }
    if sent.is_err() {
        events.join_started(&was_used, run.device);
    }
    sent
}

/// Checks everything, then starts the launches on several streams, each with the device that it is of, -1: of any. The
/// first one has all of it. `started` is set where streams may have been given some.
///
/// # Safety
/// The streams are of the driver, and the tensors' memory stays as it is borrowed until the first one is done.
pub(super) unsafe fn run_on_lanes(
    set: &'static Pipelines,
    streams: &[(*mut c_void, i32)],
    arguments: &[Argument<'_>],
    started: &Cell<bool>,
) -> Result<()> {
    let Some(&(first, on)) = streams.first() else {
        let name = set.contracts.name;
        return failed(Status::Null, format!("`{name}`: expected one stream at least, got none"));
    };
    let mut run = Run::new(set, arguments, true, on)?;
    if run.steps.is_empty() {
        return Ok(());
    }
    run.check_device()?;
    for &(stream, on) in streams {
        check_stream(run.pipeline.contract.symbol, run.device, stream, on)?;
    }
    let _entered = enter(run.device)?;
    let driver = &need_driver()?.driver;
    needed(driver.event_create.and(driver.event_record), c"cuEventCreate")?;
    needed(driver.event_destroy, c"cuEventDestroy_v2")?;
    needed(driver.stream_wait_event, c"cuStreamWaitEvent")?;
    let handles: Vec<*mut c_void> = streams.iter().map(|&(stream, _)| stream).collect();
    let lanes = Lanes::of(&Order::of(&run), handles.len());
    run.load(driver)?;
    let _taken = run.take_workspace(driver, first)?;
    let mut events = Events { driver, streams: &handles, made: Vec::new(), code: 0 };
    run.map(driver)?;
    started.set(true);
    // SAFETY: as the caller says.
    unsafe { send_lanes(&mut run, &lanes, &mut events) }
}

/// Runs a pipeline on several streams and waits for the first one, which has all of it.
pub(super) fn run_on_streams(set: &'static Pipelines, streams: &[&Stream], arguments: &[Argument<'_>]) -> Result<()> {
    let handles = streams.iter().map(|stream| stream.parts()).collect::<Result<Vec<_>>>()?;
    let started = Cell::new(false);
    // SAFETY: the tensors are borrowed until this returns, and it waits: also for what a failure left.
    let run = unsafe { run_on_lanes(set, &handles, arguments, &started) };
    streams.first().map_or(run.clone(), |first| settled(run, &started, first))
}

/// Starts a pipeline in a scope, on its stream and on others; what the scope starts later comes after all of it.
pub(super) fn run_in_lanes(
    set: &'static Pipelines,
    scope: &Scope<'_, '_>,
    others: &[&Stream],
    arguments: &[Argument<'_>],
) -> Result<()> {
    let streams = std::iter::once(scope.stream).chain(others.iter().copied());
    let handles = streams.map(Stream::parts).collect::<Result<Vec<_>>>()?;
    // SAFETY: the tensors are borrowed until the scope has waited for its stream, which waits for the others.
    unsafe { run_on_lanes(set, &handles, arguments, &scope.started) }
}
