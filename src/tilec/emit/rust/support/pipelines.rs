// ---- What the launchers of all pipelines share; it follows what those of kernels do.
// ---- Inner: what files say of their pipelines, as data

/// Each extent is an expression of the pipeline. Those of one slot are never in use at one time.
pub(super) struct Temporary {
    pub(super) name: &'static str,
    pub(super) dtype: Dtype,
    pub(super) slot: usize,
    pub(super) extents: &'static [Claim],
}

/// What a launch gives for one parameter of its kernel.
pub(super) enum Given {
    /// A parameter of the pipeline by its number, or how many there are and the number of a temporary; its axes in the
    /// order in which the kernel gets them, none: as they are.
    Tensor(usize, &'static [usize]),
    /// For a scalar, the value of an expression.
    Value(Kind, Claim),
}

/// `set` is the instances that may be launched; `text` says which launch it is; `after` are the launches that must be
/// done before.
pub(super) struct PipelineLaunch {
    pub(super) set: &'static Set,
    pub(super) text: &'static str,
    pub(super) after: &'static [usize],
    pub(super) given: &'static [Given],
}

/// `contract` is parameters, `Dim`s and `requires!`, as a kernel has them.
pub(super) struct Pipeline {
    pub(super) contract: &'static Kernel,
    pub(super) slots: usize,
    pub(super) temporaries: &'static [Temporary],
    pub(super) launches: &'static [PipelineLaunch],
}

/// What one function runs: the first that takes the arguments. `contracts` are those of all, as a set has them.
pub(super) struct Pipelines {
    pub(super) contracts: &'static Set,
    pub(super) pipelines: &'static [Pipeline],
}
