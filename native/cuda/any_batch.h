// any_batch.h - a batch on a device as its caller sees it: an engine's batch whose arrays lie there.
//
// Everything that returns a value waits for the device; a step does not, unless it is profiled or autoreset
// is off. Work goes to the stream that was named last, at first the device's default one.
#pragma once

#include "engine/any_batch.h"

namespace hl::cuda {

class AnyDeviceBatch : public AnyBatch {
 public:
  virtual void use_stream(uintptr_t stream) = 0;
  virtual void wait() const = 0;

  // Actions on the host, copied to the device before they are played.
  virtual void step_host(const int32_t* actions) = 0;
  // All envs' digests, worked out side by side.
  virtual std::vector<uint64_t> digests() const = 0;
  // An output's bytes, as they are when everything asked for so far is done.
  virtual void copy_out(size_t output, void* to) const = 0;
  virtual size_t bytes_an_env() const = 0;

  void lend(Fork) override {}  // it has no threads
};

using MakeDeviceBatch = std::unique_ptr<AnyDeviceBatch> (*)(const Fields&, const BatchOptions&);

}  // namespace hl::cuda
