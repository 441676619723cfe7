// ---- Inner: which instance

/// What of a group takes the arguments, as far as addresses do not matter: the first that does, how many, the cheapest
/// by the model of costs if it knows of all, and the one that was measured as the fastest if it is among them.
#[derive(Default)]
struct Fitting {
    first: usize,
    count: usize,
    cheapest: Option<usize>,
    measured: Option<usize>,
}

/// What was chosen for some shapes, by thread: any member that takes the arguments is right, so that two shapes which
/// are taken for one cost time only.
#[derive(Clone, Copy)]
struct Remembered {
    build: *const Build,
    shapes: u64,
    kernel: Option<&'static Kernel>,
}

const REMEMBERED: usize = 64;

thread_local! {
    static CHOICES: RefCell<[Remembered; REMEMBERED]> = const {
        RefCell::new([Remembered { build: ptr::null(), shapes: 0, kernel: None }; REMEMBERED])
    };
}

fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e3779b97f4a7c15);
    hash ^ hash >> 29
}

impl<'a> Call<'a> {
    fn new(set: &'static Set, arguments: &'a [Argument<'a>], needs_driver: bool) -> Call<'a> {
        Call {
            set,
            arguments,
            build: &set.builds[0],
            kernel: set.builds[0].groups[0].kernels[0],
            variant: None,
            values: Vec::new(),
            extents: [0; RANKS],
            programs: 0,
            devices: vec![None; arguments.len()],
            device: -1,
            on: -1,
            sm_count: 0,
            card: "",
            needs_driver,
            grid: [0; 3],
        }
    }

    /// Looks at all members, but for those without a variant for the shapes if `variants` asks for one.
    fn fit_all(&mut self, group: &Group, variants: bool) -> Result<Fitting> {
        let mut found = Fitting::default();
        let (mut least, mut is_known, mut is_measured) = (0, true, false);
        let is_family = group.kernels.len() > 1;
        for (i, kernel) in group.kernels.iter().enumerate() {
            if self.fit(kernel).is_err() {
                continue;
            }
            self.take_variant(false)?;
            if is_family {
                self.need_machine()?;
            }
            if variants && self.variant.is_none() {
                continue;
            }
            if found.count == 0 {
                found.first = i;
                found.measured = self.measured(group);
            }
            found.count += 1;
            is_measured |= found.measured == Some(i);
            match if is_family { self.cycles() } else { Some(0) } {
                None => is_known = false,
                Some(cycles) if found.count == 1 || cycles < least => {
                    found.cheapest = Some(i);
                    least = cycles;
                }
                Some(_) => (),
            }
        }
        found.cheapest = found.cheapest.filter(|_| is_known);
        found.measured = found.measured.filter(|_| is_measured);
        Ok(found)
    }

    /// The member of a group to launch.
    fn choose(&mut self, group: &Group) -> Result<Option<&'static Kernel>> {
        let mut found = self.fit_all(group, true)?;
        // Members that no variant can launch at these shapes are no choice, if there is another.
        if found.count == 0 {
            found = self.fit_all(group, false)?;
        }
        let chosen = match found.count {
            0 => return Ok(None),
            1 => found.first,
            _ => found.measured.or(found.cheapest).unwrap_or(found.first),
        };
        Ok(Some(group.kernels[chosen]))
    }

    /// A hash of all that a choice depends on.
    fn shapes(&self) -> u64 {
        let mut hash = (self.device + 1) as u64;
        for given in self.arguments {
            let Some(tensor) = given.tensor else {
                hash = mixed(mixed(hash, given.value.whole as u64), given.value.real.to_bits());
                continue;
            };
            hash = mixed(hash, (tensor.dtype as u64) << 32 | tensor.rank as u64);
            for (&extent, &stride) in tensor.extents().iter().zip(tensor.strides()) {
                hash = mixed(mixed(hash, extent as u64), stride as u64);
            }
        }
        hash
    }

    /// The kernel that this thread chose last for such a call.
    fn remembered(&self, shapes: u64) -> Option<&'static Kernel> {
        let one = CHOICES.with(|choices| choices.borrow()[shapes as usize % REMEMBERED]);
        one.kernel.filter(|_| one.shapes == shapes && ptr::eq(one.build, self.build))
    }

    fn remember(&self, shapes: u64, kernel: &'static Kernel) {
        let one = Remembered { build: self.build, shapes, kernel: Some(kernel) };
        CHOICES.with(|choices| choices.borrow_mut()[shapes as usize % REMEMBERED] = one);
    }

    /// Why no instance takes the arguments.
    fn refuse(&mut self) -> Error {
        let mut reasons = Vec::new();
        // Those of other types are named only if all are.
        for mistyped in [false, true] {
            for kernel in self.build.groups.iter().flat_map(|group| group.kernels) {
                if self.is_of_types(kernel) == mistyped {
                    continue;
                }
                if let Err(error) = self.fit(kernel) {
                    reasons.push((kernel.symbol, error));
                }
            }
            if !reasons.is_empty() {
                break;
            }
        }
        if let [(symbol, error)] = &reasons[..] {
            return Error { status: error.status, message: format!("`{symbol}`: {}", error.message) };
        }
        let name = self.set.name;
        let mut message = format!("no instance of `{name}` takes these arguments");
        for (symbol, error) in &reasons {
            let _ = write!(message, "\n  `{symbol}`: {}", error.message);
        }
        Error { status: Status::NoInstance, message }
    }
}
