// ---- Public: what a call gives when it fails

/// What is wrong. The numbers stay what they are, and are those of the launchers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Status {
    /// An argument is a null pointer.
    Null = 1,
    /// A tensor has another element type than the kernel.
    Dtype = 2,
    /// A tensor has another number of axes than the kernel.
    Rank = 3,
    /// An extent is not the one that the kernel, or another tensor, asks for.
    Extent = 4,
    /// An extent is negative or above the limit.
    Limit = 5,
    /// A stride is negative, or that of the last axis is not 1.
    Stride = 6,
    /// A tensor that is written has several elements at one place.
    SelfOverlap = 7,
    /// A tensor or the stream is not on the device of the other arguments.
    Device = 8,
    /// A scalar is out of the range of its type.
    Scalar = 9,
    /// A `requires!` of the kernel does not hold.
    Requires = 10,
    /// The grid is negative or above the limit.
    Grid = 11,
    /// A tensor has no memory, or is not aligned to its elements.
    Address = 12,
    /// A tensor that is written shares memory with another.
    Overlap = 13,
    /// No variant of the kernel takes these alignments, strides or extents.
    NoVariant = 14,
    /// No instance of the kernel takes these arguments.
    NoInstance = 15,
    /// An expression of the kernel's contract is too large to compute.
    Arithmetic = 16,
    /// The CUDA driver cannot be loaded, or is too old.
    NoDriver = 17,
    /// There is no such CUDA device, or it does not answer.
    NoDevice = 18,
    /// The kernel is not built for the architecture of the device.
    Architecture = 19,
    /// The driver does not load the machine code.
    Load = 20,
    /// The driver refuses a tensor map.
    TensorMap = 21,
    /// The driver refuses the launch.
    Launch = 22,
    /// The workspace of a pipeline is too small, not aligned, or shares memory.
    Workspace = 23,
    /// There is no memory for a pipeline.
    Memory = 24,
    /// The driver refuses the graph, or it is one of another pipeline.
    Graph = 25,
}

/// What went wrong: the argument by name, and the values. Nothing was launched, unless `status` is `Launch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

#[cold]
fn failed<T>(status: Status, message: String) -> Result<T> {
    Err(Error { status, message })
}
