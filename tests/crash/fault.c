/* Makes a chosen system call fail: loaded before libc (LD_PRELOAD), told what to do through a shared file.
 *
 * FAULT_FILE, given to the compiler, names that file; its layout is `struct order` here and `Order` in shim.py. It is
 * no variable, because the programs that idumb starts have few of them. Only calls about
 * paths below `below` count, whatever process of a case makes them; starting programs counts wherever they lie. The
 * process that first opens the file (the one that forks for each case) is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN, WRITE, FSYNC, RENAME, LINK, UNLINK, MKDIR, CLOSE, FORK, EXEC, KINDS };
enum { SHORT = -1 };

struct order {
    int spared;   /* process that is never disturbed; 0 until the first one comes */
    int armed;
    int kind;
    int error;    /* errno, or SHORT for a write that writes less than it was given */
    int sticky;   /* all later calls of the kind fail too */
    int repeated; /* fsyncs, after one failed, of the file whose fsync failed */
    int renewed;  /* fsyncs, after one failed, that succeeded for a file at the path of that one, or for another new object of git's */
    long nth;     /* from 1; 0 fails nothing and counts */
    long fired;
    long counts[KINDS];
    unsigned long device, inode; /* of the file whose fsync failed */
    char below[4096];
    char where[4096]; /* what the call that failed was about */
};

static struct order *order;
static int looked;

/* The function of libc, looked up at the first use in each place. */
#define REAL(name)                                   \
    ({                                               \
        static __typeof__(&name) found;              \
        if (!found)                                  \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        found;                                       \
    })

static struct order *orders(void)
{
    if (!looked) {
        looked = 1;
        int file = REAL(open)(FAULT_FILE, O_RDWR | O_CLOEXEC);
        if (file >= 0) {
            void *place = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            REAL(close)(file);
            if (place != MAP_FAILED)
                order = place;
        }
        if (order)
            __sync_val_compare_and_swap(&order->spared, 0, getpid());
    }
    return order && order->armed && order->spared != getpid() ? order : NULL;
}

__attribute__((constructor)) static void start(void)
{
    orders();
}

