/* A library that intercepts the system calls of a program. system_calls.rs loads it with LD_PRELOAD, and configures it by
 * environment variables, which are set in `SystemCalls::run`.
 *
 * The library installs a seccomp filter. For each system call in the table below, the kernel then sends the program SIGSYS
 * instead of making the call. Replacing functions of the C library would not be enough, because many calls bypass it. The
 * handler of the signal decides about each call. It makes the call itself, from the one address at which the filter lets
 * calls pass, and returns the result to the program. A signal handler can interrupt any code, so it uses only system calls
 * and its own stack. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Makes a system call, given its number and six arguments, from the one address at which the filter lets calls pass. */
long calls_pass(long, long, long, long, long, long, long) __attribute__((visibility("hidden")));
extern const char calls_passed[] __attribute__((visibility("hidden")));

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
__asm__(".text\n.hidden calls_pass\n.globl calls_pass\n.type calls_pass, @function\ncalls_pass:\n"
        "movq %rdi, %rax\nmovq %rsi, %rdi\nmovq %rdx, %rsi\nmovq %rcx, %rdx\nmovq %r8, %r10\nmovq %r9, %r8\n"
        "movq 8(%rsp), %r9\nsyscall\n"
        ".hidden calls_passed\n.globl calls_passed\ncalls_passed:\nret\n");
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
__asm__(".text\n.hidden calls_pass\n.globl calls_pass\n.type calls_pass, @function\ncalls_pass:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\nsvc #0\n"
        ".hidden calls_passed\n.globl calls_passed\ncalls_passed:\nret\n");
#else
#error "no other processor"
#endif

/* The arguments by which a call names its file: a descriptor, a path, a directory with a path, or two of these. */
enum about { FD, PATH, AT, TWO_PATHS, TWO_AT, NOTHING };

static const struct call {
    long number;
    const char *name;
    enum about about;
    int len_at; /* the index of the argument with the length of a read or write; 0 if there is none */
} CALLS[] = {
    {SYS_openat, "open", AT, 0},
    {SYS_ftruncate, "truncate", FD, 0},
    {SYS_fallocate, "allocate", FD, 0},
    {SYS_pwrite64, "write", FD, 2},
    {SYS_write, "write", FD, 2},
    {SYS_pread64, "read", FD, 2},
    {SYS_read, "read", FD, 2},
    {SYS_fsync, "flush", FD, 0},
    {SYS_fdatasync, "flush", FD, 0},
    {SYS_renameat, "rename", TWO_AT, 0},
    {SYS_renameat2, "rename", TWO_AT, 0},
    {SYS_linkat, "link", TWO_AT, 0},
    {SYS_unlinkat, "unlink", AT, 0},
    {SYS_mkdirat, "mkdir", AT, 0},
    {SYS_flock, "lock", FD, 0},
    {SYS_utimensat, "times", AT, 0},
    {SYS_fchmod, "mode", FD, 0},
    {SYS_fchown, "owner", FD, 0},
    {SYS_fstat, "look", FD, 0},
    {SYS_newfstatat, "look", AT, 0},
    {SYS_statx, "look", AT, 0},
    {SYS_getdents64, "list", FD, 0},
    {SYS_lseek, "seek", FD, 0},
#ifdef SYS_open
    {SYS_open, "open", PATH, 0},
    {SYS_creat, "open", PATH, 0},
    {SYS_rename, "rename", TWO_PATHS, 0},
    {SYS_link, "link", TWO_PATHS, 0},
    {SYS_unlink, "unlink", PATH, 0},
    {SYS_rmdir, "unlink", PATH, 0},
    {SYS_mkdir, "mkdir", PATH, 0},
    {SYS_stat, "look", PATH, 0},
    {SYS_lstat, "look", PATH, 0},
    {SYS_epoll_wait, "wait", NOTHING, 0},
    {SYS_poll, "wait", NOTHING, 0},
#endif
    {SYS_epoll_pwait, "wait", NOTHING, 0},
    {SYS_readv, "readv", NOTHING, 0},
    {SYS_writev, "writev", NOTHING, 0},
    {SYS_sendto, "send", NOTHING, 0},
    {SYS_sendmsg, "send", NOTHING, 0},
    {SYS_recvfrom, "receive", NOTHING, 0},
    {SYS_recvmsg, "receive", NOTHING, 0},
    {SYS_connect, "connect", NOTHING, 0},
};
#define KINDS (sizeof CALLS / sizeof *CALLS)
#define PATH_MAX_ 4096

/* The settings from the environment variables. */
static const char *folders, *only, *kept, *boot;
static long at, times = 1;
static int dies, shortens, error_number, log_fd = -1;
static atomic_long count;
/* A lock that is held during each counted call, so that the log has the calls in their order. */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static long pass(long number, const long *a) { return calls_pass(number, a[0], a[1], a[2], a[3], a[4], a[5]); }

