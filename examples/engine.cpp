// An engine that times its own phases by hotloop/phases.h, as a module of Python.
//
//   HEADER=$(python -c "import hotloop; print(hotloop.include_dir())")
//   c++ -O2 -shared -fPIC -std=c++17 $(python -m pybind11 --includes) -I$HEADER examples/engine.cpp -o engine.so
#include <hotloop/phases.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

class Engine {
 public:
  Engine(int bodies, bool timed) : place_(bodies, 0.5), speed_(bodies, 0.01), seen_(8) {
    hotloop_phases_init(&clock_, timed);
  }

  void reset() { place_.assign(place_.size(), 0.5); }

  double step(int action) {
    hotloop_phases_begin(&clock_);
    for (size_t i = 0; i < place_.size(); ++i) {
      place_[i] += speed_[i] * (action - 1);
      if (place_[i] < 0 || place_[i] > 1) speed_[i] = -speed_[i];
    }
    hotloop_phases_mark(&clock_, MOVE);
    for (size_t i = 0; i < place_.size(); ++i) seen_[i % seen_.size()] += place_[i];
    hotloop_phases_mark(&clock_, OBSERVE);
    double reward = 0;
    for (double each : seen_) reward += each;
    seen_.assign(seen_.size(), 0.0);
    hotloop_phases_mark(&clock_, REWARD);
    hotloop_phases_end(&clock_);
    steps_ += 1;
    return reward / place_.size();
  }

  std::map<std::string, uint64_t> phase_totals() const {
    std::map<std::string, uint64_t> told;
    const char* names[] = {"move", "observe", "reward"};
    for (int phase = 0; phase < PHASES; ++phase) told[names[phase]] = hotloop_phases_ns(&clock_, phase);
    told["step"] = hotloop_phases_step_ns(&clock_);
    return told;
  }

  std::map<std::string, uint64_t> counters() const { return {{"native_steps", steps_}}; }

 private:
  enum { MOVE, OBSERVE, REWARD, PHASES };
  std::vector<double> place_, speed_, seen_;
  uint64_t steps_ = 0;
  hotloop_phases clock_;
};

PYBIND11_MODULE(engine, module) {
  pybind11::class_<Engine>(module, "Engine")
      .def(pybind11::init<int, bool>())
      .def("reset", &Engine::reset)
      .def("step", &Engine::step)
      .def("phase_totals", &Engine::phase_totals)
      .def("counters", &Engine::counters);
}
