/* ---- Public: C++17 --------------------------------------------------------------------------------------------- */

#ifdef __cplusplus
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

/* Functions are hidden one by one: were the classes hidden, programs could not hold them in their own without warnings. */
#define TILEC_HIDDEN __attribute__((visibility("hidden")))

namespace tilec {

/* Numbers of types that C++ lacks, as their bits. Those of CUDA's own headers can stand for them: specialise `element`. */
struct f16 { std::uint16_t bits; };
struct bf16 { std::uint16_t bits; };
struct f8e4m3 { std::uint8_t bits; };
struct f8e5m2 { std::uint8_t bits; };

/* The element type of kernels that a type of C++ is. */
template <class T> struct element;
template <tilec_dtype Number> struct element_number { static constexpr tilec_dtype number = Number; };
template <> struct element<bool> : element_number<TILEC_BOOL> {};
template <> struct element<std::int8_t> : element_number<TILEC_I8> {};
template <> struct element<std::uint8_t> : element_number<TILEC_U8> {};
template <> struct element<f8e4m3> : element_number<TILEC_F8E4M3> {};
template <> struct element<f8e5m2> : element_number<TILEC_F8E5M2> {};
template <> struct element<std::int16_t> : element_number<TILEC_I16> {};
template <> struct element<std::uint16_t> : element_number<TILEC_U16> {};
template <> struct element<f16> : element_number<TILEC_F16> {};
template <> struct element<bf16> : element_number<TILEC_BF16> {};
template <> struct element<std::int32_t> : element_number<TILEC_I32> {};
template <> struct element<std::uint32_t> : element_number<TILEC_U32> {};
template <> struct element<float> : element_number<TILEC_F32> {};
template <> struct element<std::int64_t> : element_number<TILEC_I64> {};
template <> struct element<std::uint64_t> : element_number<TILEC_U64> {};
template <> struct element<double> : element_number<TILEC_F64> {};

/* What a call gave. False if it went well, so that `if (auto failed = add(...))` reads as it is meant. */
class [[nodiscard]] status {
public:
    TILEC_HIDDEN explicit status(tilec_status code) : code_(tilec_done(code)), message_(tilec_last_message()) {}
    TILEC_HIDDEN status(const status &) = default;
    TILEC_HIDDEN status(status &&) noexcept = default;
    TILEC_HIDDEN status &operator=(const status &) = default;
    TILEC_HIDDEN status &operator=(status &&) noexcept = default;
    TILEC_HIDDEN ~status() = default;
    TILEC_HIDDEN tilec_status code() const { return code_; }
    TILEC_HIDDEN const char *meaning() const { return tilec_strerror(code_); }
    TILEC_HIDDEN const std::string &message() const { return message_; }
    TILEC_HIDDEN explicit operator bool() const { return code_ != TILEC_SUCCESS; }

private:
    tilec_status code_;
    std::string message_;
};

/* A tensor in device memory whose element type is known; of `const T`, one that kernels only read. */
template <class T> class tensor {
public:
    static constexpr tilec_dtype dtype = element<std::remove_const_t<T>>::number;

    TILEC_HIDDEN tensor(T *data, std::initializer_list<std::int64_t> extents)
        : plain_(tilec_packed(address(data), dtype, static_cast<std::int32_t>(extents.size()), extents.begin()))
    {
    }

    /* Of unequal numbers of extents and strides none is made: its rank is refused by every launch. */
    TILEC_HIDDEN tensor(T *data, std::initializer_list<std::int64_t> extents, std::initializer_list<std::int64_t> strides)
        : plain_(tilec_strided(address(data), dtype,
                               extents.size() == strides.size() ? static_cast<std::int32_t>(extents.size()) : -1,
                               extents.begin(), strides.begin()))
    {
    }

    /* From a tensor of the same elements; what is read only is never written. */
    template <class U, class = std::enable_if_t<tensor<U>::dtype == dtype && (std::is_const_v<T> || !std::is_const_v<U>)>>
    TILEC_HIDDEN tensor(const tensor<U> &other) : plain_(*other.plain())
    {
    }

    TILEC_HIDDEN tensor &on_device(std::int32_t device)
    {
        plain_.device = device;
        return *this;
    }

    TILEC_HIDDEN const tilec_tensor *plain() const { return &plain_; }

private:
    TILEC_HIDDEN static void *address(T *data) { return const_cast<void *>(static_cast<const void *>(data)); }
    tilec_tensor plain_;
};

template <class T> TILEC_HIDDEN tensor<T> tensor_of(T *data, std::initializer_list<std::int64_t> extents)
{
    return tensor<T>(data, extents);
}

template <class T>
TILEC_HIDDEN tensor<T> tensor_of(T *data, std::initializer_list<std::int64_t> extents, std::initializer_list<std::int64_t> strides)
{
    return tensor<T>(data, extents, strides);
}

/* Makes the primary context of a device current for as long as it lives. */
class context {
public:
    TILEC_HIDDEN explicit context(std::int32_t device) : status_(enter(device)) {}
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    TILEC_HIDDEN ~context() { tilec_leave(pushed_); }
    TILEC_HIDDEN const status &result() const { return status_; }

private:
    TILEC_HIDDEN tilec_status enter(std::int32_t device)
    {
        tilec_device *found = nullptr;
        tilec_status failed = tilec_need_device(device, &found);
        return failed ? failed : tilec_enter(device, &pushed_);
    }
    int pushed_ = 0;
    status status_;
};

/* A stream of a device, which is waited for and destroyed with it. */
class stream {
public:
    TILEC_HIDDEN explicit stream(std::int32_t device = 0) : status_(TILEC_SUCCESS), device_(device)
    {
        context current(device);
        status_ = current.result() ? current.result() : made();
    }
    TILEC_HIDDEN stream(stream &&other) noexcept
        : stream_(std::exchange(other.stream_, nullptr)), status_(std::move(other.status_)), device_(other.device_)
    {
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    TILEC_HIDDEN ~stream()
    {
        if (!stream_)
            return;
        context current(device_);
        tilec_state_1.driver.stream_wait(stream_);
        tilec_state_1.driver.stream_destroy(stream_);
    }

    TILEC_HIDDEN operator tilec_stream() const { return stream_; }
    TILEC_HIDDEN const status &result() const { return status_; }

    TILEC_HIDDEN status wait() const
    {
        context current(device_);
        return current.result() ? current.result() : called(tilec_state_1.driver.stream_wait(stream_));
    }

private:
    TILEC_HIDDEN static status called(int code)
    {
        return status(code ? tilec_fail(TILEC_ERROR_LAUNCH, "work on a stream failed: %s", tilec_cuda_error(code))
                           : TILEC_SUCCESS);
    }
    TILEC_HIDDEN status made() { return called(tilec_state_1.driver.stream_create(&stream_, 1)); } /* 1: not with the default one */

    tilec_stream stream_ = nullptr;
    status status_;
    std::int32_t device_;
};

/* Holds the machine code of a file for as long as it lives: `tilec::machine_code code(add_load, add_unload, 0);` */
class machine_code {
public:
    TILEC_HIDDEN machine_code(tilec_status (*load)(std::int32_t), void (*unload)(), std::int32_t device)
        : unload_(unload), status_(load(device))
    {
    }
    machine_code(const machine_code &) = delete;
    machine_code &operator=(const machine_code &) = delete;
    TILEC_HIDDEN ~machine_code() { unload_(); }
    TILEC_HIDDEN const status &result() const { return status_; }

private:
    void (*unload_)();
    status status_;
};

} /* namespace tilec */
#endif