static long call(long number, long a, long b, long c, long d, long e) {
    return calls_pass(number, a, b, c, d, e, 0);
}

static size_t put(char *to, size_t len, const char *text) {
    while (*text && len < PATH_MAX_ - 1) to[len++] = *text++;
    to[len] = 0;
    return len;
}

static size_t put_number(char *to, size_t len, long number) {
    char digits[24];
    int n = 0;
    unsigned long rest = number < 0 ? -(unsigned long)number : (unsigned long)number;
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) digits[n++] = '-';
    while (n && len < PATH_MAX_ - 1) to[len++] = digits[--n];
    to[len] = 0;
    return len;
}

/* Writes the path of an open descriptor to `to`. */
static void of_fd(long fd, char *to) {
    char link[64];
    size_t len = put(link, 0, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/");
    if (fd != AT_FDCWD) put_number(link, len, fd);
    long got = call(SYS_readlinkat, AT_FDCWD, (long)link, (long)to, PATH_MAX_ - 1, 0);
    to[got < 0 ? 0 : got] = 0;
}

/* Writes the full path of `path` in the directory `fd` to `to`. Without a `path`, writes the path of `fd` itself. */
static void of_at(long fd, const char *path, char *to) {
    if (path && *path == '/') {
        put(to, 0, path);
        return;
    }
    of_fd(fd, to);
    if (path && *path) put(to, put(to, strlen(to), "/"), path);
}

static int is_below(const char *path) {
    for (const char *folder = folders; folder && *folder;) {
        const char *end = strchr(folder, ':');
        size_t len = end ? (size_t)(end - folder) : strlen(folder);
        if (!strncmp(path, folder, len) && (path[len] == '/' || path[len] == 0)) return 1;
        folder = end ? end + 1 : NULL;
    }
    return 0;
}

static int is_wanted(const char *name) {
    size_t len = strlen(name);
    for (const char *word = only; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL)
        if (!strncmp(word, name, len) && (word[len] == ',' || word[len] == 0)) return 1;
    return !only;
}

static void tell(long number, const char *name, const char *path, const char *to, const char *result) {
    if (log_fd < 0) return;
    char line[3 * PATH_MAX_];
    size_t len = put(line, put_number(line, 0, number), "\t");
    len = put(line, put(line, put(line, put(line, len, name), "\t"), result), "\t");
    for (const char *part = path; *part && len < sizeof line - 4; part++) line[len++] = *part;
    line[len++] = '\t';
    for (const char *part = to; *part && len < sizeof line - 2; part++) line[len++] = *part;
    line[len++] = '\n';
    call(SYS_write, log_fd, (long)line, (long)len, 0, 0);
}

/* Writes a path in the folder of kept files to `to`: a number and the suffix `what`. */
static void kept_name(char *to, long number, const char *what) {
    size_t len = put(to, put(to, 0, kept), "/");
    put(to, put_number(to, len, number), what);
}

/* Links a file that is about to be removed or replaced into the folder of kept files. */
static void keep_name(long number, long fd, const char *path) {
    char name[PATH_MAX_];
    kept_name(name, number, ".lost");
    call(SYS_linkat, fd, (long)path, AT_FDCWD, (long)name, 0);
}

/* Copies the content of a file that has just been flushed into the folder of kept files. */
static void keep_bytes(long fd, unsigned long inode) {
    char name[PATH_MAX_], buffer[16384];
    kept_name(name, (long)inode, ".flushed");
    long copy = call(SYS_openat, AT_FDCWD, (long)name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600, 0);
    if (copy < 0) return;
    for (long from = 0, got; (got = call(SYS_pread64, fd, (long)buffer, sizeof buffer, from, 0)) > 0; from += got)
        call(SYS_write, copy, (long)buffer, got, 0, 0);
    call(SYS_close, copy, 0, 0, 0, 0);
}

static void die(void) {
    call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0);
    for (;;) call(SYS_sched_yield, 0, 0, 0, 0, 0);
}

