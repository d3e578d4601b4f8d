/*
 * Text of unknown bytes (host names, paths, wires) inside of other languages.
 * One walk serves them all: a table says what a character is written as, and
 * what has no place in any of them becomes '?'.
 */
#include "common/report_int.h"

struct escape {
    char c;
    const char *as;
};

static const char *escaped(const struct escape *table, char c)
{
    for (; table->as != NULL; table++) {
        if (table->c == c)
            return table->as;
    }
    return NULL;
}

/* U+FFFE and U+FFFF are no characters of XML, and of no use elsewhere. */
static bool is_nothing(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;

    return n == 3 && u[0] == 0xef && u[1] == 0xbf && u[2] >= 0xbe;
}

static void put(FILE *f, const char *text, const struct escape *table)
{
    while (*text != '\0') {
        size_t n = cm_utf8_length(text);
        const char *as = escaped(table, *text);

        if (as != NULL)
            fputs(as, f);
        else if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f || is_nothing(text, n))
            fputc('?', f);
        else
            fwrite(text, 1, n, f);
        text += n == 0 ? 1 : n;
    }
}

void cm_put_plain(FILE *f, const char *text)
{
    static const struct escape table[] = {{0, NULL}};

    put(f, text, table);
}

void cm_put_xml(FILE *f, const char *text)
{
    static const struct escape table[] = {{'&', "&amp;"},  {'<', "&lt;"},    {'>', "&gt;"},
                                          {'"', "&quot;"}, {'\'', "&apos;"}, {'\n', "&#10;"},
                                          {'\r', "&#13;"}, {'\t', "&#9;"},   {0, NULL}};

    put(f, text, table);
}

void cm_put_label(FILE *f, const char *text)
{
    static const struct escape table[] = {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}, {0, NULL}};

    put(f, text, table);
}

void cm_put_command(FILE *f, const char *text)
{
    static const struct escape table[] = {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {0, NULL}};

    put(f, text, table);
}

void cm_put_property(FILE *f, const char *text)
{
    static const struct escape table[] = {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"},
                                          {':', "%3A"}, {',', "%2C"},  {0, NULL}};

    put(f, text, table);
}

/* Named characters of HTML are plain text for Markdown, whatever stands around them. */
void cm_put_markdown(FILE *f, const char *text)
{
    static const struct escape table[] = {
        {'&', "&amp;"},  {'<', "&lt;"},  {'>', "&gt;"},  {'|', "&#124;"}, {'`', "&#96;"},
        {'*', "&#42;"},  {'_', "&#95;"}, {'[', "&#91;"}, {']', "&#93;"},  {'\\', "&#92;"},
        {'~', "&#126;"}, {'#', "&#35;"}, {'@', "&#64;"}, {'!', "&#33;"},  {'\n', " "},
        {'\r', " "},     {'\t', " "},    {0, NULL}};

    put(f, text, table);
}
