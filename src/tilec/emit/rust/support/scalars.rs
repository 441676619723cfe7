// ---- Inner: scalars

fn take_whole(parameter: &Parameter, value: &Value) -> Result<u64> {
    let (name, dtype) = (parameter.name, parameter.dtype.name());
    let is_signed = matches!(parameter.dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64);
    let width = 8 * parameter.dtype.bytes() - i64::from(is_signed || parameter.dtype == Dtype::Usize);
    let high = 1i128 << width;
    let low = if is_signed { -high } else { 0 };
    if value.kind != Kind::Whole {
        let got = value_text(value);
        return failed(Status::Scalar, format!("`{name}`: expected an integer of type `{dtype}`, got {got}"));
    }
    if value.whole < low || value.whole >= high {
        let (last, got) = (high - 1, value_text(value));
        return failed(
            Status::Scalar,
            format!("`{name}`: expected a number of type `{dtype}` ({low} to {last}), got {got}"),
        );
    }
    Ok(value.whole as u64)
}

fn take_real(parameter: &Parameter, value: &mut Value) -> Result<u64> {
    let (name, dtype) = (parameter.name, parameter.dtype);
    if value.kind == Kind::Truth {
        let (wanted, got) = (dtype.name(), value_text(value));
        return failed(Status::Scalar, format!("`{name}`: expected a number of type `{wanted}`, got {got}"));
    }
    let number = if value.kind == Kind::Real { value.real } else { value.whole as f64 };
    if dtype != Dtype::F64 && number.is_finite() && number.abs() >= rounds_to_infinity(dtype) {
        let (got, wanted) = (value_text(value), dtype.name());
        return failed(Status::Scalar, format!("`{name}`: {got} is out of the range of `{wanted}`"));
    }
    let (bits, rounded) = match dtype {
        Dtype::F64 => (number.to_bits(), number),
        Dtype::F32 => (u64::from((number as f32).to_bits()), f64::from(number as f32)),
        Dtype::F16 => {
            let bits = narrowed(number, 5, 10);
            (bits, widened(bits as u16, 5, 10))
        }
        _ => {
            let bits = narrowed(number, 8, 7);
            (bits, widened(bits as u16, 8, 7))
        }
    };
    value.kind = Kind::Real;
    value.real = rounded;
    Ok(bits)
}

fn take_scalar(parameter: &Parameter, value: &mut Value) -> Result<u64> {
    match parameter.dtype {
        Dtype::Bool if value.kind == Kind::Truth => Ok(u64::from(value.whole != 0)),
        Dtype::Bool => {
            let (name, got) = (parameter.name, value_text(value));
            failed(Status::Scalar, format!("`{name}`: expected a `bool`, got {got}"))
        }
        Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 => take_real(parameter, value),
        _ => take_whole(parameter, value),
    }
}

impl Call<'_> {
    fn take_scalars(&mut self) -> Result<()> {
        let kernel = self.kernel;
        self.values.clear();
        self.values.resize(kernel.dims.len() + kernel.parameters.len(), NO_VALUE);
        for (p, parameter) in kernel.parameters.iter().enumerate() {
            let mut value = self.arguments[p].value;
            if parameter.extents.is_empty() {
                value.bits = take_scalar(parameter, &mut value)?;
            }
            self.values[kernel.dims.len() + p] = value;
        }
        Ok(())
    }
}