static long decide(const struct call *kind, long *a) {
    char path[PATH_MAX_], to[PATH_MAX_], result[32];
    const char *name = kind->name;
    path[0] = to[0] = 0;
    /* Without folders, count every call, but report none of them. */
    if (!folders) {
        long number = atomic_fetch_add(&count, 1) + 1;
        if (dies && number == at) die();
        return pass(kind->number, a);
    }
    switch (kind->about) {
    case FD: of_fd(a[0], path); break;
    case PATH: of_at(AT_FDCWD, (const char *)a[0], path); break;
    case AT: of_at((int)a[0], (const char *)a[1], path); break;
    case TWO_PATHS:
        of_at(AT_FDCWD, (const char *)a[0], path);
        of_at(AT_FDCWD, (const char *)a[1], to);
        break;
    case TWO_AT:
        of_at((int)a[0], (const char *)a[1], path);
        of_at((int)a[2], (const char *)a[3], to);
        break;
    case NOTHING: break;
    }
    if (boot && kind->number == SYS_openat && !strcmp(path, "/proc/sys/kernel/random/boot_id")) {
        a[1] = (long)boot;
        return pass(kind->number, a);
    }
    if (!is_below(path) && !is_below(to)) return pass(kind->number, a);

    while (atomic_flag_test_and_set(&busy)) call(SYS_sched_yield, 0, 0, 0, 0, 0);
    struct stat stat = {0};
    int is_file = kind->about == FD && !call(SYS_fstat, a[0], (long)&stat, 0, 0, 0) && S_ISREG(stat.st_mode);
    if (!strcmp(name, "open")) {
        long flags = kind->about == PATH ? a[1] : a[2];
        long missing = call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0);
        if ((flags & O_CREAT) && missing) name = "create";
    }
    if (!strcmp(name, "flush") && !is_file) name = "flush-names";
    long number = atomic_fetch_add(&count, 1) + 1, returned;
    /* The lock that is held here protects this variable. */
    static long wanted;
    long nth = is_wanted(name) ? ++wanted : 0;
    int is_struck = at && nth >= at && nth < at + times;
    if (is_struck && dies) {
        tell(number, name, path, to, "killed");
        die();
    }
    if (is_struck && shortens && kind->len_at && a[kind->len_at] > 1) a[kind->len_at] /= 2;
    if (is_struck && error_number) {
        returned = -error_number;
    } else {
        int new_at = kind->about == TWO_AT ? 3 : 1, old_at = kind->about == AT ? 1 : 0;
        if (kept && !strcmp(name, "rename")) keep_name(number, new_at == 3 ? a[2] : AT_FDCWD, (const char *)a[new_at]);
        if (kept && !strcmp(name, "unlink")) keep_name(number, old_at ? a[0] : AT_FDCWD, (const char *)a[old_at]);
        returned = pass(kind->number, a);
        if (kept && !strcmp(name, "flush") && returned == 0) keep_bytes(a[0], stat.st_ino);
    }
    put_number(result, 0, returned);
    tell(number, name, path, to, result);
    atomic_flag_clear(&busy);
    return returned;
}

static void handle(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *at_call = context;
#if defined(__x86_64__)
    greg_t *r = at_call->uc_mcontext.gregs;
    long a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    greg_t *result = &r[REG_RAX];
#else
    unsigned long long *r = (unsigned long long *)at_call->uc_mcontext.regs;
    long a[6] = {(long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4], (long)r[5]};
    unsigned long long *result = &r[0];
#endif
    for (size_t i = 0; i < KINDS; i++)
        if (CALLS[i].number == info->si_syscall) {
            *result = decide(&CALLS[i], a);
            return;
        }
    *result = -ENOSYS;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

__attribute__((constructor)) static void begin(void) {
    const char *log = variable("CALLS_LOG"), *does = variable("CALLS_DO");
    if (!log) return;
    folders = variable("CALLS_BELOW");
    only = variable("CALLS_ONLY");
    kept = variable("CALLS_KEPT");
    boot = variable("CALLS_BOOT");
    at = variable("CALLS_AT") ? atol(variable("CALLS_AT")) : 0;
    times = variable("CALLS_TIMES") ? atol(variable("CALLS_TIMES")) : 1;
    dies = does && !strcmp(does, "kill");
    shortens = does && !strcmp(does, "shorten");
    error_number = does ? atoi(does) : 0;
    log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) _exit(99);
    /* Move the log to a high descriptor. A program may expect the lowest ones to be free, and may close all of them. */
    int away = fcntl(log_fd, F_DUPFD_CLOEXEC, 500);
    if (away >= 0) {
        close(log_fd);
        log_fd = away;
    }

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    if (sigaction(SIGSYS, &action, NULL)) _exit(99);

    static struct sock_filter filter[KINDS + 16];
    unsigned n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, KINDS + 1);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < KINDS; i++)
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)CALLS[i].number, KINDS - i, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    uint64_t from = (uint64_t)(uintptr_t)calls_passed;
    size_t where = offsetof(struct seccomp_data, instruction_pointer);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where);
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)from, 0, 3);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where + 4);
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(from >> 32), 0, 1);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {(unsigned short)n, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(99);
}

/* If single calls aren't reported, writes the total number of calls to the log. */
__attribute__((destructor)) static void end(void) {
    if (log_fd < 0 || folders) return;
    char line[PATH_MAX_];
    size_t len = put(line, put_number(line, 0, atomic_load(&count)), "\tall\t0\t\t\n");
    call(SYS_write, log_fd, (long)line, (long)len, 0, 0);
}
