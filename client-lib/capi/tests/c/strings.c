/** Every result and every error of the string database. Prints "done" at its end. */
#include <string.h>

#include "check.h"
#include "nrt/nrt_sys_trace.h"

typedef nrt_interned_string_db_shard_t shard_t;

static const char *const bad[] = {NULL, "\xff", "model\x80", "\xc0\xaf", "\xed\xa0\x80"};

static void ids(void) {
    CHECK(nrt_interned_string_db_get_id("") == 121655548788208);
    CHECK(nrt_interned_string_db_get_id("a") == 933183196555764);
    CHECK(nrt_interned_string_db_get_id("model.neff") == 566264322956826);
    CHECK(nrt_interned_string_db_get_id("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e") == 830970404915775);
    CHECK(nrt_interned_string_db_get_id("model") == nrt_sys_trace_capture_intern_string(0, "model"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(nrt_interned_string_db_get_id(bad[i]) == 0);
}

static void add(shard_t *shard, uint64_t id, const char *name) {
    CHECK(nrt_interned_string_db_register_entry(name, id, shard) == NRT_SUCCESS);
}

/** Whether a shard holds exactly these entries, in this order. */
static bool holds(const shard_t *shard, size_t want, const uint64_t *want_ids, const char *const *want_names) {
    uint64_t *ids = NULL;
    char **names = NULL;
    size_t count = 0;
    CHECK(nrt_interned_string_db_get_entries(shard, &ids, &names, &count) == NRT_SUCCESS);
    bool same = count == want && (want != 0) == (ids != NULL) && (want != 0) == (names != NULL);
    for (size_t i = 0; same && i < count; i++) same = ids[i] == want_ids[i] && strcmp(names[i], want_names[i]) == 0;
    nrt_interned_string_db_free_entries(ids, names, count);
    return same;
}

static void entries(void) {
    shard_t *shard = nrt_interned_string_db_shard_alloc();
    CHECK(shard != NULL);
    CHECK(holds(shard, 0, NULL, NULL));

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(nrt_interned_string_db_register_entry(bad[i], 1, shard) == NRT_INVALID);
    }
    CHECK(nrt_interned_string_db_register_entry("name", 1, NULL) == NRT_INVALID);
    CHECK(nrt_interned_string_db_register_entry(NULL, 1, NULL) == NRT_INVALID);
    CHECK(nrt_interned_string_db_register_entry("name", 0, shard) == NRT_INVALID);
    CHECK(holds(shard, 0, NULL, NULL));

    add(shard, 9, "nine");
    add(shard, 2, "");
    add(shard, UINT64_MAX, "last");
    add(shard, 9, "nine");
    add(shard, 9, "a conflict");
    const uint64_t want_ids[] = {2, 9, UINT64_MAX};
    const char *const want_names[] = {"", "nine", "last"};
    CHECK(holds(shard, 3, want_ids, want_names));

    /* A missing result clears the others. */
    uint64_t *ids = (uint64_t *)&ids;
    char **names = (char **)&names;
    size_t count = 99;
    CHECK(nrt_interned_string_db_get_entries(shard, NULL, &names, &count) == NRT_INVALID && names == NULL && count == 0);
    count = 99;
    CHECK(nrt_interned_string_db_get_entries(shard, &ids, NULL, &count) == NRT_INVALID && ids == NULL && count == 0);
    ids = (uint64_t *)&ids;
    names = (char **)&names;
    CHECK(nrt_interned_string_db_get_entries(shard, &ids, &names, NULL) == NRT_INVALID && ids == NULL && names == NULL);
    ids = (uint64_t *)&ids;
    names = (char **)&names;
    count = 99;
    CHECK(nrt_interned_string_db_get_entries(NULL, &ids, &names, &count) == NRT_INVALID);
    CHECK(ids == NULL && names == NULL && count == 0);
    CHECK(nrt_interned_string_db_get_entries(shard, NULL, NULL, NULL) == NRT_INVALID);

    /* A long name comes back whole. */
    size_t length = 65536;
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    memset(text, 'x', length);
    text[length] = 0;
    add(shard, 3, text);
    CHECK(nrt_interned_string_db_get_entries(shard, &ids, &names, &count) == NRT_SUCCESS && count == 4);
    CHECK(ids[1] == 3 && strcmp(names[1], text) == 0);
    free(names[0]);
    names[0] = NULL;
    nrt_interned_string_db_free_entries(ids, names, count);
    free(text);

    nrt_interned_string_db_free_entries(NULL, NULL, 0);
    nrt_interned_string_db_free_entries(NULL, NULL, 5);
    nrt_interned_string_db_shard_free(shard);
    nrt_interned_string_db_shard_free(NULL);
}

static void combined(void) {
    shard_t *from = nrt_interned_string_db_shard_alloc();
    shard_t *into = nrt_interned_string_db_shard_alloc();
    CHECK(from != NULL && into != NULL && from != into);
    CHECK(nrt_interned_string_db_combine_shards(NULL, into) == NRT_INVALID);
    CHECK(nrt_interned_string_db_combine_shards(from, NULL) == NRT_INVALID);
    CHECK(nrt_interned_string_db_combine_shards(NULL, NULL) == NRT_INVALID);
    CHECK(nrt_interned_string_db_combine_shards(from, into) == NRT_SUCCESS && holds(into, 0, NULL, NULL));

    add(from, 1, "one");
    add(from, 2, "theirs");
    add(into, 2, "ours");
    add(into, 3, "three");
    CHECK(nrt_interned_string_db_combine_shards(from, into) == NRT_SUCCESS);
    CHECK(nrt_interned_string_db_combine_shards(into, into) == NRT_SUCCESS);
    const uint64_t want_ids[] = {1, 2, 3};
    const char *const want_names[] = {"one", "ours", "three"};
    CHECK(holds(into, 3, want_ids, want_names));
    const char *const from_names[] = {"one", "theirs"};
    CHECK(holds(from, 2, want_ids, from_names));

    nrt_interned_string_db_shard_free(from);
    CHECK(holds(into, 3, want_ids, want_names));
    nrt_interned_string_db_shard_free(into);
}

int main(void) {
    ids();
    entries();
    combined();
    puts("done");
    return 0;
}
