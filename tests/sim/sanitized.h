/* Which sanitizer a test is built with: what it shows, and what it costs, differ. */
#ifndef CM_TESTS_SIM_SANITIZED_H
#define CM_TESTS_SIM_SANITIZED_H

#include <stdbool.h>

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
static const bool with_tsan = true;
#else
static const bool with_tsan = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
static const bool __attribute__((unused)) with_asan = true;
#else
static const bool __attribute__((unused)) with_asan = false;
#endif

#endif
