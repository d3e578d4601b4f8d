/*
 * Output of reports: pages of text that go out in one write, and files.
 *
 * A whole file is written at the end, under a temporary name beside its place,
 * and renamed: a reader sees the old document or the new one, never a part.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/report_int.h"

enum cm_status cm_write_all(int fd, const char *text, size_t n, const char *what)
{
    while (n > 0) {
        ssize_t k = write(fd, text, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return cm_fail_errno(what);
        text += k;
        n -= (size_t)k;
    }
    return CM_OK;
}

void cm_page_begin(struct cm_page *p)
{
    p->text = NULL;
    p->n = 0;
    p->f = open_memstream(&p->text, &p->n);
    /* Whatever language the user or a library chose: figures have a decimal point. */
    p->plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    p->before = p->plain != (locale_t)0 ? uselocale(p->plain) : (locale_t)0;
}

static void leave_locale(struct cm_page *p)
{
    if (p->plain == (locale_t)0)
        return;
    uselocale(p->before);
    freelocale(p->plain);
}

char *cm_page_take(struct cm_page *p)
{
    bool whole = p->f != NULL && p->plain != (locale_t)0 && !ferror(p->f);

    leave_locale(p);
    if (p->f != NULL)
        whole = fclose(p->f) == 0 && whole;
    if (whole)
        return p->text;
    free(p->text);
    return NULL;
}

enum cm_status cm_page_end(struct cm_page *p, int fd, const char *what)
{
    char *text = cm_page_take(p);
    enum cm_status st;

    if (text == NULL)
        return CM_FAIL(CM_ENOMEM, "text of %s", what);
    fflush(stdout); /* what others printed comes first */
    st = cm_write_all(fd, text, p->n, what);
    free(text);
    return st;
}

void cm_page_drop(struct cm_page *p)
{
    leave_locale(p);
    if (p->f != NULL)
        fclose(p->f);
    free(p->text);
}

/* Is there something at `path` that a rename must not replace: a device, a pipe? */
static bool is_special(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static char *temp_name(const char *path)
{
    size_t bytes = strlen(path) + 32;
    char *name = malloc(bytes);

    if (name != NULL)
        snprintf(name, bytes, "%s.tmp.%ld", path, (long)getpid());
    return name;
}

enum cm_status cm_outfile_begin(struct cm_outfile *f)
{
    if (f->fd >= 0)
        return CM_OK;
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return CM_SYS(f->fd >= 0, f->what);
}

/* Will begin be able to do its work? Better to know before the run than behind it. */
static enum cm_status try_begin(struct cm_outfile *f)
{
    enum cm_status st = cm_outfile_begin(f);

    if (st != CM_OK)
        return st;
    close(f->fd);
    unlink(f->temp);
    f->fd = -1;
    return CM_OK;
}

static void free_names(struct cm_outfile *f)
{
    free(f->path);
    free(f->temp);
    free(f->what);
    f->path = f->temp = f->what = NULL;
}

/* f->path is set. */
static enum cm_status open_path(struct cm_outfile *f, bool whole)
{
    if (strcmp(f->path, "-") == 0) {
        f->fd = STDOUT_FILENO;
        return CM_OK;
    }
    if (!whole || is_special(f->path)) {
        f->fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        return CM_SYS(f->fd >= 0, f->what);
    }
    f->temp = temp_name(f->path);
    return f->temp != NULL ? try_begin(f) : CM_FAIL(CM_ENOMEM, "%s", f->what);
}

/* "--csv 'PATH'", as the user wrote it. */
static char *name_in_messages(const char *option, const char *path)
{
    size_t bytes = strlen(option) + strlen(path) + sizeof(" ''");
    char *what = malloc(bytes);

    if (what != NULL)
        snprintf(what, bytes, "%s '%s'", option, path);
    return what;
}

enum cm_status cm_outfile_open(const char *option, const char *path, bool whole,
                               struct cm_outfile *out)
{
    struct cm_outfile f = {-1, NULL, NULL, name_in_messages(option, path)};
    enum cm_status st;

    /* Through a link to its end, so that the link survives the rename. */
    f.path = strcmp(path, "-") == 0 ? NULL : realpath(path, NULL);
    if (f.path == NULL)
        f.path = strdup(path);
    if (f.path == NULL || f.what == NULL)
        st = CM_FAIL(CM_ENOMEM, "%s '%s'", option, path);
    else
        st = open_path(&f, whole);
    if (st != CM_OK) {
        free_names(&f);
        return st;
    }
    *out = f;
    return CM_OK;
}

static enum cm_status close_fd(struct cm_outfile *f)
{
    return f->fd == STDOUT_FILENO ? CM_OK : CM_SYS(close(f->fd) == 0, f->what);
}

enum cm_status cm_outfile_keep(struct cm_outfile *f)
{
    enum cm_status st = close_fd(f);

    if (st == CM_OK && f->temp != NULL)
        st = CM_SYS(rename(f->temp, f->path) == 0, f->what);
    free_names(f);
    return st;
}

void cm_outfile_drop(struct cm_outfile *f)
{
    if (f->fd >= 0 && close_fd(f) == CM_OK && f->temp != NULL)
        unlink(f->temp);
    free_names(f);
}

size_t cm_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
        return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void cm_utf8_repair(char *text)
{
    for (char *s = text; *s != '\0';) {
        size_t n = cm_utf8_length(s);

        if (n == 0)
            *s = '?';
        s += n == 0 ? 1 : n;
    }
}
