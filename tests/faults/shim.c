/* What the fault tests put between a process and the kernel, with LD_PRELOAD.
 *
 * It counts every call by which the process changes a disk or sends to a socket, SQLite's too, and kills the process
 * with SIGKILL at the n-th: before the call, or, where it writes, in the middle of it with half of the bytes written.
 * And it shifts the wall clock by what a shared file says, as if somebody had set it.
 *
 * POWERLAB_FAULT_KILL_AT  n, from 0; without it nothing is killed
 * POWERLAB_FAULT_TORN     1: half of the n-th write is written
 * POWERLAB_FAULT_REPORT   a file that gets the name of the fatal call, or at the end the number of calls
 * POWERLAB_FAULT_CLOCK    a file of 8 bytes: the shift in ns, a signed integer in the machine's order
 *
 * Programs that the process starts are left alone: the variables are gone by then.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ASLEEP = -2, NEVER = -1 };

static volatile long left = ASLEEP, counted;
static int torn;
static char report[4096];
static const volatile int64_t *shift_ns;

static void say(const char *text) {
  if (!report[0]) return;
  int file = syscall(SYS_openat, AT_FDCWD, report, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  syscall(SYS_write, file, text, strlen(text));
  syscall(SYS_close, file);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* Counts a call; says whether it is the fatal one. */
static int is_due(const char *name) {
  if (left == ASLEEP) return 0;
  __sync_fetch_and_add(&counted, 1);
  if (left == NEVER || __sync_fetch_and_sub(&left, 1) != 0) return 0;
  say(name);
  return 1;
}

void fault_arm(long step, int half, const char *path) {
  torn = half;
  strncpy(report, path, sizeof report - 1);
  counted = 0;
  left = step;
}

long fault_counted(void) { return counted; }

__attribute__((constructor)) static void begin(void) {
  const char *clock = getenv("POWERLAB_FAULT_CLOCK"), *step = getenv("POWERLAB_FAULT_KILL_AT");
  const char *half = getenv("POWERLAB_FAULT_TORN"), *path = getenv("POWERLAB_FAULT_REPORT");
  if (clock) {
    int file = syscall(SYS_openat, AT_FDCWD, clock, O_RDONLY);
    void *page = mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift_ns = page;
  }
  if (step) fault_arm(atol(step), half && half[0] == '1', path ? path : "");
  unsetenv("LD_PRELOAD");
  unsetenv("POWERLAB_FAULT_CLOCK");
  unsetenv("POWERLAB_FAULT_KILL_AT");
  unsetenv("POWERLAB_FAULT_TORN");
  unsetenv("POWERLAB_FAULT_REPORT");
}

__attribute__((destructor)) static void end(void) {
  char text[32];
  if (left != NEVER) return;
  snprintf(text, sizeof text, "%ld", counted);
  say(text);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define BEFORE(name) \
  if (is_due(#name)) die()

/* What a process prints is no state. */
static int is_printed(int file) { return file == 1 || file == 2; }

ssize_t write(int file, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = REAL(write);
  if (!is_printed(file) && is_due("write")) {
    if (torn) real(file, data, size / 2);
    die();
  }
  return real(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (!real) real = REAL(pwrite);
  if (is_due("pwrite")) {
    if (torn) real(file, data, size / 2, at);
    die();
  }
  return real(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) real = REAL(pwrite64);
  if (is_due("pwrite")) {
    if (torn) real(file, data, size / 2, at);
    die();
  }
  return real(file, data, size, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (!is_printed(file)) BEFORE(writev);
  return REAL(writev)(file, parts, count);
}

ssize_t send(int peer, const void *data, size_t size, int flags) {
  if (is_due("send")) {
    if (torn) REAL(send)(peer, data, size / 2, flags);
    die();
  }
  return REAL(send)(peer, data, size, flags);
}

ssize_t sendmsg(int peer, const struct msghdr *message, int flags) {
  BEFORE(sendmsg);
  return REAL(sendmsg)(peer, message, flags);
}

int fsync(int file) {
  BEFORE(fsync);
  return REAL(fsync)(file);
}

int fdatasync(int file) {
  BEFORE(fdatasync);
  return REAL(fdatasync)(file);
}

int ftruncate(int file, off_t size) {
  BEFORE(ftruncate);
  return REAL(ftruncate)(file, size);
}

int ftruncate64(int file, off64_t size) {
  BEFORE(ftruncate);
  return REAL(ftruncate64)(file, size);
}

int rename(const char *from, const char *to) {
  BEFORE(rename);
  return REAL(rename)(from, to);
}

int unlink(const char *path) {
  BEFORE(unlink);
  return REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
  BEFORE(mkdir);
  return REAL(mkdir)(path, mode);
}

int fchmod(int file, mode_t mode) {
  BEFORE(fchmod);
  return REAL(fchmod)(file, mode);
}

#define OPENING(name)                                          \
  int name(const char *path, int flags, ...) {                 \
    mode_t mode = 0;                                           \
    if (flags & O_CREAT) {                                     \
      va_list more;                                            \
      va_start(more, flags);                                   \
      mode = va_arg(more, mode_t);                             \
      va_end(more);                                            \
    }                                                          \
    if (flags & (O_CREAT | O_TRUNC)) BEFORE(open);             \
    return REAL(name)(path, flags, mode);                      \
  }
OPENING(open)
OPENING(open64)

int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = REAL(clock_gettime);
  int status = real(which, now);
  if (status == 0 && which == CLOCK_REALTIME && shift_ns) {
    int64_t moved = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + *shift_ns;
    now->tv_sec = moved / INT64_C(1000000000);
    now->tv_nsec = moved % INT64_C(1000000000);
  }
  return status;
}
