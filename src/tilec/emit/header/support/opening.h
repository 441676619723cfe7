/* What the launchers of all kernels share. The same text stands in each header that tilec emits, and counts once in a
 * translation unit.
 *
 * Everything is static, or weak and hidden where there must be one in a program: nothing here is seen by a linker
 * outside of the program or library that it is compiled into. Nothing links libcuda: it is opened at the first launch.
 * Nothing prints, exits or aborts: what goes wrong is a tilec_status, and tilec_last_message() says it in words.
 *
 * Any change of it gives TILEC_SUPPORT another number, and the state that translation units share another name
 * (tilec_state_1): units of two versions then have each their own.
 *
 * Needs gcc or clang, a 64-bit little-endian host (as all CUDA hosts are), and a CUDA driver of version 12 or later.
 */
#if defined(TILEC_SUPPORT) && TILEC_SUPPORT != 1
#error "headers of different versions of tilec in one translation unit: emit them all with one version"
#endif
#ifndef TILEC_SUPPORT
#define TILEC_SUPPORT 1

#if !defined(__GNUC__) || !defined(__SIZEOF_INT128__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "launchers of tilec need gcc or clang, and a 64-bit little-endian host"
#endif

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TILEC_PUBLIC static __attribute__((unused))
#define TILEC_INNER static __attribute__((unused))
/* One in a program or shared library, whatever the number of translation units. */
#define TILEC_ONE __attribute__((weak, visibility("hidden")))

