/*
 * The test programs' few helpers. A program is a list of static functions run
 * by RUN(); it ends with `return test_end();`: 0, 1, or 77 if all cases were skipped.
 * Its last line on stdout is "N passed, N failed, N skipped".
 */
#ifndef CM_TESTS_TEST_H
#define CM_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>

struct test_state {
    int passed, failed, skipped;
    bool broken; /* the running case has failed a check */
    const char *skip;
};
static struct test_state test_state;

/* Check a condition; the message shows the inputs. The case goes on. */
#define CHECK(cond, ...)                                               \
    do {                                                               \
        if (!(cond)) {                                                 \
            test_state.broken = true;                                  \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
            fprintf(stderr, __VA_ARGS__);                              \
            fputc('\n', stderr);                                       \
        }                                                              \
    } while (0)

/* Mark the running case as skipped, with the reason. */
#define SKIP(reason) (test_state.skip = (reason))

#define RUN(fn)                                              \
    do {                                                     \
        test_state.broken = false;                           \
        test_state.skip = NULL;                              \
        fn();                                                \
        if (test_state.broken) {                             \
            test_state.failed++;                             \
            printf("not ok %s\n", #fn);                      \
        } else if (test_state.skip != NULL) {                \
            test_state.skipped++;                            \
            printf("skip   %s: %s\n", #fn, test_state.skip); \
        } else {                                             \
            test_state.passed++;                             \
            printf("ok     %s\n", #fn);                      \
        }                                                    \
        fflush(stdout);                                      \
    } while (0)

static inline int test_end(void)
{
    printf("%d passed, %d failed, %d skipped\n", test_state.passed, test_state.failed,
           test_state.skipped);
    return test_state.failed != 0 ? 1 : test_state.passed == 0 && test_state.skipped != 0 ? 77 : 0;
}

#endif
