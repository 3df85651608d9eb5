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
#include "worker/compute/plan/plan.h"
#include "worker/compute/program/input_values.h"
#include "worker/compute/program/run_context.h"

namespace shoal {

// Input memory that the executables of a backend share.
struct SharedInputs {
  // Device memory for the context and inputs of a run, and the host memory that they are copied
  // from. The host memory is pinned; the caller's is not.
  struct Slot {
    GrowingDeviceMemory device;
    GrowingDeviceMemory host{&Device::AllocateHost};
  };

  std::array<Slot, 2> slots;
  int slot = 0;  // of the last run; the other slot is for the next batch
  // Completes when the next batch is in its slot, possibly after the end of the run. Made together
  // with the first memory.
  std::unique_ptr<Device::Event> next_copied;
  // The inputs of the run that arrive as bytes, converted to floats.
  GrowingDeviceMemory floats;

  int64_t device_bytes() const {
    return slots[0].device.size_bytes() + slots[1].device.size_bytes() + floats.size_bytes();
  }
};

// Copies context and inputs of a program to a Device. A slot has this layout, on the host and on
// the device alike, each entry aligned:
//
//   context | a run's own inputs (weights, loss scale) | inputs that come with the batch
//
// The calls of a run, in order:
//
//   SwitchSlot        if its batch was announced to StartCopyingNext by the run before, of this
//   Reserve           fixes the run's addresses
//   StartCopying      to the run's slot; for an announced batch, only the rest
//   StartCopyingNext  to the other slot, after all work submitted to kIn before
//
// The device reads a run's inputs only in the run's slot and in `floats`, so that the next batch
// may arrive during the computation. The slots move only for a larger program. Hence there are two
// sets of addresses, indexed by slot().
//
// The host writes to a slot's memory only after all copies from it are done. For the run's slot
// they are done when a run begins, because the run before has ended. The one exception is the copy
// of an announced next batch; the run that uses it does not write that part. For the other slot,
// the host waits for `next_copied`.
//
// Not thread-safe. Two objects with one SharedInputs must not run at once either.
class DeviceInputs {
 public:
  // Converts an input that arrives as bytes (TrainingGraph::uint8_inputs) to floats: (bytes,
  // floats).
  struct Conversion {
    Kernel& kernel;
    std::array<void*, 2> tensors;
  };

  // All of these except `kernels` must outlive this.
  DeviceInputs(const Plan& plan, const DeviceMoveKernels& kernels, Device* device,
               SharedInputs* shared);
  // Call it once, before the first run.
  absl::Status MakeEvents();

  // Device memory for its runs, in bytes.
  int64_t device_bytes() const {
    return (plan_.computes_gradients() ? 2 : 1) * size_bytes_ + floats_size_bytes_;
  }

  // Makes the slot of the announced next batch the run's slot.
  void SwitchSlot() { shared_.slot = 1 - shared_.slot; }
  absl::Status Reserve();
  // `inputs` are in the order of the graph's inputs. `has_batch`: those that come with the batch
  // are already on the device.
  absl::Status StartCopying(const RunContext& context, const std::vector<InputValues>& inputs,
                            bool has_batch);
  // Takes the first inputs of the graph, which come with the batch. Empty: the next batch is not
  // known.
  absl::Status StartCopyingNext(const std::vector<InputValues>& inputs);

  // The slot of the run, valid from Reserve on: its index, 0 or 1, and its address.
  int slot() const { return shared_.slot; }
  const void* slot_address() const { return own().device.data(); }
  const RunContext* context() const {
    return reinterpret_cast<const RunContext*>(own().device.data());
  }
  // The address of the floats of an input of the graph.
  void* AddressOf(size_t input) const;
  // Submit these to kCompute before the steps and after waiting for `copied`.
  std::vector<Conversion> Conversions() const;
  // Completes after the copy by StartCopying.
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
  // Writes an input to a slot's host memory; writes nothing for a target that no step reads.
  // Returns the end offset.
  int64_t WriteInput(size_t input, const InputValues& values, SharedInputs::Slot& slot) const;

  const Plan& plan_;
  Device& device_;
  SharedInputs& shared_;
  // Offsets in a slot; bytes.
  std::vector<int64_t> offsets_;              // by input of the graph
  std::map<size_t, ByteInput> uint8_inputs_;  // likewise
  int64_t batch_offset_ = 0;                  // of the first input of the batch
  int64_t size_bytes_ = 0;
  int64_t floats_size_bytes_ = 0;
  std::unique_ptr<Device::Event> copied_;
};

}  // namespace shoal
