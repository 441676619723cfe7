// As ../c, with types: what no instance of the kernel takes does not compile.
#include "../device.h"
#include "axpy.h"

#include <cstdio>
#include <numeric>
#include <vector>

template <class T> static int run(const char *name)
{
    std::vector<T> x(1000), y(1000, T(1));
    std::iota(x.begin(), x.end(), T(0));
    const std::int64_t count = 1000;
    T *x_memory = static_cast<T *>(device_copy(x.data(), x.size() * sizeof(T)));
    T *y_memory = static_cast<T *>(device_copy(y.data(), y.size() * sizeof(T)));
    {
        tilec::stream stream(0); // waited for and destroyed at the end of the block
        const tilec::tensor<const T> read(x_memory, {count});
        if (auto failed = tilec::axpy(stream, tilec::tensor_of(y_memory, {count}), read, T(2))) {
            std::printf("%s: %s\n", failed.meaning(), failed.message().c_str());
            return 1;
        }
    }
    device_take(y.data(), y_memory, y.size() * sizeof(T));
    device_take(x.data(), x_memory, x.size() * sizeof(T));
    std::printf("%s: the sum of y = %.0f\n", name, std::accumulate(y.begin(), y.end(), 0.0));
    return 0;
}

int main()
{
    if (!device_open()) {
        std::printf("there is no GPU here\n");
        return 0;
    }
    return run<float>("float") || run<double>("double");
}
