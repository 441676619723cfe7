// ---- Inner: messages

/// `(4, 64)`, and `(4,)` for one number.
fn tuple(numbers: &[i64]) -> String {
    let listed: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("({}{})", listed.join(", "), if numbers.len() == 1 { "," } else { "" })
}

/// The shortest text that reads back as the same number, as Python has it: `65520.0`, `1e+16`.
fn real_text(number: f64) -> String {
    if !number.is_finite() {
        return format!("{number}").to_lowercase();
    }
    let plain = format!("{number:e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if number != 0.0 && !(-4..16).contains(&exponent) => {
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        _ => {
            let text = format!("{number}");
            if text.contains('.') { text } else { text + ".0" }
        }
    }
}

fn value_text(value: &Value) -> String {
    match value.kind {
        Kind::Real => real_text(value.real),
        Kind::Whole => value.whole.to_string(),
        Kind::Truth => String::from(if value.whole != 0 { "True" } else { "False" }),
    }
}

/// `, where N = 4, M = 2`: the values that a claim mentions. Nothing for none.
fn where_text(kernel: &Kernel, claim: &Claim, values: &[Value]) -> String {
    let mut text = String::new();
    for &one in claim.named {
        let name = kernel.dims.get(one).copied().unwrap_or_else(|| kernel.parameters[one - kernel.dims.len()].name);
        let opening = if text.is_empty() { ", where " } else { ", " };
        let _ = write!(text, "{opening}{name} = {}", value_text(&values[one]));
    }
    text
}

/// `bytes 0x100 to 0x200 (shape (64,), strides (1,))`
fn place_text(tensor: &Raw) -> String {
    let start = i128::from(tensor.data);
    format!(
        "bytes {start:#x} to {:#x} (shape {}, strides {})",
        start + tensor.span_bytes(),
        tuple(tensor.extents()),
        tuple(tensor.strides())
    )
}
