/*
 * libFuzzer: any bytes as a topology. What parses answers every question
 * within its bounds, and what it dumps parses and dumps to the same text.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void ignore(void *arg, const char *text)
{
    (void)arg;
    require(text[0] != '\0');
}

static char *text_of(const struct cm_topo *t, void (*print)(const struct cm_topo *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    require(f != NULL);
    print(t, f);
    fclose(f);
    return text;
}

static void ask(const struct cm_topo *t)
{
    int32_t cpus[] = {0, 1, -1, 1023, 1024};

    for (int a = 0; a < t->ngpus + t->nnics; a++)
        for (int b = 0; b <= a; b++) {
            struct cm_topo_link l = cm_topo_link(t, a, b), back = cm_topo_link(t, b, a);

            require(l.kind == back.kind && l.nvlinks == back.nvlinks && l.gbs >= 0);
            require((l.kind == CM_TOPO_X) == (a == b));
        }
    for (int gpu = 0; gpu < t->ngpus; gpu++)
        require(cm_topo_nic(t, gpu) < t->nnics);
    (void)cm_topo_warn_nvlink(t, ignore, NULL);
    (void)cm_topo_warn_cores(t, cpus, (int)CM_LEN(cpus), ignore, NULL);
    free(text_of(t, cm_topo_matrix));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cm_topo *t = NULL, *again = NULL;
    char *text, *same;

    if (cm_topo_parse((const char *)data, size, "fuzz", &t) != CM_OK)
        return 0;
    ask(t);
    text = text_of(t, cm_topo_dump);
    require(cm_topo_parse(text, strlen(text), "dump", &again) == CM_OK);
    same = text_of(again, cm_topo_dump);
    require(strcmp(text, same) == 0);
    free(text);
    free(same);
    cm_topo_free(t);
    cm_topo_free(again);
    return 0;
}
