// Each line that ends in a number of an error is refused by the compiler, for that reason.
use sample::*;

type Floats<'a> = Tensor<'a, f32>;

pub fn of_an_element_type_without_an_instance(stream: &Stream, z: &mut TensorMut<'_, f64>, x: &Tensor<'_, f64>) {
    let _ = add(stream, z, x, x, 1.0); //~ E0277
}

pub fn of_two_element_types(stream: &Stream, z: &mut TensorMut<'_, f32>, x: &Tensor<'_, BF16>) {
    let _ = add(stream, z, x, x, 1.0); //~ E0308
}

pub fn written_where_it_is_shared(stream: &Stream, z: &mut Floats<'_>, x: &Floats<'_>) {
    let _ = add__f32_1024(stream, z, x, x, 1.0); //~ E0308
}

pub fn made_to_be_written_of_what_is_shared(buffer: &DeviceBuffer<f32>) -> Result<TensorMut<'_, f32>> {
    TensorMut::new(buffer, [8]) //~ E0308
}

pub fn of_elements_that_the_memory_does_not_hold(buffer: &DeviceBuffer<u32>) -> Result<Tensor<'_, f32>> {
    Tensor::new(buffer, [8]) //~ E0308
}

pub fn of_a_number_that_is_none(stream: &Stream, z: &mut TensorMut<'_, f32>, x: &Floats<'_>) {
    let _ = add(stream, z, x, x, true); //~ E0308
}

pub fn without_saying_who_vouches() -> Result<Floats<'static>> {
    Tensor::from_raw(4096, &[8], &[1], 0) //~ E0133
}

pub fn made_to_be_written_of_a_part_that_is_shared<'a>(part: &'a mut DeviceSlice<'_, f32>) -> Result<TensorMut<'a, f32>> {
    TensorMut::new(part, [8]) //~ E0277
}
