// ---- Inner: tensor maps

/// All that a map depends on. Of rank 0: nothing yet.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MapKey {
    data: u64,
    extents: [u64; MAP_RANKS],
    stride_bytes: [u64; MAP_RANKS],
    extents_of_box: [u32; MAP_RANKS],
    rank: u32,
    data_type: c_int,
    swizzle: c_int,
    promotion: c_int,
}

const KNOWN_MAPS: usize = 32;
const NO_MAP: Map = Map { opaque: [0; 16] };
const NO_KEY: MapKey = MapKey {
    data: 0,
    extents: [0; MAP_RANKS],
    stride_bytes: [0; MAP_RANKS],
    extents_of_box: [0; MAP_RANKS],
    rank: 0,
    data_type: 0,
    swizzle: 0,
    promotion: 0,
};

thread_local! {
    // By thread, so that nobody waits.
    static MAPS_KNOWN: RefCell<[(MapKey, Map); KNOWN_MAPS]> =
        const { RefCell::new([(NO_KEY, NO_MAP); KNOWN_MAPS]) };
}

/// CU_TENSOR_MAP_DATA_TYPE_..., of an element type.
fn map_type(wanted: &WantedMap, dtype: Dtype) -> c_int {
    if wanted.rounds {
        return 11;
    }
    match dtype {
        Dtype::Bool | Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 0,
        Dtype::I16 | Dtype::U16 => 1,
        Dtype::U32 => 2,
        Dtype::I32 => 3,
        Dtype::U64 => 4,
        Dtype::I64 | Dtype::Usize => 5,
        Dtype::F16 => 6,
        Dtype::F32 => 7,
        Dtype::F64 => 8,
        Dtype::BF16 => 9,
    }
}

/// What cuTensorMapEncodeTiled is told of a mappable tensor.
fn map_key(wanted: &WantedMap, tensor: &Raw, dtype: Dtype) -> MapKey {
    let rank = tensor.rank();
    let mut key = MapKey {
        data: tensor.data,
        rank: rank as u32,
        data_type: map_type(wanted, dtype),
        swizzle: if wanted.swizzle == 128 { 3 } else { wanted.swizzle / 32 },
        promotion: 3, // 256 bytes at a time, but only where rows begin at multiples of 128 bytes
        ..NO_KEY
    };
    for i in 0..rank {
        key.extents[i] = tensor.extents[rank - 1 - i] as u64;
        key.extents_of_box[i] = wanted.extents[i];
        if i + 1 < rank {
            key.stride_bytes[i] = map_stride(tensor, rank - 2 - i) as u64;
        }
        if key.stride_bytes[i] % 128 != 0 {
            key.promotion = 2;
        }
    }
    key
}

/// The map of a tensor, made by the driver or remembered.
fn need_map(driver: &Driver, kernel: &Kernel, wanted: &WantedMap, tensor: &Raw) -> Result<Map> {
    let parameter = &kernel.parameters[wanted.parameter];
    let key = map_key(wanted, tensor, parameter.dtype);
    let hash = mixed(mixed(key.data, key.extents[0]), u64::from(key.extents_of_box[0]));
    let place = hash as usize % KNOWN_MAPS;
    let known = MAPS_KNOWN.with(|known| known.borrow()[place]);
    if known.0 == key {
        return Ok(known.1);
    }
    let (mut map, ones) = (NO_MAP, [1u32; MAP_RANKS]);
    let (extents, strides) = (key.extents.as_ptr(), key.stride_bytes.as_ptr());
    let (extents_of_box, steps) = (key.extents_of_box.as_ptr(), ones.as_ptr());
    let MapKey { data, rank, data_type, swizzle, promotion, .. } = key;
    // SAFETY: `rank` numbers in each place. A vector has no strides to tell, and a null pointer might be refused: it
    // gets one that nobody reads.
    let code = unsafe {
        let encode = driver.map_encode;
        encode(&mut map, data_type, rank, data, extents, strides, extents_of_box, steps, 0, swizzle, promotion, 0)
    };
    if code != 0 {
        let (symbol, name) = (kernel.symbol, parameter.name);
        let (place, why) = (place_text(tensor), cuda_error(code));
        return failed(
            Status::TensorMap,
            format!("`{symbol}` was not launched: the driver refuses a tensor map of `{name}` ({place}): {why}"),
        );
    }
    MAPS_KNOWN.with(|known| known.borrow_mut()[place] = (key, map));
    Ok(map)
}
