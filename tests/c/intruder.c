/*
 * intruder SOCKET DAEMON_PID - attaches by hand, without the library, and tries to write, cut, grow and reach what it
 * must not.
 *
 * Prints a line for each try: what it was, and `refused` or `DONE`. What a process may do to its own rings (write them,
 * punch holes into them) it does in the end, so that the daemon has to live with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* crates/abi/src/message.rs */
struct header { uint32_t magic; uint16_t abi, kind; uint32_t bytes, reserved; };
struct hello {
    struct header header;
    uint32_t record_bytes, word_bytes, slot_bytes;
    int32_t worker_gid;
    uint32_t claimed_pid;
    uint16_t visible_len, name_len, token_len, exe_len;
    uint32_t reserved;
    uint64_t armed_generation;
    uint16_t visible[256];
    char name[128], token[128], exe[256];
};
struct armed { struct header header; uint64_t generation; uint32_t error, reserved; };

#define MAGIC 0x4D54524Eu /* "NRTM" */
#define ABI 2

static void tried(const char *what, int refused) {
    printf("%s: %s\n", what, refused ? "refused" : "DONE");
    fflush(stdout);
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* One message and its descriptors; the answer is how many came. */
static int receive(int socket, void *packet, size_t bytes, int *fds, int most) {
    char space[CMSG_SPACE(8 * sizeof(int))];
    struct iovec part = {packet, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (recvmsg(socket, &message, 0) <= 0) die("receive");
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    if (!control) return 0;
    int count = (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    if (count > most) exit(1);
    memcpy(fds, CMSG_DATA(control), (size_t)count * sizeof(int));
    return count;
}

/* Resizing and sealing: of no file of ours. */
static void resize(const char *name, int fd) {
    char what[80];
    struct stat before, after;
    fstat(fd, &before);
#define TRY(text, call) snprintf(what, sizeof what, "%s: %s", name, text), tried(what, (call) != 0)
    TRY("cut to nothing", ftruncate(fd, 0));
    TRY("cut to a page", ftruncate(fd, before.st_size - 4096));
    TRY("grow", ftruncate(fd, before.st_size + 4096));
    TRY("grow by allocating", fallocate(fd, 0, before.st_size, 4096));
    TRY("collapse", fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
    TRY("seal against writing", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    TRY("seal against new mappings", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    fstat(fd, &after);
    TRY("another size", before.st_size == after.st_size ? -1 : 0);
}

/* Writing the control page, in every way that the kernel has. */
static void write_page(int fd) {
    uint64_t poison = UINT64_MAX;
    char path[64], what[80];
    const char *name = "page";
    const volatile uint64_t *seen = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (seen == MAP_FAILED) die("map the page");
    uint64_t before[512];
    for (int i = 0; i < 512; i++) before[i] = seen[i];
    TRY("map for writing", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    TRY("make the mapping writable", mprotect((void *)(uintptr_t)seen, 4096, PROT_READ | PROT_WRITE));
    TRY("write", pwrite(fd, &poison, 8, 2048) == 8 ? 0 : -1);
    TRY("punch a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    TRY("zero a range", fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096));
    TRY("remove the page from the mapping", madvise((void *)(uintptr_t)seen, 4096, MADV_REMOVE));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again >= 0) { /* root may open it; the seal holds all the same */
        TRY("reopen and write", pwrite(again, &poison, 8, 2048) == 8 ? 0 : -1);
        TRY("reopen and map", mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED ? -1 : 0);
        close(again);
    }
    TRY("reopen and cut", truncate(path, 0));
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    TRY("send a file into it", sendfile(fd, self, NULL, 4096) > 0 ? 0 : -1);
    close(zero), close(self);
    int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    TRY("write through /proc/self/mem", pwrite(memory, &poison, 8, (off_t)(uintptr_t)&seen[256]) == 8 ? 0 : -1);
    close(memory);
    uint64_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (own != MAP_FAILED) own[256] = poison; /* a copy of its own, which nobody else sees */
    /* The daemon itself writes its clock and gates meanwhile; what it never writes is as it was, and nothing is poison. */
    int changed = 0;
    for (int i = 0; i < 512; i++) changed |= seen[i] == poison || (i < 4 && i != 2 && seen[i] != before[i]);
    TRY("change a word", changed ? 0 : -1);
}

/* Reaching other processes' memory: there is no name to open, and no number that is not one's own. */
static void reach(const char *daemon) {
    char what[80], path[96];
    const char *name = "others";
    int foreign = -1;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) die("become nobody");
    for (int fd = 0; fd < 64 && foreign < 0; fd++) {
        snprintf(path, sizeof path, "/proc/%s/fd/%d", daemon, fd);
        foreign = open(path, O_RDONLY | O_CLOEXEC);
    }
    /* Whoever runs as the daemon's own user may debug it, and needs no tricks. */
    struct stat owner;
    snprintf(path, sizeof path, "/proc/%s", daemon);
    if (stat(path, &owner) == 0 && owner.st_uid == geteuid())
        printf("others: same user\n");
    else
        TRY("open the daemon's descriptors", foreign);
}

/* Waits for a whole line. */
static void wait_for_line(void) {
    int c;
    do
        if ((c = getchar()) == EOF) exit(1);
    while (c != '\n');
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    if (connect(socket_fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
    struct hello hello = {.header = {MAGIC, ABI, 1, sizeof hello, 0}, .record_bytes = 112, .word_bytes = 8, .slot_bytes = 128};
    memcpy(hello.name, "intruder", hello.name_len = 8);
    if (send(socket_fd, &hello, sizeof hello, 0) != sizeof hello) die("hello");
    union { struct header header; struct { struct header header; uint64_t generation, bytes; } arm; char room[2048]; } packet;
    int shared[2], segment;
    if (receive(socket_fd, &packet, sizeof packet, shared, 2) != 2) die("no welcome");
    if (receive(socket_fd, &packet, sizeof packet, &segment, 1) != 1) die("no rings");
    struct armed armed = {.header = {MAGIC, ABI, 5, sizeof armed, 0}, .generation = packet.arm.generation};
    if (send(socket_fd, &armed, sizeof armed, 0) != sizeof armed) die("armed");
    if (receive(socket_fd, &packet, sizeof packet, shared, 0) != 0) die("go");

    write_page(shared[0]);
    resize("page", shared[0]);
    resize("names", shared[1]);
    resize("rings", segment);
    /* Its own to spoil: every word, then no memory at all behind them. */
    struct stat size;
    fstat(segment, &size);
    uint64_t *words = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, segment, 0);
    if (words == MAP_FAILED) die("map the rings");
    memset(words, 0x5A, (size_t)size.st_size);
    printf("spoiled\n");
    fflush(stdout);
    wait_for_line();
    if (fallocate(segment, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size.st_size) != 0) die("punch");
    printf("punched\n");
    fflush(stdout);
    wait_for_line();
    reach(argv[2]);
    return 0;
}
