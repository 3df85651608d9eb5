#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/device/device.h"
#include "worker/compute/device/device_move_kernels.h"
#include "worker/compute/device/growing_device_memory.h"
#include "worker/compute/input_values.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/run_context.h"

namespace shoal {

// The memory for inputs that the executables of a backend share.
struct SharedInputs {
  // Where context and inputs of a run lie, and where they come from: pinned, as the caller's are
  // not.
  struct Slot {
    GrowingDeviceMemory device;
    GrowingDeviceMemory host{&Device::AllocateHost};
  };

  std::array<Slot, 2> slots;
  int slot = 0;  // of the last run; the other one is for the next batch
  // That the next batch is in its slot, which may be after the end of the run. Made with the first
  // memory.
  std::unique_ptr<Device::Event> next_copied;
  // The inputs of the run that come as bytes, as floats.
  GrowingDeviceMemory floats;

  int64_t device_bytes() const {
    return slots[0].device.size_bytes() + slots[1].device.size_bytes() + floats.size_bytes();
  }
};

// Context and inputs of a program on a Device, and how they come there. In a slot, on the host and
// on the device alike, each aligned:
//
//   context | inputs that are a run's own (weights, loss scale) | inputs that come with the batch
//
// A run goes:
//
//   TurnToNext        if its batch is what StartCopyingNext of the run before, of this, was given
//   Reserve           from here on the run's addresses stay what they are
//   StartCopying      to the run's slot; of a batch that is there, all but that
//   StartCopyingNext  to the other slot, behind all that kIn was given before
//
// The device reads a run's inputs in the run's slot, and `floats`, alone: so the next batch may
// come while it computes. Neither slot moves while no larger program is run, so that there are two
// sets of addresses, by slot().
//
// The host writes to a slot's memory where no copy reads any more. Of the run's slot these are done
// when a run begins, as the run before has ended, but for that of the batch that was told as the
// next one: with it the part of the batch is not written. Of the other slot `next_copied` says so.
//
// Not thread-safe, nor are those of one SharedInputs.
class DeviceInputs {
 public:
  // The floats of an input that comes as bytes (TrainingGraph::byte_inputs): (bytes, floats).
  struct Conversion {
    Kernel& kernel;
    std::array<void*, 2> tensors;
  };

  // All of these but `kernels` outlive this.
  DeviceInputs(const Plan& plan, const DeviceMoveKernels& kernels, Device* device,
               SharedInputs* shared);
  absl::Status MakeEvents();

  // What its runs take of the device's memory.
  int64_t device_bytes() const {
    return (plan_.trains() ? 2 : 1) * size_bytes_ + floats_size_bytes_;
  }

  void TurnToNext() { shared_.slot = 1 - shared_.slot; }
  absl::Status Reserve();
  // `inputs` in the order of the graph's; `has_batch`: those that come with the batch are there.
  absl::Status StartCopying(const RunContext& context, const std::vector<InputValues>& inputs,
                            bool has_batch);
  // The first of the graph's inputs, which come with the batch; none: nothing is known of it.
  absl::Status StartCopyingNext(const std::vector<InputValues>& inputs);

  // Of the run, from Reserve on. `slot` is 0 or 1, and `slot_address` where it lies.
  int slot() const { return shared_.slot; }
  const void* slot_address() const { return own().device.data(); }
  const RunContext* context() const {
    return reinterpret_cast<const RunContext*>(own().device.data());
  }
  // Where a step finds the floats of an input of the graph.
  void* AddressOf(size_t input) const;
  // To be given to kCompute before the steps, behind `copied`.
  std::vector<Conversion> Conversions() const;
  // What StartCopying has given kIn.
  Device::Event& copied() const { return *copied_; }

 private:
  struct ByteInput {
    int64_t floats_offset;  // in SharedInputs::floats; bytes
    std::unique_ptr<Kernel> kernel;
  };

  void Place(const DeviceMoveKernels& kernels);
  SharedInputs::Slot& own() const { return shared_.slots[shared_.slot]; }
  SharedInputs::Slot& next() const { return shared_.slots[1 - shared_.slot]; }
  absl::Status Reserve(SharedInputs::Slot& slot);
  // Lays an input into a slot's memory on the host, or nothing of a target that nobody reads;
  // returns where it ends.
  int64_t Lay(size_t input, const InputValues& values, SharedInputs::Slot& slot) const;

  const Plan& plan_;
  Device& device_;
  SharedInputs& shared_;
  // In a slot; bytes.
  std::vector<int64_t> offsets_;             // by input of the graph
  std::map<size_t, ByteInput> byte_inputs_;  // likewise
  int64_t batch_offset_ = 0;                 // of the first that comes with the batch
  int64_t size_bytes_ = 0;
  int64_t floats_size_bytes_ = 0;
  std::unique_ptr<Device::Event> copied_;
};

}  // namespace shoal
