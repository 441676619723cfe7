// What docs/launchers-rust.md uses of cudarc, with the signatures of its version 0.19.
pub mod driver {
    use std::ffi::c_void;
    use std::marker::PhantomData;
    use std::sync::Arc;

    pub struct CudaContext;
    pub struct CudaStream(Arc<CudaContext>);
    pub struct CudaSlice<T>(Arc<CudaStream>, PhantomData<T>);
    pub struct SyncOnDrop<'a>(PhantomData<&'a CudaStream>);
    pub enum CUstream_st {}

    impl CudaContext {
        pub fn ordinal(&self) -> usize {
            0
        }
    }

    impl CudaStream {
        pub fn context(&self) -> &Arc<CudaContext> {
            &self.0
        }
        pub fn cu_stream(&self) -> *mut CUstream_st {
            std::ptr::null_mut::<c_void>().cast()
        }
    }

    impl<T> CudaSlice<T> {
        pub fn stream(&self) -> &Arc<CudaStream> {
            &self.0
        }
    }

    pub trait DeviceSlice<T> {
        fn len(&self) -> usize;
        fn num_bytes(&self) -> usize {
            self.len() * std::mem::size_of::<T>()
        }
        fn stream(&self) -> &Arc<CudaStream>;
    }

    pub trait DevicePtr<T>: DeviceSlice<T> {
        fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
    }

    impl<T> DeviceSlice<T> for CudaSlice<T> {
        fn len(&self) -> usize {
            0
        }
        fn stream(&self) -> &Arc<CudaStream> {
            &self.0
        }
    }

    impl<T> DevicePtr<T> for CudaSlice<T> {
        fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
            (0, SyncOnDrop(PhantomData))
        }
    }
}
