/* Launches of what was launched before, without the interpreter: the module `_hot_path`.
 *
 * `Start` is the function of a frame (machine_code.py) that calls the driver. `HotPath` does what
 * `Launcher._start` (launcher.py) does where shapes and addresses are known: it looks up, fills a
 * frame and starts it. Whatever is new it leaves to Python, which decides and explains everything,
 * so this file checks no contract and has no message of one.
 *
 * Built where there is a C compiler (setup.py); the runtime does without it, slower. It keeps
 * to the stable ABI of Python 3.10, so that one build does for all later ones, and asks for no
 * header of CUDA: the addresses of the driver's functions are given.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>

#include <stdint.h>
#include <string.h>

#ifndef SOURCE
#define SOURCE 0ul /* by setup.py the checksum of this file, by which native.py knows it */
#endif

enum {
    LEGACY_STREAM = 1, /* of cuda.h; 0 is what callers call it */
    PER_THREAD_STREAM = 2,
    MOST_TENSORS = 32, /* of a kernel; launches of others are for Python */
    MOST_DECIDING = 16,
    KEYS_OF_TENSOR = 4, /* at most: what a key says of a tensor of PyTorch */
    KEYS_OF_NUMBER = 2,
    KNOWN_BITS = 4, /* the field of a `ScalarSlot` */
    MOST_KEYS = KEYS_OF_TENSOR * MOST_TENSORS + KEYS_OF_NUMBER * MOST_DECIDING
};

/* The headers of 3.12 and later count no reference to None in `Py_RETURN_NONE`, which what is built
 * with them owes to older Pythons. */
#undef Py_RETURN_NONE
static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* ---- Start: a frame's function ---- */

typedef int (*LaunchKernel)(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                            unsigned, unsigned, unsigned shared_bytes, void *stream,
                            void **parameters, void **extra);
typedef int (*LaunchExtended)(const void *config, void *function, void **parameters, void **extra);
typedef int (*DeviceOfStream)(void *stream, int *device);
typedef int (*CurrentDevice)(int *device);

/* CUlaunchConfig (CUDA Driver API, "Data types used by CUDA driver"). */
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    void *attributes;
    unsigned attribute_count;
} LaunchConfig;

/* A tensor map lies where a parameter says, made for the address that this cell held. */
typedef struct {
    Py_ssize_t cell;
    uint64_t address;
} Map;

typedef struct {
    PyObject_HEAD
    void *launch; /* cuLaunchKernel, or cuLaunchKernelEx if there is a config */
    void *function;
    LaunchConfig *config;
    unsigned grid[3], threads, shared_bytes;
    void **parameters;
    uint64_t *cells;
    Map *maps;
    Py_ssize_t map_count;
    int device; /* that streams must be of; -1 if there is one device only */
    void *device_of_stream, *current_device;
    PyObject *renew;     /* (number) makes a map anew, for the address in its cell */
    PyObject *refused;   /* (status, stream) what to do about a launch that was refused */
    PyObject *elsewhere; /* (stream) what to do about a stream of another device */
    PyObject *held;      /* what the driver knows by address only */
} Start;

static PyTypeObject *start_type;

/* An address that Python gives as a number. */
static void *address_of(unsigned long long number) { return (void *)(uintptr_t)number; }

static int init_maps(Start *self, PyObject *cells)
{
    Py_ssize_t number, count = PyTuple_Size(cells);
    if (count < 0)
        return -1;
    self->maps = PyMem_Calloc((size_t)count + 1, sizeof *self->maps);
    if (!self->maps) {
        PyErr_NoMemory();
        return -1;
    }
    self->map_count = count;
    for (number = 0; number < count; number++) {
        self->maps[number].cell = PyLong_AsSsize_t(PyTuple_GetItem(cells, number));
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *start_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"launch",    "function",         "grid",           "threads",
                               "shared_bytes", "parameters",    "cells",          "config",
                               "maps",      "device",           "device_of_stream",
                               "current_device", "renew",       "refused",        "elsewhere",
                               "held",      NULL};
    unsigned long long launch, function, parameters, cells, config, device_of_stream, current;
    PyObject *maps;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Start *self = (Start *)allocate(type, 0);
    if (!self)
        return NULL;
    if (!PyArg_ParseTupleAndKeywords(
            arguments, named, "KK(III)IIKKKO!iKKOOOO:Start", keywords, &launch, &function,
            &self->grid[0], &self->grid[1], &self->grid[2], &self->threads, &self->shared_bytes,
            &parameters, &cells, &config, &PyTuple_Type, &maps, &self->device, &device_of_stream,
            &current, &self->renew, &self->refused, &self->elsewhere, &self->held)) {
        self->renew = self->refused = self->elsewhere = self->held = NULL;
        Py_DECREF(self);
        return NULL;
    }
    Py_INCREF(self->renew);
    Py_INCREF(self->refused);
    Py_INCREF(self->elsewhere);
    Py_INCREF(self->held);
    self->launch = address_of(launch);
    self->function = address_of(function);
    self->parameters = address_of(parameters);
    self->cells = address_of(cells);
    self->config = address_of(config);
    self->device_of_stream = address_of(device_of_stream);
    self->current_device = address_of(current);
    if (init_maps(self, maps)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int start_traverse(PyObject *object, visitproc visit, void *arg)
{
    Start *self = (Start *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->renew);
    Py_VISIT(self->refused);
    Py_VISIT(self->elsewhere);
    Py_VISIT(self->held);
    return 0;
}

static int start_clear(PyObject *object)
{
    Start *self = (Start *)object;
    Py_CLEAR(self->renew);
    Py_CLEAR(self->refused);
    Py_CLEAR(self->elsewhere);
    Py_CLEAR(self->held);
    return 0;
}

static void start_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    start_clear(object);
    PyMem_Free(((Start *)object)->maps);
    release(object);
    Py_DECREF(type);
}

/* Whether a stream is of another device than the tensors, as far as the driver says. */
static int is_elsewhere(const Start *self, uintptr_t stream)
{
    int device = self->device, has_context = 1;
    if (device < 0)
        return 0;
    Py_BEGIN_ALLOW_THREADS /* what watches the driver may wait for the interpreter */
    if (stream <= PER_THREAD_STREAM)
        has_context = !((CurrentDevice)self->current_device)(&device);
    else if (self->device_of_stream)
        ((DeviceOfStream)self->device_of_stream)((void *)stream, &device);
    Py_END_ALLOW_THREADS
    return !has_context || device != self->device;
}

/* Tensor maps for the addresses in the cells; those of the last launch are there already. */
static int renew_maps(Start *self)
{
    Py_ssize_t number;
    for (number = 0; number < self->map_count; number++) {
        Map *map = &self->maps[number];
        PyObject *done;
        uint64_t address = self->cells[map->cell];
        if (address == map->address)
            continue;
        done = PyObject_CallFunction(self->renew, "n", number);
        if (!done)
            return -1;
        Py_DECREF(done);
        map->address = address;
    }
    return 0;
}

static int launched(const Start *self, void *stream)
{
    if (self->config) {
        self->config->stream = stream;
        return ((LaunchExtended)self->launch)(self->config, self->function, self->parameters, NULL);
    }
    return ((LaunchKernel)self->launch)(self->function, self->grid[0], self->grid[1], self->grid[2],
                                        self->threads, 1, 1, self->shared_bytes, stream,
                                        self->parameters, NULL);
}

/* Launches on a stream; 0 if it did, -1 with an exception. */
static int started(Start *self, unsigned long long number)
{
    uintptr_t stream = number ? (uintptr_t)number : LEGACY_STREAM;
    PyObject *done;
    int status;
    if (is_elsewhere(self, stream))
        done = PyObject_CallFunction(self->elsewhere, "K", number);
    else {
        if (renew_maps(self))
            return -1;
        Py_BEGIN_ALLOW_THREADS
        status = launched(self, (void *)stream);
        Py_END_ALLOW_THREADS
        if (!status)
            return 0;
        done = PyObject_CallFunction(self->refused, "iK", status, number);
    }
    if (!done)
        return -1;
    Py_DECREF(done);
    return 0;
}

static PyObject *start_call(PyObject *object, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"stream", NULL};
    PyObject *stream;
    unsigned long long number;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:start", keywords, &stream))
        return NULL;
    number = PyLong_AsUnsignedLongLong(stream); /* "K" would take any number, and another stream */
    if (PyErr_Occurred() || started((Start *)object, number))
        return NULL;
    return none();
}

