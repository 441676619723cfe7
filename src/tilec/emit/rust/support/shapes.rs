// ---- Inner: the contract, but for addresses

/// A call as far as it is worked out. `values` are of `Dim`s, then of parameters; `extents` of the grid of programs. `device` is -1 where it is not known, `sm_count` 0, `card` empty.
struct Call<'a> {
    set: &'static Set,
    arguments: &'a [Argument<'a>],
    build: &'static Build,
    kernel: &'static Kernel,
    variant: Option<&'static Variant>,
    values: Vec<Value>,
    extents: [i64; RANKS],
    programs: i128,
    device: i32,
    /// Of arguments, as far as this call has asked.
    devices: Vec<Option<i32>>,
    /// Of the stream; -1: nobody said.
    on: i32,
    sm_count: i32,
    card: &'static str,
    /// A launch; otherwise a device that is not there is one of one multiprocessor.
    needs_driver: bool,
    grid: [u32; 3],
}

fn check_type(parameter: &Parameter, tensor: &Raw) -> Result<()> {
    let name = parameter.name;
    if !parameter.dtype.takes(tensor.dtype) {
        let (wanted, got) = (parameter.dtype.name(), tensor.dtype.name());
        return failed(Status::Dtype, format!("`{name}`: expected elements of type `{wanted}`, got `{got}`"));
    }
    if tensor.rank as usize != parameter.extents.len() {
        let (wanted, got, shape) = (parameter.extents.len(), tensor.rank, tuple(tensor.extents()));
        return failed(Status::Rank, format!("`{name}`: expected {wanted} axes, got {got} (shape {shape})"));
    }
    for (axis, (&wanted, &got)) in parameter.extents.iter().zip(tensor.extents()).enumerate() {
        if wanted >= 0 && wanted != got {
            return failed(Status::Extent, format!("`{name}`: expected extent {wanted} of axis {axis}, got {got}"));
        }
    }
    Ok(())
}

fn check_limits(name: &str, tensor: &Raw) -> Result<()> {
    for (axis, &extent) in tensor.extents().iter().enumerate() {
        if extent < 0 {
            return failed(Status::Limit, format!("`{name}`: extent {extent} of axis {axis} is negative"));
        }
        if i128::from(extent) > COUNT_LIMIT {
            return failed(
                Status::Limit,
                format!("`{name}`: extent {extent} of axis {axis} is above the limit of {COUNT_LIMIT}"),
            );
        }
    }
    let mut count = 1i128;
    for &extent in tensor.extents() {
        count = count.saturating_mul(i128::from(extent.max(1)));
    }
    if count > ELEMENT_LIMIT {
        let shape = tuple(tensor.extents());
        return failed(
            Status::Limit,
            format!("`{name}`: shape {shape} has more elements than the limit of {ELEMENT_LIMIT}"),
        );
    }
    Ok(())
}

/// Whether two indices may lie at one place. They do not where each stride, of axes of extent above 1, is at least the
/// span of the axes of smaller stride.
fn overlaps_itself(tensor: &Raw) -> bool {
    let mut order = [(0i64, 0i64); RANKS];
    let mut count = 0;
    for (&extent, &stride) in tensor.extents().iter().zip(tensor.strides()) {
        if extent != 1 {
            order[count] = (stride, extent);
            count += 1;
        }
    }
    order[..count].sort_unstable_by_key(|&(stride, _)| stride);
    let mut span = 1i128;
    for &(stride, extent) in &order[..count] {
        if i128::from(stride) < span {
            return true;
        }
        span += i128::from(extent - 1) * i128::from(stride);
    }
    false
}

fn check_form(parameter: &Parameter, tensor: &Raw) -> Result<()> {
    let name = parameter.name;
    check_limits(name, tensor)?;
    if tensor.is_empty() {
        return Ok(());
    }
    for (axis, (&extent, &stride)) in tensor.extents().iter().zip(tensor.strides()).enumerate() {
        if extent > 1 && stride < 0 {
            return failed(Status::Stride, format!("`{name}`: stride {stride} of axis {axis} is negative"));
        }
    }
    let last = tensor.extents().last().zip(tensor.strides().last());
    if let Some((2.., stride)) = last.filter(|&(_, &stride)| stride != 1) {
        return failed(Status::Stride, format!("`{name}`: expected stride 1 of the last axis, got {stride}"));
    }
    let span = tensor.span_bytes();
    if span > SPAN_LIMIT {
        let (strides, shape) = (tuple(tensor.strides()), tuple(tensor.extents()));
        return failed(
            Status::Stride,
            format!(
                "`{name}`: strides {strides} spread the elements of shape {shape} over {span} bytes, above the limit of \
                 {SPAN_LIMIT}"
            ),
        );
    }
    if parameter.is_written && overlaps_itself(tensor) {
        let (strides, shape) = (tuple(tensor.strides()), tuple(tensor.extents()));
        return failed(
            Status::SelfOverlap,
            format!(
                "`{name}` is written, and its strides {strides} put several of its elements at one place (shape {shape})"
            ),
        );
    }
    Ok(())
}

impl Call<'_> {
    /// The tensors of the arguments, with their parameters.
    fn tensors(&self) -> impl Iterator<Item = (&'static Parameter, &Raw)> {
        let both = self.kernel.parameters.iter().zip(self.arguments);
        both.filter_map(|(parameter, given)| given.tensor.map(|tensor| (parameter, tensor)))
    }

    /// The value of each `Dim`; every tensor that names it agrees.
    fn bind_dims(&mut self) -> Result<()> {
        let kernel = self.kernel;
        let mut owners = vec![None; kernel.dims.len()];
        for (p, parameter) in kernel.parameters.iter().enumerate() {
            for (axis, &wanted) in parameter.extents.iter().enumerate() {
                if wanted >= 0 {
                    continue;
                }
                let extent = self.arguments[p].raw().extents[axis];
                let dim = (-1 - wanted) as usize;
                let (owner, owner_axis) = *owners[dim].get_or_insert_with(|| {
                    self.values[dim] = Value { whole: i128::from(extent), ..NO_VALUE };
                    (p, axis)
                });
                let bound = self.values[dim].whole;
                if bound != i128::from(extent) {
                    let (name, owner) = (parameter.name, kernel.parameters[owner].name);
                    let dim = kernel.dims[dim];
                    return failed(
                        Status::Extent,
                        format!(
                            "`{name}`: expected extent {bound} of axis {axis} (`{dim}`, as axis {owner_axis} of \
                             `{owner}`), got {extent}"
                        ),
                    );
                }
            }
        }
        Ok(())
    }
}
