// ---- Inner: the contract of addresses

fn check_address(name: &str, tensor: &Raw) -> Result<()> {
    let (address, size) = (tensor.data, tensor.dtype.bytes());
    if tensor.is_empty() {
        return Ok(());
    }
    if address == 0 {
        return failed(Status::Address, format!("`{name}` has no memory: its address is 0 (was it freed?)"));
    }
    if address % size as u64 != 0 {
        return failed(
            Status::Address,
            format!("`{name}`: expected an address that is a multiple of {size} bytes, got {address:#x}"),
        );
    }
    let span = tensor.span_bytes();
    if i128::from(address) + span > ADDRESS_END {
        return failed(
            Status::Address,
            format!("`{name}`: {span} bytes from address {address:#x} on pass the end of the address space"),
        );
    }
    Ok(())
}

const TERMS: usize = 2 * RANKS + 1;
const STEPS: u32 = 2000;

/// Whether two strided tensors share a byte: whether their addresses agree for some indices,
///
///     a + sum i[k] s[k] + e  =  b + sum j[k] t[k] + f        (e and f: bytes inside an element)
///
/// With j and f counted from their far ends this is one sum of bounded multiples of positive coefficients,
/// sum c[k] x[k] = d with 0 <= x[k] <= m[k]. Equal coefficients merge, so that slices of one buffer with equal outer
/// strides come down to a question about their rows. The search takes coefficients in descending order; what the
/// smaller ones can still make up leaves few values for each. The bounded problem is hard in general: when the steps
/// are spent, the tensors count as overlapping.
struct Search {
    /// Coefficients, and how often each may be taken.
    terms: [(i128, i128); TERMS],
    count: usize,
    /// The most that the terms from here on can make, and what divides all that they can make.
    reach: [i128; TERMS + 1],
    divisor: [i128; TERMS + 1],
    steps: u32,
}

impl Search {
    fn of(one: &Raw, other: &Raw) -> Search {
        let mut search =
            Search { terms: [(0, 0); TERMS], count: 0, reach: [0; TERMS + 1], divisor: [0; TERMS + 1], steps: 0 };
        search.add_all(one);
        search.add_all(other);
        for i in (0..search.count).rev() {
            let (coefficient, most) = search.terms[i];
            search.reach[i] = search.reach[i + 1] + coefficient * most;
            search.divisor[i] = gcd(search.divisor[i + 1], coefficient);
        }
        search
    }

    fn add_all(&mut self, tensor: &Raw) {
        let size = i128::from(tensor.dtype.bytes());
        self.add(1, size - 1);
        for (&extent, &stride) in tensor.extents().iter().zip(tensor.strides()) {
            self.add(i128::from(stride) * size, i128::from(extent - 1));
        }
    }

    /// One more term, in its place or merged into the one of its coefficient.
    fn add(&mut self, coefficient: i128, most: i128) {
        if coefficient == 0 || most == 0 {
            return;
        }
        let place = self.terms[..self.count].partition_point(|&(c, _)| c > coefficient);
        if place < self.count && self.terms[place].0 == coefficient {
            self.terms[place].1 += most;
            return;
        }
        self.terms.copy_within(place..self.count, place + 1);
        self.terms[place] = (coefficient, most);
        self.count += 1;
    }

    /// Whether the terms from `index` on can sum to `total`; yes when the steps are spent.
    fn can_make(&mut self, total: i128, index: usize) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return true;
        }
        if total < 0 || total > self.reach[index] {
            return false;
        }
        if index == self.count {
            return true;
        }
        if total % self.divisor[index] != 0 {
            return false;
        }
        let (coefficient, most) = self.terms[index];
        let least = (total - self.reach[index + 1]).max(0);
        let least = (least + coefficient - 1) / coefficient;
        let mut times = most.min(total / coefficient);
        while times >= least {
            if self.can_make(total - coefficient * times, index + 1) {
                return true;
            }
            times -= 1;
        }
        false
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn may_overlap(one: &Raw, other: &Raw) -> bool {
    let start = i128::from(one.data);
    let end = start + one.span_bytes();
    let other_start = i128::from(other.data);
    let other_end = other_start + other.span_bytes();
    if end <= other_start || other_end <= start {
        return false;
    }
    // The far end of `other` is where its counted-down indices are all zero.
    Search::of(one, other).can_make(other_end - 1 - start, 0)
}

/// That two arguments, one of which is written, share no byte.
fn check_overlap(one: (&Parameter, &Raw), other: (&Parameter, &Raw)) -> Result<()> {
    if !(one.0.is_written || other.0.is_written) || one.1.is_empty() || other.1.is_empty() {
        return Ok(());
    }
    if !may_overlap(one.1, other.1) {
        return Ok(());
    }
    let (one, other) = if one.0.is_written { (one, other) } else { (other, one) };
    failed(
        Status::Overlap,
        format!(
            "`{}` is written and overlaps `{}`: {} and {}",
            one.0.name,
            other.0.name,
            place_text(one.1),
            place_text(other.1)
        ),
    )
}

impl Call<'_> {
    fn check_addresses(&self) -> Result<()> {
        for (parameter, tensor) in self.tensors() {
            check_address(parameter.name, tensor)?;
        }
        for (p, one) in self.tensors().enumerate() {
            for other in self.tensors().take(p) {
                check_overlap(other, one)?;
            }
        }
        Ok(())
    }
}
