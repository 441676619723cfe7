// ---- Public: plans

/// What would be launched. `grid` is blocks along x, y and z, all 0 if there is nothing to launch; `device` is -1 where
/// it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub kernel: &'static str,
    pub variant: &'static str,
    pub target: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub shared_bytes: u32,
    pub device: i32,
}

impl Call<'_> {
    /// Where the kernels of several targets are there, those for the device that the tensors are on. The contract is
    /// the same for all, so that any will do where no device is known, or none of them runs there: a launch says so
    /// later.
    fn guess_build(&mut self) {
        if self.set.builds.len() == 1 {
            return;
        }
        let mut numbers = 0..self.arguments.len();
        let device = numbers.find_map(|number| self.device_of_argument(number, "").ok().filter(|&device| device >= 0));
        if let Ok(build) = build_for(self.set, device.unwrap_or_else(|| self.likely_device())) {
            self.build = build;
        }
    }

    /// The instance for the arguments, with all of its contract but addresses checked.
    fn take_instance(&mut self) -> Result<()> {
        let shapes = self.shapes();
        if let Some(kernel) = self.remembered(shapes) {
            if self.fit(kernel).is_ok() {
                return Ok(());
            }
        }
        let build = self.build;
        for group in build.groups {
            if let Some(kernel) = self.choose(group)? {
                if self.needs_driver {
                    self.remember(shapes, kernel);
                }
                return self.fit(kernel);
            }
        }
        Err(self.refuse())
    }

    fn no_variant(&self) -> Error {
        let asked: Vec<String> =
            self.kernel.variants.iter().map(|v| format!("`{}` asks for {}", v.symbol, v.asks)).collect();
        let message = format!("the arguments meet the preconditions of no variant: {}", asked.join("; "));
        Error { status: Status::NoVariant, message }
    }

    /// Checks the whole contract, and finds the instance, its variant and its grid.
    fn work_out(&mut self) -> Result<&'static Variant> {
        self.guess_build();
        self.take_instance()?;
        self.take_addresses()
    }

    /// Checks what addresses decide, and finds the variant and its grid.
    fn take_addresses(&mut self) -> Result<&'static Variant> {
        let worked = self.check_addresses().and_then(|()| self.take_variant(true));
        let found = worked.and_then(|()| self.variant.ok_or_else(|| self.no_variant()));
        found.map_err(|error| blamed(self.kernel, error))
    }
}

/// The name of an instance before a message.
fn blamed(kernel: &Kernel, error: Error) -> Error {
    Error { message: format!("`{}`: {}", kernel.symbol, error.message), ..error }
}

/// Checks the whole contract, and launches nothing.
pub(super) fn check(set: &'static Set, arguments: &[Argument<'_>]) -> Result<()> {
    Call::new(set, arguments, false).work_out().map(|_| ())
}

pub(super) fn plan_of(set: &'static Set, arguments: &[Argument<'_>]) -> Result<Plan> {
    let mut call = Call::new(set, arguments, true);
    let variant = call.work_out()?;
    let ready = Ready { kernel: call.kernel, variant, function: ptr::null_mut(), grid: call.grid };
    Ok(ready.plan(call.build.cubin, call.device))
}
