/* What the libstdc++ of Debian, which is made for glibc, asks its C library for and musl lacks. With it Bun's
 * build for musl runs on Debian's musl; Alpine has a libstdc++ of its own. Loaded first, by musl.mjs. */
#include <stddef.h>
#include <stdlib.h>

extern long syscall(long number, ...);
extern size_t strftime_l(char* to, size_t max, const char* format, const void* time, void* locale);
extern int pthread_key_create(unsigned* key, void (*end)(void*));
extern int pthread_setspecific(unsigned key, const void* value);
extern void* pthread_getspecific(unsigned key);

enum { sys_getrandom = 318 };

char __libc_single_threaded = 0;
unsigned __cpu_model[4];
int __cpu_indicator_init(void) { return 0; }

unsigned arc4random(void) {
  unsigned value = 0;
  syscall(sys_getrandom, &value, sizeof value, 0);
  return value;
}

size_t __strftime_l(char* to, size_t max, const char* format, const void* time, void* locale) {
  return strftime_l(to, max, format, time, locale);
}

/* Returns "not found"; the unwinder then searches by dl_iterate_phdr(). */
int _dl_find_object(void* address, void* result) {
  (void)address;
  (void)result;
  return -1;
}

struct ending {
  void (*end)(void*);
  void* of;
  struct ending* next;
};
static unsigned endings_key;

static void run_endings(void* first) {
  struct ending* each = first;
  while (each != NULL) {
    struct ending* next = each->next;
    each->end(each->of);
    free(each);
    each = next;
  }
}

__attribute__((constructor)) static void make_key(void) { pthread_key_create(&endings_key, run_endings); }

int __cxa_thread_atexit_impl(void (*end)(void*), void* of, void* library) {
  (void)library;
  struct ending* added = malloc(sizeof *added);
  if (added == NULL) return -1;
  added->end = end;
  added->of = of;
  added->next = pthread_getspecific(endings_key);
  pthread_setspecific(endings_key, added);
  return 0;
}