static PyType_Slot start_slots[] = {
    {Py_tp_doc, "Start(...)\n--\n\nLaunches on a stream what a frame's cells hold."},
    {Py_tp_new, start_new},
    {Py_tp_call, start_call},
    {Py_tp_traverse, start_traverse},
    {Py_tp_clear, start_clear},
    {Py_tp_dealloc, start_dealloc},
    {0, NULL},
};

static PyType_Spec start_spec = {"tilec.runtime._hot_path.Start", sizeof(Start), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, start_slots};

/* ---- Handle: the fields of a `Launch` ---- */

/* What launch.py derives its class from, whose `__init__` fills in the same. */
typedef struct {
    PyObject_HEAD
    PyObject *touched, *is_over, *asker, *is_passing, *waits_for_legacy, *driver, *entry, *stream;
    PyObject *event, *borrowed;
} Handle;

static PyTypeObject *handle_type;

#define FIELD(name, text) {text, T_OBJECT_EX, offsetof(Handle, name), 0, NULL}
static PyMemberDef handle_members[] = {
    FIELD(touched, "touched"),
    FIELD(is_over, "_is_over"),
    FIELD(asker, "asker"),
    FIELD(is_passing, "_is_passing"),
    FIELD(waits_for_legacy, "waits_for_legacy"),
    FIELD(driver, "_driver"),
    FIELD(entry, "entry"),
    FIELD(stream, "stream"),
    FIELD(event, "_event"),
    FIELD(borrowed, "_borrowed"),
    {NULL, 0, 0, 0, NULL},
};

static int handle_traverse(PyObject *object, visitproc visit, void *arg)
{
    Handle *self = (Handle *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->touched);
    Py_VISIT(self->is_over);
    Py_VISIT(self->asker);
    Py_VISIT(self->is_passing);
    Py_VISIT(self->waits_for_legacy);
    Py_VISIT(self->driver);
    Py_VISIT(self->entry);
    Py_VISIT(self->stream);
    Py_VISIT(self->event);
    Py_VISIT(self->borrowed);
    return 0;
}

static int handle_clear(PyObject *object)
{
    Handle *self = (Handle *)object;
    Py_CLEAR(self->touched);
    Py_CLEAR(self->is_over);
    Py_CLEAR(self->asker);
    Py_CLEAR(self->is_passing);
    Py_CLEAR(self->waits_for_legacy);
    Py_CLEAR(self->driver);
    Py_CLEAR(self->entry);
    Py_CLEAR(self->stream);
    Py_CLEAR(self->event);
    Py_CLEAR(self->borrowed);
    return 0;
}

static void handle_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    handle_clear(object);
    release(object);
    Py_DECREF(type);
}

static PyType_Slot handle_slots[] = {
    {Py_tp_doc, "The fields of a launch under way (launch.py)."},
    {Py_tp_members, handle_members},
    {Py_tp_traverse, handle_traverse},
    {Py_tp_clear, handle_clear},
    {Py_tp_dealloc, handle_dealloc},
    {0, NULL},
};

static PyType_Spec handle_spec = {"tilec.runtime._hot_path.Handle", sizeof(Handle), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                  handle_slots};

