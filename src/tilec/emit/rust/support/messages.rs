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
    // As many digits as are needed, and of two texts with so many the nearer one, where that reads back.
    let shortest = format!("{number:e}");
    let (digits, _) = shortest.split_once('e').unwrap_or((&shortest, ""));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let nearer = format!("{number:.decimals$e}");
    let text = if nearer.parse() == Ok(number) { nearer } else { shortest };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return placed(digits, exponent);
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `1.25` and 1 as `12.5`.
fn placed(digits: &str, exponent: i32) -> String {
    let (sign, plain) = digits.strip_prefix('-').map_or(("", digits), |plain| ("-", plain));
    let plain = plain.replace('.', "");
    if exponent < 0 {
        return format!("{sign}0.{}{plain}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let whole = exponent as usize + 1;
    if plain.len() <= whole {
        return format!("{sign}{plain:0<whole$}.0");
    }
    format!("{sign}{}.{}", &plain[..whole], &plain[whole..])
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
