// ---- Public: memory that tensors are made of

/// Memory of a device that tensors are made of. Implement it for the buffers of other crates.
///
/// # Safety
/// `address` is that of `bytes` bytes of memory of the device, which hold elements of type `Element` and stay where they
/// are, and alive, for as long as a value is borrowed; what was started on them before is done, or comes before what is
/// launched. `device` is the driver's number of the device.
pub unsafe trait DeviceMemory {
    type Element: Element;
    fn address(&self) -> u64;
    fn bytes(&self) -> usize;
    fn device(&self) -> i32;
}

/// Memory that whoever has it by `&mut` may write.
///
/// # Safety
/// Nobody else reads or writes it while a value is borrowed by `&mut`.
pub unsafe trait DeviceMemoryMut: DeviceMemory {}