static PyObject *owned(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* Puts another object into a field. */
static void put(PyObject **field, PyObject *object)
{
    PyObject *before = *field;
    *field = owned(object);
    Py_XDECREF(before);
}

/* ---- What PyTorch says of a tensor to C ---- */

enum { CUDA_DEVICE = 2, DLPACK_MAJOR = 1 };

/* DLTensor, DLPackExchangeAPI (DLPack 1.3, dlpack.h). */
typedef struct {
    void *data;
    int32_t device_type, device;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct Exchange {
    uint32_t major, minor;
    const struct Exchange *older;
    void *allocate, *export, *import;
    int (*read)(void *tensor, DLTensor *found);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} Exchange;

/* Tensors of these very classes are read so; `is_neg` is asked of each, for the exchange does not
 * say it. One for the process, as PyTorch is. */
static struct {
    PyObject *tensor, *parameter, *is_neg;
    const Exchange *exchange;
} torch;

static PyObject *know_torch(PyObject *module, PyObject *arguments)
{
    PyObject *tensor, *parameter, *capsule, *is_neg;
    const Exchange *exchange;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOO:know_torch", &tensor, &parameter, &capsule, &is_neg))
        return NULL;
    exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!exchange)
        return NULL;
    while (exchange && exchange->major != DLPACK_MAJOR)
        exchange = exchange->older;
    torch.exchange = exchange && exchange->read && exchange->current_stream ? exchange : NULL;
    put(&torch.tensor, tensor);
    put(&torch.parameter, parameter);
    put(&torch.is_neg, is_neg);
    return PyBool_FromLong(torch.exchange != NULL);
}

/* ---- HotPath: from arguments to a launch ---- */

enum { SEEN = 32, MOST_WORDS = 256 };

/* Arguments as numbers: the same for arguments of which the same was found before. Facts of the
 * runtime's tensors go by their addresses, so whoever has the words has them. */
typedef struct {
    uint64_t word[MOST_WORDS];
    Py_ssize_t count;
    PyObject *facts[MOST_TENSORS];
    Py_ssize_t fact_count;
    long torch_device; /* -1 without a tensor of PyTorch */
} Words;

/* An address that goes into a cell. */
typedef struct {
    Py_ssize_t cell;
    uint64_t address;
} Pointer;

/* What was launched with some arguments: `words` and `pointers` are bytes, `facts` a tuple. */
typedef struct {
    PyObject *words, *facts, *fitted, *entry, *touched, *pointers;
} Seen;

typedef struct {
    PyObject_HEAD
    allocfunc make_handle;
    Seen seen[SEEN];
    PyObject *known;          /* dict: what fits the arguments of a key */
    PyObject *driver;
    PyObject *under_way;      /* of which `only` is the stream of all launches under way */
    PyObject *launch;         /* the class of handles */
    PyObject *tensor, *array; /* the runtime's own classes of tensors */
    PyObject *current_stream; /* (device) the stream on which PyTorch is */
    Py_ssize_t count, tensor_count, deciding_count;
    Py_ssize_t tensor_at[MOST_TENSORS], deciding_at[MOST_DECIDING];
    int several; /* devices */
} HotPath;

/* What a caller asks for: the arguments (a tuple), the stream or None, what the handle keeps,
 * whether the stream may be gone, or another one, later (True or False), and the weight of what it
 * borrows, None for that of its entry. */
typedef struct {
    PyObject *given, *stream, *borrowed, *is_passing, *weight;
} Call;

/* Objects that become a tuple when all are there: Python code that runs meanwhile (a property, a
 * finalizer) must not find a tuple that is half full. */
typedef struct {
    PyObject *items[MOST_KEYS];
    Py_ssize_t count;
} Objects;

/* What the arguments of a launch are, as `reading.read` says. */
typedef struct {
    Objects addresses, key;
    long torch_device; /* -1 without a tensor of PyTorch */
} Read;

/* Names of attributes, made once. */
static struct {
    PyObject *is_cuda, *is_neg, *data_ptr, *dtype, *shape, *is_contiguous, *stride, *get_device;
    PyObject *pointer, *facts, *entries, *only, *frames, *pointers, *scalars, *bits;
    PyObject *gathered, *append, *room, *weight, *hold;
} names;

/* Indices of `given` arguments; -1 if there are more than `most`, or with an exception. */
static Py_ssize_t indices(PyObject *tuple, Py_ssize_t given, Py_ssize_t *into, Py_ssize_t most)
{
    Py_ssize_t number, count = PyTuple_Size(tuple);
    if (count > most)
        return -1;
    for (number = 0; number < count; number++) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GetItem(tuple, number));
        if (!PyErr_Occurred() && (index < 0 || index >= given))
            PyErr_SetString(PyExc_IndexError, "there is no such argument");
        if (PyErr_Occurred())
            return -1;
        into[number] = index;
    }
    return count;
}

static PyObject *hot_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"count",  "tensor_at", "deciding_at", "several", "known",
                               "driver", "under_way", "launch",      "tensor",  "array",
                               "current_stream", NULL};
    PyObject *tensor_at, *deciding_at;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    HotPath *self = (HotPath *)allocate(type, 0);
    if (!self)
        return NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "nO!O!pO!OOO!OOO:HotPath", keywords,
                                     &self->count, &PyTuple_Type, &tensor_at, &PyTuple_Type,
                                     &deciding_at, &self->several, &PyDict_Type, &self->known,
                                     &self->driver, &self->under_way, &PyType_Type, &self->launch,
                                     &self->tensor, &self->array, &self->current_stream)) {
        self->known = self->driver = self->under_way = self->launch = NULL;
        self->tensor = self->array = self->current_stream = NULL;
        Py_DECREF(self);
        return NULL;
    }
    Py_INCREF(self->known);
    Py_INCREF(self->driver);
    Py_INCREF(self->under_way);
    Py_INCREF(self->launch);
    Py_INCREF(self->tensor);
    Py_INCREF(self->array);
    Py_INCREF(self->current_stream);
    self->make_handle = (allocfunc)PyType_GetSlot((PyTypeObject *)self->launch, Py_tp_alloc);
    if (!PyType_IsSubtype((PyTypeObject *)self->launch, handle_type))
        PyErr_SetString(PyExc_TypeError, "expected a class of handles");
    if (!PyErr_Occurred())
        self->tensor_count = indices(tensor_at, self->count, self->tensor_at, MOST_TENSORS);
    if (!PyErr_Occurred())
        self->deciding_count =
            indices(deciding_at, self->count, self->deciding_at, MOST_DECIDING);
    if (PyErr_Occurred())
        Py_CLEAR(self);
    else if (self->tensor_count < 0 || self->deciding_count < 0)
        self->count = -1; /* which no call has */
    return (PyObject *)self;
}

