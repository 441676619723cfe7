
// Inner functions, under the names that tests call those of the support part in C by (tests/emit/probe.py).

#[unsafe(no_mangle)]
unsafe extern "C" fn probe_overlap(one: *const super::CTensor, other: *const super::CTensor) -> c_int {
    let (one, other) = unsafe { (super::raw(one), super::raw(other)) };
    may_overlap(&one, &other).into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn probe_self(one: *const super::CTensor) -> c_int {
    overlaps_itself(&unsafe { super::raw(one) }).into()
}

#[unsafe(no_mangle)]
extern "C" fn probe_narrowed(number: f64, exponent: c_int, fraction: c_int) -> c_uint {
    narrowed(number, exponent as u32, fraction as u32) as c_uint
}

#[unsafe(no_mangle)]
extern "C" fn probe_widened(bits: c_uint, exponent: c_int, fraction: c_int) -> f64 {
    widened(bits as u16, exponent as u32, fraction as u32)
}

unsafe fn put(text: String, place: *mut c_char) {
    let text = std::ffi::CString::new(text).unwrap();
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), place, text.as_bytes_with_nul().len()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn probe_real(number: f64, text: *mut c_char) {
    unsafe { put(real_text(number), text) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn probe_evaluate(
    which: c_int, wholes: *const i64, count: c_int, real: f64, text: *mut c_char,
) -> c_int {
    let mut v = [NO_VALUE; 8];
    for i in 0..count as usize {
        v[i].whole = unsafe { *wholes.add(i) }.into();
    }
    v[count as usize].real = real;
    let mut e = Evaluation::default();
    let made = evaluate(which as u32, &v, &mut e);
    unsafe { put(made.to_string(), text) };
    e.overflow as c_int + 2 * e.division_by_zero as c_int
}

