// ---- Inner: what is used of the CUDA driver, under names of its own

// Constants of cuda.h.
const CU_INVALID_VALUE: c_int = 1;
const CU_MULTIPROCESSOR_COUNT: c_int = 16;
const CU_CAPABILITY_MAJOR: c_int = 75;
const CU_CAPABILITY_MINOR: c_int = 76;
const CU_MAX_DYNAMIC_SHARED_BYTES: c_int = 8;
const CU_DEVICE_ORDINAL: c_int = 9;
const CU_CLUSTER_DIMENSION: c_int = 4;
const CU_PROGRAMMATIC_SERIALIZATION: c_int = 6;
const CU_STREAM_NON_BLOCKING: c_uint = 1;
const CU_EVENT_WITHOUT_TIME: c_uint = 2;
const CU_CAPTURE_RELAXED: c_int = 2;
const CU_PROGRAMMATIC_PORT: u8 = 1;
const CU_PROGRAMMATIC_DEPENDENCY: u8 = 1;

/// A CUtensorMap.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(128))]
struct Map {
    opaque: [u64; 16],
}

/// A CUlaunchAttribute.
#[derive(Clone, Copy)]
#[repr(C)]
struct LaunchAttribute {
    id: c_int,
    padding: [u8; 4],
    value: [u32; 16],
}

/// A CUlaunchConfig.
#[repr(C)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: *mut c_void,
    attributes: *mut LaunchAttribute,
    attribute_count: c_uint,
}

/// A CUDA_KERNEL_NODE_PARAMS_v2; without a function, the kernel counts.
#[repr(C)]
struct Node {
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    slots: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: *mut c_void,
    context: *mut c_void,
}

/// A CUgraphEdgeData.
#[repr(C)]
struct Edge {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

macro_rules! driver {
    (
        needed { $($field:ident: $name:literal ($($type:ty),*);)* }
        optional { $($other:ident: $other_name:literal ($($other_type:ty),*);)* }
    ) => {
        /// What is called of the driver. Results are CUresult, which is an int; devices are CUdevice, which is one too.
        /// What only some programs need may be missing.
        struct Driver {
            $($field: unsafe extern "C" fn($($type),*) -> c_int,)*
            $($other: Option<unsafe extern "C" fn($($other_type),*) -> c_int>,)*
        }

        impl Driver {
            fn find(library: usize) -> Result<Driver> {
                Ok(Driver {
                    $($field: match find(library, $name) {
                        // SAFETY: the driver declares the function so.
                        Some(found) => unsafe {
                            transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(found)
                        },
                        None => return lacks($name),
                    },)*
                    // SAFETY: as above.
                    $($other: find(library, $other_name).map(|found| unsafe {
                        transmute::<*mut c_void, unsafe extern "C" fn($($other_type),*) -> c_int>(found)
                    }),)*
                })
            }
        }
    };
}

driver! {
    needed {
        init: c"cuInit" (c_uint);
        error_name: c"cuGetErrorName" (c_int, *mut *const c_char);
        device_count: c"cuDeviceGetCount" (*mut c_int);
        device_get: c"cuDeviceGet" (*mut c_int, c_int);
        device_name: c"cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_attribute: c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        primary_retain: c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
        context_current: c"cuCtxGetCurrent" (*mut *mut c_void);
        context_device: c"cuCtxGetDevice" (*mut c_int);
        context_push: c"cuCtxPushCurrent_v2" (*mut c_void);
        context_pop: c"cuCtxPopCurrent_v2" (*mut *mut c_void);
        pointer_attribute: c"cuPointerGetAttribute" (*mut c_void, c_int, u64);
        library_load: c"cuLibraryLoadData" (
            *mut *mut c_void, *const c_void, *mut c_int, *mut *mut c_void, c_uint, *mut c_int, *mut *mut c_void,
            c_uint
        );
        library_kernel: c"cuLibraryGetKernel" (*mut *mut c_void, *mut c_void, *const c_char);
        kernel_set: c"cuKernelSetAttribute" (c_int, c_int, *mut c_void, c_int);
        launch: c"cuLaunchKernel" (
            *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void,
            *mut *mut c_void
        );
        launch_extended: c"cuLaunchKernelEx" (*const LaunchConfig, *mut c_void, *mut *mut c_void, *mut *mut c_void);
        clusters_at_once: c"cuOccupancyMaxActiveClusters" (*mut c_int, *mut c_void, *const LaunchConfig);
        map_encode: c"cuTensorMapEncodeTiled" (
            *mut Map, c_int, u32, u64, *const u64, *const u64, *const u32, *const u32, c_int, c_int, c_int, c_int
        );
        stream_create: c"cuStreamCreate" (*mut *mut c_void, c_uint);
        stream_wait: c"cuStreamSynchronize" (*mut c_void);
        stream_destroy: c"cuStreamDestroy_v2" (*mut c_void);
    }
    optional {
        stream_device: c"cuStreamGetDevice" (*mut c_void, *mut c_int); // since CUDA 12.8
        memory_allocate: c"cuMemAlloc_v2" (*mut u64, usize);
        memory_free: c"cuMemFree_v2" (u64);
        memory_set: c"cuMemsetD8_v2" (u64, u8, usize);
        memory_to_device: c"cuMemcpyHtoD_v2" (u64, *const c_void, usize);
        memory_to_host: c"cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
        memory_take: c"cuMemAllocAsync" (*mut u64, usize, *mut c_void);
        memory_give: c"cuMemFreeAsync" (u64, *mut c_void);
        context_wait: c"cuCtxSynchronize" ();
        event_create: c"cuEventCreate" (*mut *mut c_void, c_uint);
        event_record: c"cuEventRecord" (*mut c_void, *mut c_void);
        event_destroy: c"cuEventDestroy_v2" (*mut c_void);
        stream_captured: c"cuStreamIsCapturing" (*mut c_void, *mut c_int);
        exchange_capture_mode: c"cuThreadExchangeStreamCaptureMode" (*mut c_int);
        stream_wait_event: c"cuStreamWaitEvent" (*mut c_void, *mut c_void, c_uint);
        graph_create: c"cuGraphCreate" (*mut *mut c_void, c_uint);
        graph_destroy: c"cuGraphDestroy" (*mut c_void);
        graph_add_kernel: c"cuGraphAddKernelNode_v2" (
            *mut *mut c_void, *mut c_void, *const *mut c_void, usize, *const Node
        );
        graph_add_edges: c"cuGraphAddDependencies_v2" (
            *mut c_void, *const *mut c_void, *const *mut c_void, *const Edge, usize
        );
        graph_set_attribute: c"cuGraphKernelNodeSetAttribute" (*mut c_void, c_int, *const [u32; 16]);
        graph_instantiate: c"cuGraphInstantiateWithFlags" (*mut *mut c_void, *mut c_void, u64);
        graph_set_kernel: c"cuGraphExecKernelNodeSetParams_v2" (*mut c_void, *mut c_void, *const Node);
        graph_launch: c"cuGraphLaunch" (*mut c_void, *mut c_void);
        graph_forget: c"cuGraphExecDestroy" (*mut c_void);
    }
}