static int hot_traverse(PyObject *object, visitproc visit, void *arg)
{
    HotPath *self = (HotPath *)object;
    int number;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->known);
    Py_VISIT(self->driver);
    Py_VISIT(self->under_way);
    Py_VISIT(self->launch);
    Py_VISIT(self->tensor);
    Py_VISIT(self->array);
    Py_VISIT(self->current_stream);
    for (number = 0; number < SEEN; number++) {
        Py_VISIT(self->seen[number].facts);
        Py_VISIT(self->seen[number].fitted);
        Py_VISIT(self->seen[number].entry);
        Py_VISIT(self->seen[number].touched);
    }
    return 0;
}

/* Forgets what was seen; its objects go when the place is free, for they may run code. */
static void clear_seen(Seen *place)
{
    Seen before = *place;
    memset(place, 0, sizeof *place);
    Py_XDECREF(before.words);
    Py_XDECREF(before.facts);
    Py_XDECREF(before.fitted);
    Py_XDECREF(before.entry);
    Py_XDECREF(before.touched);
    Py_XDECREF(before.pointers);
}

static int hot_clear(PyObject *object)
{
    HotPath *self = (HotPath *)object;
    int number;
    for (number = 0; number < SEEN; number++)
        clear_seen(&self->seen[number]);
    Py_CLEAR(self->known);
    Py_CLEAR(self->driver);
    Py_CLEAR(self->under_way);
    Py_CLEAR(self->launch);
    Py_CLEAR(self->tensor);
    Py_CLEAR(self->array);
    Py_CLEAR(self->current_stream);
    return 0;
}

static void hot_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    hot_clear(object);
    release(object);
    Py_DECREF(type);
}

/* Adds an object, of which it takes the reference; -1 if there is none. */
static int add(Objects *to, PyObject *object)
{
    if (!object)
        return -1;
    to->items[to->count++] = object;
    return 0;
}

static void forget(Objects *objects)
{
    while (objects->count)
        Py_DECREF(objects->items[--objects->count]);
}

/* A tuple of objects, which takes the references. */
static PyObject *tuple_of(Objects *objects)
{
    Py_ssize_t number;
    PyObject *tuple = PyTuple_New(objects->count);
    if (!tuple)
        return NULL;
    for (number = 0; number < objects->count; number++)
        PyTuple_SetItem(tuple, number, objects->items[number]);
    objects->count = 0;
    return tuple;
}

