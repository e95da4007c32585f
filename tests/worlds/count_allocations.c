// count_allocations.c - counts the process's allocations; loaded before everything else by a test.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static long allocations;

long hotloop_test_allocations(void) { return __atomic_load_n(&allocations, __ATOMIC_RELAXED); }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

void *malloc(size_t size) {
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return __libc_realloc(old, size);
}
