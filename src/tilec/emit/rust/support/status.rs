// ---- Public: what a call gives when it fails

/// What is wrong. The numbers stay what they are, and are those of the launchers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Status {
    Null = 1,
    Dtype = 2,
    Rank = 3,
    Extent = 4,
    Limit = 5,
    Stride = 6,
    SelfOverlap = 7,
    Device = 8,
    Scalar = 9,
    Requires = 10,
    Grid = 11,
    Address = 12,
    Overlap = 13,
    NoVariant = 14,
    NoInstance = 15,
    Arithmetic = 16,
    NoDriver = 17,
    NoDevice = 18,
    Architecture = 19,
    Load = 20,
    TensorMap = 21,
    Launch = 22,
    Workspace = 23,
    Memory = 24,
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
