// ---- Inner: which variants take the shapes, and their grids

fn rounded_up(number: i128, multiple: u32) -> i128 {
    let multiple = i128::from(multiple);
    (number + multiple - 1) / multiple * multiple
}

fn launched_grid(x: i128, y: i128, z: i128) -> Option<[u32; 3]> {
    let fits = x <= GRID_X_LIMIT && y <= GRID_YZ_LIMIT && z <= GRID_YZ_LIMIT;
    fits.then_some([x as u32, y as u32, z as u32])
}

/// A stride as tensor maps have it: any will do along an axis of one element.
fn map_stride(tensor: &Raw, axis: usize) -> i128 {
    if tensor.extents[axis] > 1 { i128::from(tensor.strides[axis]) * i128::from(tensor.dtype.bytes()) } else { 128 }
}

/// Whether CUDA can describe a tensor, but for its address, by a map (docs/abi.md, "Tensor maps").
fn is_mappable(wanted: &WantedMap, tensor: &Raw) -> bool {
    let last = tensor.rank().saturating_sub(1);
    if tensor.rank() > MAP_RANKS || !tensor.extents().iter().all(|&x| (1..=i64::from(i32::MAX)).contains(&x)) {
        return false;
    }
    let fits = |stride: i128| stride > 0 && stride < 1 << 40 && stride % 16 == 0;
    if !(0..last).all(|axis| fits(map_stride(tensor, axis))) {
        return false;
    }
    !(wanted.writes && tensor.extents[last] * tensor.dtype.bytes() % 16 != 0)
}

fn strides_fit(tensor: &Raw, multiple: i64) -> bool {
    let size = i128::from(tensor.dtype.bytes());
    (0..tensor.rank().saturating_sub(1)).all(|axis| i128::from(tensor.step(axis)) * size % i128::from(multiple) == 0)
}

impl Call<'_> {
    /// The blocks of a variant, where there are programs; none if the hardware has not so many, or the variant does not
    /// (docs/abi.md, "Launch geometry").
    fn grid_of(&self, variant: &Variant) -> Option<[u32; 3]> {
        let mut rest = self.extents[..self.kernel.grid.len()].iter().rev().map(|&x| i128::from(x));
        let (mut x, mut y) = (rest.next().unwrap_or(1), rest.next().unwrap_or(1));
        let mut z: i128 = rest.product();
        let cluster = variant.cluster;
        if !variant.maps.is_empty() && self.programs > NUMBERED_LIMIT {
            return None;
        }
        if variant.persistent != 0 {
            let along = i128::from(cluster[0]);
            let blocks = i128::from(variant.persistent) * i128::from(self.sm_count) / along * along;
            let wanted = rounded_up(self.programs, cluster[0]).min(blocks);
            return launched_grid(wanted.max(along), 1, 1);
        }
        if variant.split == 1 && cluster != [1, 1, 1] {
            return launched_grid(rounded_up(x, cluster[0]), rounded_up(y, cluster[1]), rounded_up(z, cluster[2]));
        }
        if !(1 < y && y <= GRID_YZ_LIMIT && z <= GRID_YZ_LIMIT && x <= GRID_X_LIMIT) {
            // Folded: z counts on where x ends.
            x = self.programs.min(GRID_X_LIMIT);
            y = 1;
            z = (self.programs + x - 1) / x;
        }
        launched_grid(x * i128::from(variant.split), y, z)
    }

    /// Whether shapes and strides allow a variant, whatever the addresses.
    fn fits(&self, variant: &Variant) -> bool {
        let of_parameters = variant.preconditions.iter().all(|wanted| {
            let tensor = self.arguments[wanted.parameter].raw();
            tensor.extents().last().copied().unwrap_or(0) % wanted.row_elements == 0
                && (tensor.is_empty() || strides_fit(tensor, wanted.stride_bytes))
        });
        of_parameters && variant.maps.iter().all(|map| is_mappable(map, self.arguments[map.parameter].raw()))
    }

    /// Whether the addresses allow a variant too.
    fn is_aligned(&self, variant: &Variant) -> bool {
        let of_parameters = variant.preconditions.iter().all(|wanted| {
            let tensor = self.arguments[wanted.parameter].raw();
            tensor.is_empty() || tensor.data % wanted.base_bytes == 0
        });
        of_parameters && variant.maps.iter().all(|map| self.arguments[map.parameter].raw().data % 16 == 0)
    }
}
