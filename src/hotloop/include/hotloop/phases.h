/* hotloop/phases.h - how long the phases of a step take, in any engine; C99 and C++, nothing to link.
 *
 *     enum { PHYSICS, OBSERVE, PHASES };
 *     static const char* const NAMES[] = {"physics", "observe"};
 *
 *     hotloop_phases clock;                       // one for each thread that steps
 *     hotloop_phases_init(&clock, on);            // off: a mark is one test of a flag
 *
 *     hotloop_phases_begin(&clock);               // where a step begins
 *     move_bodies();
 *     hotloop_phases_mark(&clock, PHYSICS);       // the time since the mark before is PHYSICS
 *     encode();
 *     hotloop_phases_mark(&clock, OBSERVE);
 *     hotloop_phases_end(&clock);                 // the step as a whole
 *
 *     hotloop_phases_ns(&clock, PHYSICS)          // nanoseconds since the beginning
 *     hotloop_phases_step_ns(&clock)              // of whole steps
 *
 * What reads them gives them to Python as phase_totals(): {"physics": ns, "observe": ns, "step": ns}, and
 * `hotloop profile` has them in its tree. Marks are chained: one reading of the clock ends a phase and begins
 * the next, so nothing between them is lost. With HOTLOOP_PHASES_OFF defined, marks are compiled out.
 */
#ifndef HOTLOOP_PHASES_H
#define HOTLOOP_PHASES_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) || defined(_M_X64)
#define HOTLOOP_HAS_TSC 1
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#include <x86intrin.h>
#endif
#elif defined(__aarch64__) && !defined(_MSC_VER)
#define HOTLOOP_HAS_CNTVCT 1
#endif

#ifndef HOTLOOP_MOST_PHASES
#define HOTLOOP_MOST_PHASES 32
#endif

typedef struct hotloop_phases {
  uint64_t ticks[HOTLOOP_MOST_PHASES]; /* of each phase */
  uint64_t step_ticks;                 /* of whole steps */
  uint64_t steps;
  uint64_t begin, last;           /* of the step, and of the mark before */
  uint64_t first_tick, first_ns;  /* when it was made, by both clocks */
  int on, by_counter; /* the processor's own counter is the cheaper clock */
} hotloop_phases;

/* The clock that is right for any machine. */
static inline uint64_t hotloop_steady_ns(void) {
  struct timespec now;
#if defined(CLOCK_MONOTONIC)
  clock_gettime(CLOCK_MONOTONIC, &now);
#else
  timespec_get(&now, TIME_UTC);
#endif
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether the processor counts at one rate in every power state; then its counter is the cheaper clock. */
static inline int hotloop_counter_is_steady(void) {
#if defined(HOTLOOP_HAS_TSC) && !defined(_MSC_VER)
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1u);
#elif defined(HOTLOOP_HAS_CNTVCT)
  return 1; /* the architecture says so */
#else
  return 0;
#endif
}

static inline uint64_t hotloop_ticks(const hotloop_phases* clock) {
#if defined(HOTLOOP_HAS_TSC)
  if (clock->by_counter) return __rdtsc();
#elif defined(HOTLOOP_HAS_CNTVCT)
  uint64_t count;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  if (clock->by_counter) return count;
#endif
  (void)clock;
  return hotloop_steady_ns();
}

/* Forget everything, and time what follows if `on`. */
static inline void hotloop_phases_init(hotloop_phases* clock, int on) {
  memset(clock, 0, sizeof *clock);
  clock->on = on;
  clock->by_counter = hotloop_counter_is_steady();
  clock->first_ns = hotloop_steady_ns();
  clock->first_tick = hotloop_ticks(clock);
}

static inline void hotloop_phases_begin(hotloop_phases* clock) {
#ifndef HOTLOOP_PHASES_OFF
  if (clock->on) clock->begin = clock->last = hotloop_ticks(clock);
#else
  (void)clock;
#endif
}

/* The time since the mark before, or since the beginning, belongs to this phase. */
static inline void hotloop_phases_mark(hotloop_phases* clock, int phase) {
#ifndef HOTLOOP_PHASES_OFF
  if (clock->on) {
    uint64_t now = hotloop_ticks(clock);
    clock->ticks[phase] += now - clock->last;
    clock->last = now;
  }
#else
  (void)clock;
  (void)phase;
#endif
}

static inline void hotloop_phases_end(hotloop_phases* clock) {
#ifndef HOTLOOP_PHASES_OFF
  if (clock->on) {
    clock->step_ticks += hotloop_ticks(clock) - clock->begin;
    clock->steps += 1;
  }
#else
  (void)clock;
#endif
}

/* Nanoseconds of so many ticks, by how far both clocks have come since this one was made. */
static inline uint64_t hotloop_ticks_to_ns(const hotloop_phases* clock, uint64_t ticks) {
  uint64_t passed = hotloop_ticks(clock) - clock->first_tick;
  if (!clock->by_counter || !passed) return ticks;
  return (uint64_t)((double)ticks * ((double)(hotloop_steady_ns() - clock->first_ns) / (double)passed));
}

/* Nanoseconds in a phase since the beginning. */
static inline uint64_t hotloop_phases_ns(const hotloop_phases* clock, int phase) {
  return hotloop_ticks_to_ns(clock, clock->ticks[phase]);
}

/* Nanoseconds in whole steps since the beginning. */
static inline uint64_t hotloop_phases_step_ns(const hotloop_phases* clock) {
  return hotloop_ticks_to_ns(clock, clock->step_ticks);
}

/* Add what another thread's clock has counted, whose phases are the same. */
static inline void hotloop_phases_add(hotloop_phases* clock, const hotloop_phases* other) {
  int phase;
  for (phase = 0; phase < HOTLOOP_MOST_PHASES; ++phase) clock->ticks[phase] += other->ticks[phase];
  clock->step_ticks += other->step_ticks;
  clock->steps += other->steps;
}

#endif