/* The path of a call, absolute unless it cannot be told. */
static void resolve(int folder, const char *path, char *full)
{
    char link[64];
    ssize_t length = 0;
    if (!path || path[0] != '/') {
        if (folder == AT_FDCWD)
            strcpy(link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        length = readlink(link, full, 4095);
        if (length < 0)
            length = 0;
    }
    full[length] = 0;
    if (path)
        snprintf(full + length, 4096 - length, "%s%s", length ? "/" : "", path);
}

static int is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* 0 when the call is to go on, else what is wrong with it. */
static int judge(struct order *all, enum kind kind, const char *about)
{
    long number = __sync_add_and_fetch(&all->counts[kind], 1);
    if (kind != (enum kind)all->kind || !all->nth || number < all->nth || (number > all->nth && !all->sticky))
        return 0;
    if (__sync_fetch_and_add(&all->fired, 1) == 0)
        snprintf(all->where, sizeof all->where, "%s", about);
    return all->error;
}

static int fault(enum kind kind, int folder, const char *path)
{
    int before = errno;
    char full[4096];
    struct order *all = orders();
    if (!all)
        return 0;
    resolve(folder, path, full);
    errno = before;
    if (kind != FORK && kind != EXEC && !is_below(full, all->below))
        return 0;
    return judge(all, kind, full);
}

static int refused(enum kind kind, int folder, const char *path)
{
    int error = fault(kind, folder, path);
    if (error <= 0)
        return 0;
    errno = error;
    return 1;
}

#define MODE(flags)                                    \
    mode_t mode = 0;                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {           \
        va_list rest;                                  \
        va_start(rest, flags);                         \
        mode = va_arg(rest, mode_t);                   \
        va_end(rest);                                  \
    }

#define OPENS(name)                                                                              \
    int name(const char *path, int flags, ...)                                                   \
    {                                                                                            \
        MODE(flags)                                                                              \
        return refused(OPEN, AT_FDCWD, path) ? -1 : REAL(name)(path, flags, mode);               \
    }
#define OPENS_AT(name)                                                                           \
    int name(int folder, const char *path, int flags, ...)                                       \
    {                                                                                            \
        MODE(flags)                                                                              \
        return refused(OPEN, folder, path) ? -1 : REAL(name)(folder, path, flags, mode);         \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

/* What a fortified build calls. */
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
int __openat_2(int folder, const char *path, int flags) { return openat(folder, path, flags); }
int __openat64_2(int folder, const char *path, int flags) { return openat64(folder, path, flags); }

int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

FILE *fopen(const char *path, const char *how)
{
    return refused(OPEN, AT_FDCWD, path) ? NULL : REAL(fopen)(path, how);
}

FILE *fopen64(const char *path, const char *how)
{
    return refused(OPEN, AT_FDCWD, path) ? NULL : REAL(fopen64)(path, how);
}

/* How much a write is to write: all, a part, or nothing and -1. */
static ssize_t allowed(int file, size_t length)
{
    int error = fault(WRITE, file, NULL);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return error == SHORT && length > 1 ? (ssize_t)(length / 2) : (ssize_t)length;
}

ssize_t write(int file, const void *data, size_t length)
{
    ssize_t part = allowed(file, length);
    return part < 0 ? -1 : REAL(write)(file, data, part);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t at)
{
    ssize_t part = allowed(file, length);
    return part < 0 ? -1 : REAL(pwrite)(file, data, part, at);
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t at)
{
    ssize_t part = allowed(file, length);
    return part < 0 ? -1 : REAL(pwrite64)(file, data, part, at);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    int error = fault(WRITE, file, NULL);
    if (error > 0) {
        errno = error;
        return -1;
    }
    return REAL(writev)(file, parts, error == SHORT && count > 1 ? 1 : count);
}

/* Git gives a new object a random name until it is forced. */
static int is_same(const char *path, const char *other)
{
    const char *temporary = "/tmp_obj_";
    return strcmp(path, other) == 0 || (strstr(path, temporary) && strstr(other, temporary));
}

static int forced(int file, int (*force)(int))
{
    struct order *all = orders();
    struct stat status;
    if (!all || fstat(file, &status) != 0)
        return force(file);
    if (all->inode == status.st_ino && all->device == status.st_dev)
        __sync_fetch_and_add(&all->repeated, 1);
    if (!refused(FSYNC, file, NULL)) {
        char path[4096];
        int result = force(file), error = errno;
        resolve(file, NULL, path);
        if (result == 0 && all->inode && is_same(path, all->where))
            __sync_fetch_and_add(&all->renewed, 1);
        errno = error;
        return result;
    }
    if (!all->inode) {
        all->inode = status.st_ino;
        all->device = status.st_dev;
    }
    return -1;
}

int fsync(int file) { return forced(file, REAL(fsync)); }
int fdatasync(int file) { return forced(file, REAL(fdatasync)); }

int rename(const char *from, const char *to)
{
    return refused(RENAME, AT_FDCWD, to) ? -1 : REAL(rename)(from, to);
}

int renameat(int old, const char *from, int new, const char *to)
{
    return refused(RENAME, new, to) ? -1 : REAL(renameat)(old, from, new, to);
}

int renameat2(int old, const char *from, int new, const char *to, unsigned int flags)
{
    return refused(RENAME, new, to) ? -1 : REAL(renameat2)(old, from, new, to, flags);
}

int link(const char *from, const char *to)
{
    return refused(LINK, AT_FDCWD, to) ? -1 : REAL(link)(from, to);
}

int linkat(int old, const char *from, int new, const char *to, int flags)
{
    return refused(LINK, new, to) ? -1 : REAL(linkat)(old, from, new, to, flags);
}

int symlink(const char *target, const char *path)
{
    return refused(LINK, AT_FDCWD, path) ? -1 : REAL(symlink)(target, path);
}

int symlinkat(const char *target, int folder, const char *path)
{
    return refused(LINK, folder, path) ? -1 : REAL(symlinkat)(target, folder, path);
}

int unlink(const char *path)
{
    return refused(UNLINK, AT_FDCWD, path) ? -1 : REAL(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    return refused(UNLINK, folder, path) ? -1 : REAL(unlinkat)(folder, path, flags);
}

int rmdir(const char *path)
{
    return refused(UNLINK, AT_FDCWD, path) ? -1 : REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t mode)
{
    return refused(MKDIR, AT_FDCWD, path) ? -1 : REAL(mkdir)(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return refused(MKDIR, folder, path) ? -1 : REAL(mkdirat)(folder, path, mode);
}

/* A close that fails has closed all the same, as on Linux. */
int close(int file)
{
    int error = fault(CLOSE, file, NULL);
    int result = REAL(close)(file);
    if (error <= 0 || result != 0)
        return result;
    errno = error;
    return -1;
}

pid_t fork(void)
{
    return refused(FORK, AT_FDCWD, "") ? -1 : REAL(fork)();
}

#ifdef __x86_64__
/* The vfork of libc, or NULL if it is to fail. */
__attribute__((used)) static void *allowed_vfork(void)
{
    return refused(FORK, AT_FDCWD, "") ? NULL : (void *)REAL(vfork);
}

/* A function that returns twice cannot be called, because its caller's frame must outlive it: jump there. */
__attribute__((naked)) pid_t vfork(void)
{
    __asm__("sub $8, %rsp\n\t"
            "call allowed_vfork\n\t"
            "add $8, %rsp\n\t"
            "test %rax, %rax\n\t"
            "jz 1f\n\t"
            "jmp *%rax\n"
            "1:\n\t"
            "mov $-1, %eax\n\t"
            "ret");
}
#else
/* Whoever may vfork may fork; only slower. */
pid_t vfork(void)
{
    return fork();
}
#endif

int execve(const char *path, char *const arguments[], char *const environment[])
{
    return refused(EXEC, AT_FDCWD, path) ? -1 : REAL(execve)(path, arguments, environment);
}

int execv(const char *path, char *const arguments[])
{
    return refused(EXEC, AT_FDCWD, path) ? -1 : REAL(execv)(path, arguments);
}

int execvp(const char *path, char *const arguments[])
{
    return refused(EXEC, AT_FDCWD, path) ? -1 : REAL(execvp)(path, arguments);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    int error = fault(FORK, AT_FDCWD, path);
    return error > 0 ? error : REAL(posix_spawn)(pid, path, actions, attributes, arguments, environment);
}

int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    int error = fault(FORK, AT_FDCWD, path);
    return error > 0 ? error : REAL(posix_spawnp)(pid, path, actions, attributes, arguments, environment);
}
