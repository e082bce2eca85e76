/*
 * closes FOLDER - emits, closes every descriptor from 3 on as a program does that becomes a daemon, opens 100 files of its own in
 * FOLDER, and emits again: some events at once, and 1000 after a byte came from standard input. Ends with status 0 if each of its
 * files is what it was, and prints how many events were taken.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numbered.h"

enum { FILES = 100, AFTER = 1000 };

static int bad(const char *what, int file) {
    fprintf(stderr, "%s of file %d\n", what, file);
    return 1;
}

static void text_of(char *text, size_t bytes, int file) { snprintf(text, bytes, "file %d of the program\n", file); }

int main(int argc, char **argv) {
    if (argc != 2 || !nrt_trace_wait_armed(60000)) return 2;
    uint64_t taken = 0;
    while (taken < 10) taken += emit(0, taken + 1) != 0;

    if (syscall(SYS_close_range, 3, ~0U, 0) != 0) return 3;
    struct stat made[FILES];
    int numbers[FILES];
    char text[64], found[64], path[4096];
    for (int file = 0; file < FILES; file++) {
        snprintf(path, sizeof path, "%s/%d", argv[1], file);
        numbers[file] = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
        text_of(text, sizeof text, file);
        if (numbers[file] < 0) return bad("opening", file);
        if (write(numbers[file], text, strlen(text)) != (ssize_t)strlen(text)) return bad("writing", file);
        if (fstat(numbers[file], &made[file]) != 0) return bad("making", file);
    }

    /* The library finds its connection gone, and makes another one: an event is taken or not meanwhile. */
    for (int some = 0; some < 100; some++) taken += emit(0, taken + 1) != 0;
    puts("closed");
    fflush(stdout);
    if (read(0, found, 1) != 1) return 4;
    for (int after = 0; after < AFTER; after++) taken += emit(0, taken + 1) != 0;

    for (int file = 0; file < FILES; file++) {
        struct stat is;
        text_of(text, sizeof text, file);
        if (fstat(numbers[file], &is) != 0) return bad("closing", file);
        if (is.st_dev != made[file].st_dev || is.st_ino != made[file].st_ino) return bad("replacing", file);
        ssize_t bytes = pread(numbers[file], found, sizeof found, 0);
        if (bytes != (ssize_t)strlen(text) || memcmp(found, text, strlen(text)) != 0) return bad("content", file);
    }
    printf("%llu\n", (unsigned long long)taken);
    return 0;
}
