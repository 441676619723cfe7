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

#include <stdint.h>

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

/* ---- HotPath: from arguments to a launch ---- */

typedef struct {
    PyObject_HEAD
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
    PyObject *gathered, *append, *borrowed, *asker, *room, *weight, *hold;
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
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "nO!O!pO!OOOOOO:HotPath", keywords,
                                     &self->count, &PyTuple_Type, &tensor_at, &PyTuple_Type,
                                     &deciding_at, &self->several, &PyDict_Type, &self->known,
                                     &self->driver, &self->under_way, &self->launch, &self->tensor,
                                     &self->array, &self->current_stream)) {
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
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->known);
    Py_VISIT(self->driver);
    Py_VISIT(self->under_way);
    Py_VISIT(self->launch);
    Py_VISIT(self->tensor);
    Py_VISIT(self->array);
    Py_VISIT(self->current_stream);
    return 0;
}

static int hot_clear(PyObject *object)
{
    HotPath *self = (HotPath *)object;
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

/* The addresses into the cells that `fitted.pointers` names: pairs of a cell and a tensor. */
static int fill_pointers(const Start *start, PyObject *fitted, PyObject *addresses)
{
    PyObject *pointers = PyObject_GetAttr(fitted, names.pointers);
    Py_ssize_t number, count = pointers ? PyList_Size(pointers) : -1;
    for (number = 0; number < count; number++) {
        PyObject *pair = PyList_GetItem(pointers, number);
        Py_ssize_t cell = PyLong_AsSsize_t(PyTuple_GetItem(pair, 0));
        Py_ssize_t tensor = PyLong_AsSsize_t(PyTuple_GetItem(pair, 1));
        PyObject *address = PyErr_Occurred() ? NULL : PyTuple_GetItem(addresses, tensor);
        if (!address)
            break;
        start->cells[cell] = PyLong_AsUnsignedLongLong(address);
    }
    Py_XDECREF(pointers);
    return PyErr_Occurred() ? -1 : 0;
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

/* A launch that was looked up. */
typedef struct {
    PyObject *fitted, *entry, *addresses, *stream;
    long torch_device;
} Known;

/* The stream that a caller means. */
static PyObject *stream_for(const HotPath *self, long torch_device, PyObject *stream)
{
    if (stream != Py_None) {
        Py_INCREF(stream);
        return stream;
    }
    if (torch_device < 0)
        return PyLong_FromLong(0);
    return PyObject_CallFunction(self->current_stream, "l", torch_device);
}

/* The handle of a launch that is about to be started. */
static PyObject *handle_of(const HotPath *self, const Known *known, PyObject *borrowed)
{
    PyObject *is_foreign = known->torch_device >= 0 ? Py_True : Py_False, *handle;
    PyObject *touched = PyTuple_Pack(3, known->fitted, known->addresses, is_foreign);
    if (!touched)
        return NULL;
    handle = PyObject_CallFunctionObjArgs(self->launch, self->driver, known->entry, known->stream,
                                          borrowed, touched, NULL);
    Py_DECREF(touched);
    return handle;
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
    int failed = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception);
    PyErr_Fetch(&kind, &value, &trace);
    if ((failed && PyObject_SetAttr(handle, names.borrowed, Py_None))
        || PyObject_SetAttr(handle, names.asker, asker))
        PyErr_Clear(); /* both only store */
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
    if (fill_pointers(start, known->fitted, known->addresses)
        || fill_scalars(start, known->fitted, call->given)
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

/* Looks up what was read, and starts it. */
static Outcome start_known(const HotPath *self, PyObject *key, PyObject *addresses,
                           long torch_device, const Call *call, PyObject **handle)
{
    Known known = {NULL, NULL, addresses, NULL, torch_device};
    Outcome outcome = NOT_HERE;
    if (find(self, key, addresses, &known.fitted, &known.entry))
        return NOT_HERE;
    known.stream = stream_for(self, torch_device, call->stream);
    if (known.stream)
        outcome = start_entry(self, &known, call, handle);
    Py_XDECREF(known.stream);
    Py_DECREF(known.entry);
    Py_DECREF(known.fitted);
    return outcome;
}

/* Reads the arguments, and starts what is known of them. */
static Outcome start_given(const HotPath *self, const Call *call, PyObject **handle)
{
    Read read;
    PyObject *key = NULL, *addresses = NULL;
    Outcome outcome = NOT_HERE;
    read.addresses.count = read.key.count = 0;
    read.torch_device = -1;
    if (!read_arguments(self, &read, call->given) && (key = tuple_of(&read.key))
        && (addresses = tuple_of(&read.addresses)))
        outcome = start_known(self, key, addresses, read.torch_device, call, handle);
    Py_XDECREF(key);
    Py_XDECREF(addresses);
    forget(&read.key);
    forget(&read.addresses);
    return outcome;
}

static PyObject *hot_start(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    const HotPath *self = (HotPath *)object;
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
        {&names.append, "append"},     {&names.borrowed, "_borrowed"},
        {&names.asker, "asker"},       {&names.room, "_room"},
        {&names.weight, "weight"},     {&names.hold, "hold"},
    };
    size_t number;
    for (number = 0; number < sizeof all / sizeof *all; number++)
        if (!(*all[number].name = PyUnicode_InternFromString(all[number].text)))
            return -1;
    return 0;
}

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_hot_path", "Launches of what was launched before.", -1,
    NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__hot_path(void)
{
    PyObject *made = PyModule_Create(&module), *hot = NULL;
    if (!made)
        return NULL;
    if (make_names() || !(start_type = (PyTypeObject *)PyType_FromSpec(&start_spec))
        || PyModule_AddObjectRef(made, "Start", (PyObject *)start_type)
        || !(hot = PyType_FromSpec(&hot_spec)) || PyModule_AddObjectRef(made, "HotPath", hot)
        || PyModule_AddObject(made, "source", PyLong_FromUnsignedLong(SOURCE)))
        Py_CLEAR(made);
    Py_XDECREF(hot);
    return made;
}
