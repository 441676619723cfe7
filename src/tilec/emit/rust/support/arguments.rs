// ---- Inner: arguments

/// A tensor in device memory, as launches take it. Extents and strides are in elements, the outermost axis first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Raw {
    pub(super) data: u64,
    pub(super) extents: [i64; RANKS],
    pub(super) strides: [i64; RANKS],
    pub(super) rank: i32,
    pub(super) dtype: Dtype,
    /// -1: ask the driver.
    pub(super) device: i32,
}

impl Raw {
    fn new(data: u64, dtype: Dtype, device: i32, extents: &[i64], strides: &[i64]) -> Result<Raw> {
        if extents.len() > RANKS || strides.len() != extents.len() {
            let (axes, steps) = (extents.len(), strides.len());
            return failed(Status::Rank, format!("expected up to {RANKS} axes, got {axes} extents, {steps} strides"));
        }
        let mut made =
            Raw { data, extents: [0; RANKS], strides: [0; RANKS], rank: extents.len() as i32, dtype, device };
        made.extents[..extents.len()].copy_from_slice(extents);
        made.strides[..strides.len()].copy_from_slice(strides);
        Ok(made)
    }

    fn rank(&self) -> usize {
        (self.rank as usize).min(RANKS)
    }

    fn extents(&self) -> &[i64] {
        &self.extents[..self.rank()]
    }

    fn strides(&self) -> &[i64] {
        &self.strides[..self.rank()]
    }

    fn is_empty(&self) -> bool {
        self.extents().contains(&0)
    }

    /// Along an axis of one element there is nothing to step to.
    fn step(&self, axis: usize) -> i64 {
        if self.extents[axis] > 1 { self.strides[axis] } else { 0 }
    }

    /// Bytes from the first element to past the last.
    fn span_bytes(&self) -> i128 {
        if self.is_empty() {
            return 0;
        }
        let last: i128 =
            self.extents().iter().zip(self.strides()).map(|(&x, &s)| i128::from(x - 1) * i128::from(s)).sum();
        (last + 1) * i128::from(self.dtype.bytes())
    }
}

/// What is passed for one parameter.
pub(super) struct Argument<'a> {
    pub(super) tensor: Option<&'a Raw>,
    pub(super) value: Value,
}

const NO_VALUE: Value = Value { whole: 0, real: 0.0, kind: Kind::Whole, bits: 0 };

impl<'a> Argument<'a> {
    pub(super) fn tensor(raw: &'a Raw) -> Self {
        Argument { tensor: Some(raw), value: NO_VALUE }
    }

    pub(super) fn whole(number: impl Into<i128>) -> Self {
        Argument { tensor: None, value: Value { whole: number.into(), ..NO_VALUE } }
    }

    pub(super) fn real(number: impl Into<f64>) -> Self {
        Argument { tensor: None, value: Value { real: number.into(), kind: Kind::Real, ..NO_VALUE } }
    }

    pub(super) fn truth(truth: bool) -> Self {
        Argument { tensor: None, value: Value { whole: i128::from(truth), kind: Kind::Truth, ..NO_VALUE } }
    }

    pub(super) fn number<T: Number>(number: T) -> Self {
        let (whole, real) = number.parts();
        let kind = match T::DTYPE {
            Dtype::Bool => Kind::Truth,
            Dtype::F32 | Dtype::F64 => Kind::Real,
            _ => Kind::Whole,
        };
        Argument { tensor: None, value: Value { whole, real, kind, bits: 0 } }
    }

    /// The tensor of a parameter that is one: functions give one to each.
    fn raw(&self) -> &'a Raw {
        self.tensor.expect("a tensor")
    }
}