static int is_true(PyObject *answer)
{
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

/* The functions that read a tensor ask what `reading.read` asks, in its order. They give 0, or -1
 * where Python is to read it, with or without an exception. */

/* One of the runtime's own tensors. */
static int read_tensor(Read *read, PyObject *tensor)
{
    if (add(&read->addresses, PyObject_GetAttr(tensor, names.pointer)))
        return -1;
    return add(&read->key, PyObject_GetAttr(tensor, names.facts));
}

/* An array: a tuple whose first field is the address. */
static int read_array(Read *read, PyObject *array)
{
    PyObject *address = PyTuple_GetItem(array, 0);
    Py_XINCREF(address);
    if (add(&read->addresses, address))
        return -1;
    return add(&read->key, PyTuple_GetSlice(array, 1, PyTuple_Size(array)));
}

/* The device of a tensor that answers as PyTorch's do, where there are several. */
static int read_device(Read *read, PyObject *tensor)
{
    PyObject *device = PyObject_CallMethodObjArgs(tensor, names.get_device, NULL);
    if (add(&read->key, device))
        return -1;
    read->torch_device = PyLong_AsLong(device);
    return PyErr_Occurred() ? -1 : 0;
}

/* A tensor that answers as PyTorch's do, if it is one. */
static int read_torch(const HotPath *self, Read *read, PyObject *tensor)
{
    int is_contiguous;
    if (is_true(PyObject_GetAttr(tensor, names.is_cuda)) != 1
        || is_true(PyObject_CallMethodObjArgs(tensor, names.is_neg, NULL)) != 0
        || add(&read->addresses, PyObject_CallMethodObjArgs(tensor, names.data_ptr, NULL))
        || add(&read->key, PyObject_GetAttr(tensor, names.dtype))
        || add(&read->key, PyObject_GetAttr(tensor, names.shape)))
        return -1;
    is_contiguous = is_true(PyObject_CallMethodObjArgs(tensor, names.is_contiguous, NULL));
    if (is_contiguous < 0)
        return -1;
    if (!is_contiguous /* else the strides follow from the shape */
        && add(&read->key, PyObject_CallMethodObjArgs(tensor, names.stride, NULL)))
        return -1;
    if (self->several)
        return read_device(read, tensor);
    read->torch_device = 0;
    return 0;
}

/* A number that decides what is launched: its type, since 1 and True are equal, and itself. */
static void read_number(Read *read, PyObject *number)
{
    PyObject *type = (PyObject *)Py_TYPE(number);
    Py_INCREF(type);
    add(&read->key, type);
    Py_INCREF(number);
    add(&read->key, number);
}

/* 0 if all arguments could be read; else -1, and perhaps an exception. */
static int read_arguments(const HotPath *self, Read *read, PyObject *given)
{
    Py_ssize_t number;
    for (number = 0; number < self->tensor_count; number++) {
        PyObject *tensor = PyTuple_GetItem(given, self->tensor_at[number]);
        PyObject *type = (PyObject *)Py_TYPE(tensor);
        int failed = type == self->tensor  ? read_tensor(read, tensor)
                     : type == self->array ? read_array(read, tensor)
                                           : read_torch(self, read, tensor);
        if (failed)
            return -1;
    }
    for (number = 0; number < self->deciding_count; number++)
        read_number(read, PyTuple_GetItem(given, self->deciding_at[number]));
    return 0;
}

/* The functions that make words give 0, or -1 where something cannot be said in words: then it is
 * read as above, and no exception is left. */

static int say(Words *words, uint64_t word)
{
    if (words->count == MOST_WORDS)
        return -1;
    words->word[words->count++] = word;
    return 0;
}

/* One of the runtime's own tensors. */
static int say_tensor(Words *words, PyObject *tensor)
{
    PyObject *pointer = PyObject_GetAttr(tensor, names.pointer);
    PyObject *facts = pointer ? PyObject_GetAttr(tensor, names.facts) : NULL;
    uint64_t address = facts ? PyLong_AsUnsignedLongLong(pointer) : 0;
    Py_XDECREF(pointer);
    if (facts)
        words->facts[words->fact_count++] = facts;
    if (PyErr_Occurred())
        return -1;
    return say(words, 2) || say(words, address) || say(words, (uint64_t)(uintptr_t)facts) ? -1 : 0;
}

/* A tensor of PyTorch. Which words there are follows from the first. */
static int say_torch(const HotPath *self, Words *words, PyObject *tensor)
{
    DLTensor found;
    int32_t axis;
    uint64_t first;
    if (torch.exchange->read(tensor, &found))
        return -1;
    if (found.device_type != CUDA_DEVICE || found.rank < 0 || found.rank > 64 || found.device < 0
        || found.device > 0xffff || (found.rank && !found.strides)
        || is_true(PyObject_CallFunctionObjArgs(torch.is_neg, tensor, NULL)) != 0)
        return -1;
    first = 1 | (uint64_t)found.rank << 8 | (uint64_t)found.code << 16 | (uint64_t)found.bits << 24;
    if (say(words, first | (uint64_t)found.lanes << 32 | (uint64_t)found.device << 48)
        || say(words, (uint64_t)(uintptr_t)found.data + found.byte_offset))
        return -1;
    for (axis = 0; axis < found.rank; axis++)
        if (say(words, (uint64_t)found.shape[axis]) || say(words, (uint64_t)found.strides[axis]))
            return -1;
    words->torch_device = self->several ? found.device : 0;
    return 0;
}

/* A number that decides what is launched. */
static int say_number(Words *words, PyObject *number)
{
    uint64_t word = 0;
    int overflow = 0;
    if (number == Py_True || number == Py_False)
        return say(words, 3) || say(words, number == Py_True) ? -1 : 0;
    if (PyFloat_CheckExact(number)) {
        double value = PyFloat_AsDouble(number);
        memcpy(&word, &value, sizeof word);
        return say(words, 4) || say(words, word) ? -1 : 0;
    }
    if (!PyLong_CheckExact(number))
        return -1;
    word = (uint64_t)PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow || say(words, 5) || say(words, word) ? -1 : 0;
}

static int say_argument(const HotPath *self, Words *words, PyObject *argument)
{
    PyObject *type = (PyObject *)Py_TYPE(argument);
    if (type == self->tensor)
        return say_tensor(words, argument);
    if (torch.exchange && (type == torch.tensor || type == torch.parameter))
        return say_torch(self, words, argument);
    return -1;
}

static int say_arguments(const HotPath *self, Words *words, PyObject *given)
{
    Py_ssize_t number;
    int failed = 0;
    words->count = words->fact_count = 0;
    words->torch_device = -1;
    for (number = 0; number < self->tensor_count && !failed; number++)
        failed = say_argument(self, words, PyTuple_GetItem(given, self->tensor_at[number]));
    for (number = 0; number < self->deciding_count && !failed; number++)
        failed = say_number(words, PyTuple_GetItem(given, self->deciding_at[number]));
    PyErr_Clear();
    return failed;
}

static void forget_words(Words *words)
{
    while (words->fact_count)
        Py_DECREF(words->facts[--words->fact_count]);
}

/* Whether arguments are still what the words say: what was asked of them may have run code. */
static int is_still(const HotPath *self, const Words *words, PyObject *given)
{
    Words now;
    int is_same = !say_arguments(self, &now, given) && now.count == words->count
                  && !memcmp(now.word, words->word, (size_t)now.count * sizeof *now.word);
    forget_words(&now);
    return is_same;
}

/* Where arguments of these words have been seen, or would be. */
static Seen *place_of(HotPath *self, const Words *words)
{
    uint64_t hash = 0;
    Py_ssize_t number;
    for (number = 0; number < words->count; number++) {
        hash = (hash ^ words->word[number]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return &self->seen[hash % SEEN];
}

static int is_seen(const Seen *place, const Words *words)
{
    size_t size = (size_t)words->count * sizeof *words->word;
    return place->words && (size_t)PyBytes_Size(place->words) == size
           && !memcmp(PyBytes_AsString(place->words), words->word, size);
}

/* An item of a dict that is an attribute, or NULL, with or without an exception. */
static PyObject *found_in(PyObject *object, PyObject *name, PyObject *key)
{
    PyObject *dict = PyObject_GetAttr(object, name), *item;
    if (!dict)
        return NULL;
    item = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(item);
    Py_DECREF(dict);
    return item;
}

/* The addresses for the cells that `fitted.pointers` names, which has pairs of a cell and a tensor:
 * bytes of `Pointer`s. */
static PyObject *pointers_of(PyObject *fitted, PyObject *addresses)
{
    PyObject *pairs = PyObject_GetAttr(fitted, names.pointers), *made = NULL;
    Py_ssize_t number, count = pairs ? PyList_Size(pairs) : -1;
    Pointer found[MOST_TENSORS];
    for (number = 0; number < count && number < MOST_TENSORS; number++) {
        PyObject *pair = PyList_GetItem(pairs, number);
        Py_ssize_t tensor = PyLong_AsSsize_t(PyTuple_GetItem(pair, 1));
        PyObject *address = PyErr_Occurred() ? NULL : PyTuple_GetItem(addresses, tensor);
        if (!address)
            break;
        found[number].cell = PyLong_AsSsize_t(PyTuple_GetItem(pair, 0));
        found[number].address = PyLong_AsUnsignedLongLong(address);
    }
    if (!PyErr_Occurred() && number == count)
        made = PyBytes_FromStringAndSize((const char *)found,
                                         (Py_ssize_t)((size_t)count * sizeof *found));
    Py_XDECREF(pairs);
    return made;
}

static void fill_pointers(const Start *start, PyObject *pointers)
{
    size_t number, count = (size_t)PyBytes_Size(pointers) / sizeof(Pointer);
    const Pointer *all = (const Pointer *)(const void *)PyBytes_AsString(pointers);
    for (number = 0; number < count; number++)
        start->cells[all[number].cell] = all[number].address;
}

/* What a cell holds for a scalar argument, as `ScalarSlot.bits` says: mostly it had that before. */
static PyObject *bits_of(PyObject *scalar, PyObject *argument)
{
    PyObject *known = PyTuple_GetItem(scalar, KNOWN_BITS), *bits;
    PyObject *key = known ? PyTuple_Pack(2, Py_TYPE(argument), argument) : NULL;
    if (!key)
        return NULL;
    bits = PyDict_GetItemWithError(known, key);
    Py_XINCREF(bits);
    Py_DECREF(key);
    if (bits || PyErr_Occurred())
        return bits;
    return PyObject_CallMethodObjArgs(scalar, names.bits, argument, NULL);
}

/* The numbers into the cells that `fitted.scalars` names: a `ScalarSlot` says which and how. */
static int fill_scalars(const Start *start, PyObject *fitted, PyObject *given)
{
    PyObject *scalars = PyObject_GetAttr(fitted, names.scalars);
    Py_ssize_t number, count = scalars ? PyList_Size(scalars) : -1;
    for (number = 0; number < count; number++) {
        PyObject *scalar = PyList_GetItem(scalars, number);
        Py_ssize_t cell = PyLong_AsSsize_t(PyTuple_GetItem(scalar, 0));
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(scalar, 1));
        PyObject *argument = PyErr_Occurred() ? NULL : PyTuple_GetItem(given, position);
        PyObject *bits = argument ? bits_of(scalar, argument) : NULL;
        if (!bits)
            break;
        start->cells[cell] = PyLong_AsUnsignedLongLong(bits);
        Py_DECREF(bits);
        if (PyErr_Occurred())
            break;
    }
    Py_XDECREF(scalars);
    return PyErr_Occurred() ? -1 : 0;
}

/* Takes a frame that is started from here out of a list; NULL if there is none. */
static PyObject *taken(PyObject *frames)
{
    Py_ssize_t count = PyList_Size(frames);
    PyObject *frame;
    if (count < 1)
        return NULL;
    frame = PyList_GetItem(frames, count - 1);
    if (Py_TYPE(PyTuple_GetItem(frame, 1)) != start_type)
        return NULL;
    Py_INCREF(frame);
    if (PyList_SetSlice(frames, count - 1, count, NULL)) {
        Py_DECREF(frame);
        return NULL;
    }
    return frame;
}

/* What became of a launch. Python does those that are NOT_HERE, of which nothing was started, and
 * meets the exception again, if there is one; after the others an exception is the caller's. */
typedef enum { NOT_HERE, STARTED, FAILED } Outcome;

/* A launch that was looked up; `touched` is what a handle says of it, `pointers` is bytes. */
typedef struct {
    PyObject *fitted, *entry, *touched, *pointers, *stream;
} Known;

static void let_go(Known *known)
{
    Py_XDECREF(known->fitted);
    Py_XDECREF(known->entry);
    Py_XDECREF(known->touched);
    Py_XDECREF(known->pointers);
    Py_XDECREF(known->stream);
}

/* The stream that a caller means. */
static PyObject *stream_for(const HotPath *self, long torch_device, PyObject *stream)
{
    if (stream != Py_None)
        return owned(stream);
    if (torch_device < 0)
        return PyLong_FromLong(0);
    return PyObject_CallFunction(self->current_stream, "l", torch_device);
}

/* The same of tensors that PyTorch told C of. */
static PyObject *exchanged_stream(const HotPath *self, long torch_device, PyObject *stream)
{
    void *current = NULL;
    if (stream != Py_None || torch_device < 0)
        return stream_for(self, torch_device, stream);
    if (torch.exchange->current_stream(CUDA_DEVICE, (int32_t)torch_device, &current))
        return NULL;
    return PyLong_FromVoidPtr(current);
}

/* The handle of a launch that is about to be started, with what `Launch.__init__` fills in. */
static PyObject *handle_of(const HotPath *self, const Known *known, PyObject *borrowed)
{
    Handle *made = (Handle *)self->make_handle((PyTypeObject *)self->launch, 0);
    if (!made)
        return NULL;
    made->touched = owned(known->touched);
    made->is_over = owned(Py_False);
    made->asker = owned(Py_None);
    made->is_passing = owned(Py_False);
    made->waits_for_legacy = owned(Py_None);
    made->driver = owned(self->driver);
    made->entry = owned(known->entry);
    made->stream = owned(known->stream);
    made->event = owned(Py_None);
    made->borrowed = owned(borrowed); /* an entry without programs has no frame that is for C */
    return (PyObject *)made;
}

/* Whether all that is under way is on a stream; -1 with an exception. */
static int is_only(const HotPath *self, PyObject *stream)
{
    PyObject *only = PyObject_GetAttr(self->under_way, names.only);
    int answer = only ? PyObject_RichCompareBool(only, stream, Py_EQ) : -1;
    Py_XDECREF(only);
    return answer;
}

/* Adds a handle to what is under way; -1 with an exception. */
static int gather(const HotPath *self, PyObject *handle)
{
    PyObject *gathered = PyObject_GetAttr(self->under_way, names.gathered), *done;
    done = gathered ? PyObject_CallMethodObjArgs(gathered, names.append, handle, NULL) : NULL;
    Py_XDECREF(gathered);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Notes that the driver has a launch, and which thread may ask about it. One that failed borrows
 * nothing, but where an interrupt came it is not known whether it was started. Keeps the exception,
 * if there is one. */
static void note_start(PyObject *handle, PyObject *asker)
{
    PyObject *kind, *value, *trace;
    Handle *noted = (Handle *)handle;
    int failed = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception);
    PyErr_Fetch(&kind, &value, &trace);
    if (failed)
        put(&noted->borrowed, Py_None);
    put(&noted->asker, asker);
    PyErr_Restore(kind, value, trace);
}

/* Takes the weight of a launch off what may gather; 1 if there is room left, -1 with an exception. */
static int take_room(const HotPath *self, PyObject *weight)
{
    PyObject *room = PyObject_GetAttr(self->under_way, names.room);
    long left = room ? PyLong_AsLong(room) : -1;
    Py_XDECREF(room);
    if (left == -1 && PyErr_Occurred())
        return -1;
    left -= PyLong_AsLong(weight);
    if (left <= 0 || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    room = PyLong_FromLong(left);
    if (!room || PyObject_SetAttr(self->under_way, names.room, room))
        left = -1;
    Py_XDECREF(room);
    return left < 0 ? -1 : 1;
}

/* As `UnderWay.hold`, which does it where it is more than counting; -1 with an exception. */
static int hold(const HotPath *self, const Known *known, const Call *call, int is_passing,
                PyObject *handle)
{
    PyObject *weight = call->weight, *done;
    int has_room = 0;
    if (weight == Py_None)
        weight = PyObject_GetAttr(known->entry, names.weight);
    else
        Py_INCREF(weight);
    if (weight && !is_passing)
        has_room = take_room(self, weight);
    done = NULL;
    if (weight && has_room == 0)
        done = PyObject_CallMethodObjArgs(self->under_way, names.hold, handle, weight,
                                          is_passing ? Py_True : Py_False, NULL);
    Py_XDECREF(weight);
    Py_XDECREF(done);
    return has_room == 1 || done ? 0 : -1;
}

/* The same of a launch that failed with an exception, which stays: it has gathered, too. */
static void hold_failed(const HotPath *self, const Known *known, const Call *call, PyObject *handle)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    if (hold(self, known, call, 0, handle))
        PyErr_Clear();
    PyErr_Restore(kind, value, trace);
}

/* Starts a launch as `UnderWay.start` does, and holds it, if nothing is under way elsewhere. From
 * the question until it has gathered all is C: no interrupt of the user comes between, and no other
 * thread. */
static Outcome start_held(const HotPath *self, Start *start, const Known *known, const Call *call,
                          PyObject *handle)
{
    unsigned long long stream = PyLong_AsUnsignedLongLong(known->stream);
    PyObject *asker;
    int failed, is_passing = call->is_passing == Py_True || stream == PER_THREAD_STREAM;
    if (PyErr_Occurred())
        return NOT_HERE;
    asker = PyLong_FromUnsignedLong(is_passing ? PyThread_get_thread_ident() : 0);
    if (!asker || is_only(self, known->stream) != 1 || gather(self, handle)) {
        Py_XDECREF(asker);
        return NOT_HERE;
    }
    failed = started(start, stream);
    note_start(handle, asker);
    Py_DECREF(asker);
    if (failed)
        hold_failed(self, known, call, handle);
    else
        failed = hold(self, known, call, is_passing, handle);
    return failed ? FAILED : STARTED;
}

/* Fills a frame of an entry and starts it; the handle is there before anything is started. */
static Outcome start_frame(const HotPath *self, Start *start, const Known *known, const Call *call,
                           PyObject **handle)
{
    Outcome outcome;
    fill_pointers(start, known->pointers);
    if (fill_scalars(start, known->fitted, call->given)
        || !(*handle = handle_of(self, known, call->borrowed)))
        return NOT_HERE;
    outcome = start_held(self, start, known, call, *handle);
    if (outcome != STARTED)
        Py_CLEAR(*handle);
    return outcome;
}

/* Takes a frame out of a list, and puts it back. One whose launch failed is not used again. */
static Outcome start_of_frames(const HotPath *self, PyObject *frames, const Known *known,
                               const Call *call, PyObject **handle)
{
    PyObject *frame = taken(frames);
    Outcome outcome;
    if (!frame)
        return NOT_HERE;
    outcome = start_frame(self, (Start *)PyTuple_GetItem(frame, 1), known, call, handle);
    if (outcome != FAILED && PyList_Append(frames, frame) && outcome == STARTED)
        PyErr_Clear(); /* another one will be made */
    Py_DECREF(frame);
    return outcome;
}

/* Starts the entry of an instance that is for the addresses. */
static Outcome start_entry(const HotPath *self, const Known *known, const Call *call,
                           PyObject **handle)
{
    PyObject *frames;
    Outcome outcome;
    if (is_only(self, known->stream) != 1) /* asked again, but most of what is in vain ends here */
        return NOT_HERE;
    frames = PyObject_GetAttr(known->entry, names.frames);
    if (!frames)
        return NOT_HERE;
    outcome = start_of_frames(self, frames, known, call, handle);
    Py_DECREF(frames);
    return outcome;
}

/* What was fitted to arguments of this key, and its entry for the addresses; -1 if they are not
 * known, perhaps with an exception. */
static int find(const HotPath *self, PyObject *key, PyObject *addresses, PyObject **fitted,
                PyObject **entry)
{
    *fitted = PyDict_GetItemWithError(self->known, key);
    if (!*fitted)
        return -1;
    Py_INCREF(*fitted);
    *entry = found_in(*fitted, names.entries, addresses);
    if (*entry)
        return 0;
    Py_DECREF(*fitted);
    return -1;
}

/* Keeps what was found for arguments of these words; without memory it does not. */
static void remember(HotPath *self, const Words *words, const Known *known)
{
    Seen made, *place;
    Py_ssize_t number;
    made.facts = PyTuple_New(words->fact_count);
    if (!made.facts) {
        PyErr_Clear();
        return;
    }
    for (number = 0; number < words->fact_count; number++)
        PyTuple_SetItem(made.facts, number, owned(words->facts[number]));
    made.words = PyBytes_FromStringAndSize(
        (const char *)words->word, (Py_ssize_t)((size_t)words->count * sizeof *words->word));
    if (!made.words) {
        PyErr_Clear();
        Py_DECREF(made.facts);
        return;
    }
    made.fitted = owned(known->fitted);
    made.entry = owned(known->entry);
    made.touched = owned(known->touched);
    made.pointers = owned(known->pointers);
    place = place_of(self, words);
    clear_seen(place);
    if (place->words) { /* what was let go of has launched, too */
        clear_seen(&made);
        return;
    }
    *place = made;
}

/* Looks up what was read: 0, or -1 if it is not known, perhaps with an exception. */
static int look_up(const HotPath *self, const Read *read, PyObject *key, PyObject *addresses,
                   const Call *call, Known *known)
{
    PyObject *is_foreign = read->torch_device >= 0 ? Py_True : Py_False;
    if (find(self, key, addresses, &known->fitted, &known->entry)) {
        known->fitted = known->entry = NULL;
        return -1;
    }
    known->touched = PyTuple_Pack(3, known->fitted, addresses, is_foreign);
    known->pointers = known->touched ? pointers_of(known->fitted, addresses) : NULL;
    known->stream =
        known->pointers ? stream_for(self, read->torch_device, call->stream) : NULL;
    return known->stream ? 0 : -1;
}

/* Reads the arguments, and looks up what is known of them: as `look_up`. */
static int read_and_look_up(const HotPath *self, const Call *call, Known *known)
{
    Read read;
    PyObject *key = NULL, *addresses = NULL;
    int failed = -1;
    read.addresses.count = read.key.count = 0;
    read.torch_device = -1;
    if (!read_arguments(self, &read, call->given) && (key = tuple_of(&read.key))
        && (addresses = tuple_of(&read.addresses)))
        failed = look_up(self, &read, key, addresses, call, known);
    Py_XDECREF(key);
    Py_XDECREF(addresses);
    forget(&read.key);
    forget(&read.addresses);
    return failed;
}

/* What was seen with these arguments: as `look_up`. */
static int recall(const HotPath *self, const Seen *place, const Words *words, const Call *call,
                  Known *known)
{
    known->fitted = owned(place->fitted);
    known->entry = owned(place->entry);
    known->touched = owned(place->touched);
    known->pointers = owned(place->pointers);
    known->stream = exchanged_stream(self, words->torch_device, call->stream);
    return known->stream ? 0 : -1;
}

/* Starts what is known of the arguments. What they are in words may have been seen before; else
 * they are read as Python does. */
static Outcome start_given(HotPath *self, const Call *call, PyObject **handle)
{
    Words words;
    Known known = {NULL, NULL, NULL, NULL, NULL};
    Outcome outcome = NOT_HERE;
    int is_said = !say_arguments(self, &words, call->given), failed;
    Seen *place = is_said ? place_of(self, &words) : NULL;
    if (is_said && is_seen(place, &words))
        failed = recall(self, place, &words, call, &known);
    else {
        failed = read_and_look_up(self, call, &known);
        if (!failed && is_said && is_still(self, &words, call->given))
            remember(self, &words, &known);
    }
    forget_words(&words);
    if (!failed)
        outcome = start_entry(self, &known, call, handle);
    let_go(&known);
    return outcome;
}

static PyObject *hot_start(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    HotPath *self = (HotPath *)object;
    PyObject *handle = NULL;
    Outcome outcome = NOT_HERE;
    Call call;
    if (count != 5 || !PyTuple_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "expected arguments, a stream or None, what is borrowed, "
                                         "whether the stream is passing, a weight or None");
        return NULL;
    }
    call.given = arguments[0];
    call.stream = arguments[1];
    call.borrowed = arguments[2];
    call.is_passing = arguments[3];
    call.weight = arguments[4];
    if (PyTuple_Size(call.given) == self->count)
        outcome = start_given(self, &call, &handle);
    if (outcome != NOT_HERE)
        return handle;
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return NULL; /* an interrupt of the user */
        PyErr_Clear();
    }
    return none();
}

