/*
 * fork_inside [first] - forks in a signal handler that interrupted an emit, at the instruction that it is told.
 *
 * Each line of input is a number: single-steps one emit of thread 0 as far as that instruction, and forks there. The
 * parent finishes the emit, goes once round a ring of 1,024, and only then lets the child finish its half, which after
 * that is captured as a process of its own and emits once more, as thread 1. With `first` it is the first emit of a
 * new thread each time. Answers with the number of the last event and the child's status; if the emit ended before
 * that instruction, with the number of its instructions.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "numbered.h"

#define TRAP_FLAG 0x100
#define LAP 1100

static volatile long left;
static volatile pid_t child;
static int go[2];

static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (left-- > 0) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    child = fork();
    char byte;
    if (child == 0 && read(go[0], &byte, 1) != 1) _exit(9);
}

static uint64_t number;

static void *one_round(void *unused) {
    (void)unused;
    child = -1;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    uint64_t recorded = emit(0, number + 1);
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    if (child == 0) {
        if (!nrt_trace_wait_armed(30000)) _exit(1);
        _exit(emit(1, 1) == 0 ? 2 : 0);
    }
    number++;
    if (recorded == 0) exit(4);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    if (!nrt_trace_wait_armed(30000)) return 3;
    emit(0, ++number);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (pipe(go) != 0) return 5;
        long step = left = strtol(line, NULL, 10);
        pthread_t thread;
        if (argc > 1) {
            if (pthread_create(&thread, NULL, one_round, NULL) != 0) return 6;
            pthread_join(thread, NULL);
        } else {
            one_round(NULL);
        }
        if (child < 0) {
            printf("%ld\n", step - left);
            fflush(stdout);
            continue;
        }
        for (int n = 0; n < LAP; n++) emit(0, ++number);
        int status = -1;
        if (write(go[1], "", 1) != 1 || waitpid(child, &status, 0) != child) return 7;
        close(go[0]), close(go[1]);
        printf("%llu %d\n", (unsigned long long)number, status);
        fflush(stdout);
    }
    return 0;
}
