/* An engine in C99 that times its own phases, called by ctypes; what a mark costs is measured in it, too. */
#include <hotloop/phases.h>

enum { COUNT, SUM, PHASES };

static hotloop_phases clock_;

void engine_init(int on) { hotloop_phases_init(&clock_, on); }

double engine_step(int work) {
  volatile double sum = 0;
  int i;
  hotloop_phases_begin(&clock_);
  for (i = 0; i < work; ++i) sum = sum + i;
  hotloop_phases_mark(&clock_, COUNT);
  for (i = 0; i < 3 * work; ++i) sum = sum + i;
  hotloop_phases_mark(&clock_, SUM);
  hotloop_phases_end(&clock_);
  return sum;
}

uint64_t engine_ns(int phase) {
  return phase < PHASES ? hotloop_phases_ns(&clock_, phase) : hotloop_phases_step_ns(&clock_);
}

/* Nanoseconds that so many marks took. */
uint64_t engine_marks(int marks) {
  uint64_t begin = hotloop_steady_ns();
  int i;
  hotloop_phases_begin(&clock_);
  for (i = 0; i < marks; ++i) hotloop_phases_mark(&clock_, COUNT);
  return hotloop_steady_ns() - begin;
}
