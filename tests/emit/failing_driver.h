/* The fake driver, any call of which may be made to fail, once. What tests put in: RENAMED, what its functions are
 * called here, and PASSED, functions of the driver's names that pass calls on. */
#include <sched.h>

#RENAMED
#include "fake_cuda.c"
#RESTORED

enum { FAILED = 999 }; /* an error that the driver has no name for */
int fails_at, calls;    /* which call fails, 0 for none; how many there were since that was set */
const char *failed;     /* the function that did */
static char is_busy;    /* the fake driver is for one thread at a time */

const char *fake_failed(void) { return failed; }

void fake_fail(int number)
{
    fails_at = number;
    calls = 0;
    failed = NULL;
}

/* Sanitizers see nothing of it: races are those of the launchers, whose threads nothing here orders. */
#define UNSEEN __attribute__((no_sanitize("address", "undefined", "thread")))

const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:fake_cuda.c\nrace:fake_pipelines.h\n"; }

/* All functions of the driver take whole numbers and pointers, twelve at most, so that one that takes twelve stands
 * for any. */
typedef long (*passed_on)(long, long, long, long, long, long, long, long, long, long, long, long);
UNSEEN static long pass_on(passed_on function, const char *name, long a, long b, long c, long d, long e, long f, long g,
                           long h, long i, long j, long k, long l)
{
    long code;
    if (fails_at && ++calls == fails_at) {
        failed = name;
        return FAILED;
    }
    while (__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    code = function(a, b, c, d, e, f, g, h, i, j, k, l);
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
    return code;
}

#define PASS_ON(name) \
    long name(long, long, long, long, long, long, long, long, long, long, long, long); \
    UNSEEN long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) \
    { \
        passed_on function; \
        void *address = (void *)fake_##name; \
        __builtin_memcpy(&function, &address, sizeof function); \
        return pass_on(function, #name, a, b, c, d, e, f, g, h, i, j, k, l); \
    }
#PASSED