static PyMethodDef hot_methods[] = {
    {"start", (PyCFunction)(void (*)(void))hot_start, METH_FASTCALL,
     "start(given, stream, borrowed, is_passing, weight)\n--\n\n"
     "The handle of a launch, held; None, and nothing was started, if it is for Python."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot hot_slots[] = {
    {Py_tp_doc, "HotPath(...)\n--\n\nStarts launches whose shapes and addresses are known."},
    {Py_tp_new, hot_new},
    {Py_tp_methods, hot_methods},
    {Py_tp_traverse, hot_traverse},
    {Py_tp_clear, hot_clear},
    {Py_tp_dealloc, hot_dealloc},
    {0, NULL},
};

static PyType_Spec hot_spec = {"tilec.runtime._hot_path.HotPath", sizeof(HotPath), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, hot_slots};

/* ---- The module ---- */

static int make_names(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } all[] = {
        {&names.is_cuda, "is_cuda"},   {&names.is_neg, "is_neg"},
        {&names.data_ptr, "data_ptr"},
        {&names.dtype, "dtype"},       {&names.shape, "shape"},
        {&names.stride, "stride"},     {&names.is_contiguous, "is_contiguous"},
        {&names.pointer, "pointer"},   {&names.get_device, "get_device"},
        {&names.facts, "facts"},       {&names.entries, "entries"},
        {&names.only, "only"},         {&names.frames, "frames"},
        {&names.pointers, "pointers"}, {&names.scalars, "scalars"},
        {&names.bits, "bits"},         {&names.gathered, "_gathered"},
        {&names.append, "append"},     {&names.room, "_room"},
        {&names.weight, "weight"},     {&names.hold, "hold"},
    };
    size_t number;
    for (number = 0; number < sizeof all / sizeof *all; number++)
        if (!(*all[number].name = PyUnicode_InternFromString(all[number].text)))
            return -1;
    return 0;
}

static PyMethodDef functions[] = {
    {"know_torch", know_torch, METH_VARARGS,
     "know_torch(tensor, parameter, exchange, is_neg)\n--\n\n"
     "Whether tensors of these two classes are read by what a class says to C, from now on."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_hot_path", "Launches of what was launched before.", -1,
    functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__hot_path(void)
{
    PyObject *made = PyModule_Create(&module), *hot = NULL;
    if (!made)
        return NULL;
    if (make_names() || !(start_type = (PyTypeObject *)PyType_FromSpec(&start_spec))
        || !(handle_type = (PyTypeObject *)PyType_FromSpec(&handle_spec))
        || PyModule_AddObjectRef(made, "Handle", (PyObject *)handle_type)
        || PyModule_AddObjectRef(made, "Start", (PyObject *)start_type)
        || !(hot = PyType_FromSpec(&hot_spec)) || PyModule_AddObjectRef(made, "HotPath", hot)
        || PyModule_AddObject(made, "source", PyLong_FromUnsignedLong(SOURCE)))
        Py_CLEAR(made);
    Py_XDECREF(hot);
    return made;
}
