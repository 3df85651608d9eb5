#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/device/device.h"
#include "worker/compute/device/device_inputs.h"
#include "worker/compute/device/device_move_kernels.h"
#include "worker/compute/device/gradient_sums.h"
#include "worker/compute/device/growing_device_memory.h"
#include "worker/compute/executable.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/program.h"

namespace shoal {

// The memory that the executables of a backend run in, in turn. Parameters and gradients lie as
// they do on the host.
struct SharedDeviceMemory {
  GrowingDeviceMemory arena;
  GrowingDeviceMemory parameters;
  GrowingDeviceMemory gradients;
  GrowingDeviceMemory part_sums;  // of the gradients of the parts of a batch so far
  SharedInputs inputs;
  // What goes with each result, on its way: pinned.
  GrowingDeviceMemory results{&Device::AllocateHost};

  int64_t device_bytes() const {
    return arena.size_bytes() + parameters.size_bytes() + gradients.size_bytes() +
           part_sums.size_bytes() + inputs.device_bytes();
  }
};

// A program on a Device. All of a run is given to the device at once:
//
//   kIn       context and inputs | parameters, in the order of their first use | the next inputs
//   kCompute  waits for the inputs; makes floats of bytes (TrainingGraph::byte_inputs); each step,
//             when the parameters that it is the first to read are there
//   kOut      gradients, when the last step that touches them has ended | results
//
// Of the parts of a batch each gradient is added up as soon as it is complete, and the sums are
// what leaves, in the run of the last part.
//
// Where gradients are added up with those of other devices (GradientSums), kOut does that before
// rank 0 copies them out, and the others copy none. While the host waits for these it asks whether
// they are still to be waited for; a run that fails aborts them first, and then waits for what it
// has given to the device.
//
// Where gradients are checked (Program::Results::check), what was found is copied out before them.
//
// Of a batch that was told as the next one (DeviceInputs) the context alone is copied when its run
// begins, with the inputs that are the run's own. The host lays the next one when the device has
// all of the run's work, and so while that computes forward: the first gradients come later.
//
// What kCompute is given is the same each time, so that from the second run on it is recorded, and
// played, as long as nothing has moved; there is a recording for each slot. Then the host waits for
// one copy of gradients after the other, and at last for the results.
//
// Of parameters that are still arriving a copy is given when they have arrived, right before the
// step that is the first to read them, while the device computes the steps before it. Such a run is
// not played: who waits for an event waits for what it stood for when that was asked, and so all
// copies would have to be given before.
class DeviceExecutable : public Executable {
 public:
  using OnWarning = std::function<void(const std::string& warning)>;
  // Both pointers outlive this. Parameters and gradients are copied `least_copied_bytes` at a time,
  // at least. `on_warning`: what hinders nothing, for people.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(
      Plan plan, Program program, int64_t least_copied_bytes, const DeviceMoveKernels& kernels,
      Device* device, SharedDeviceMemory* memory, OnWarning on_warning);
  // On any thread: what it gives back is the device's.
  ~DeviceExecutable() override { device_.UseOnThisThread(); }

  int64_t memory_bytes() const override { return program_.arena_size_bytes(); }
  int64_t device_bytes() const override {
    return memory_bytes() + (plan_.trains() ? 2 : 1) * model_bytes() + part_sums_bytes() +
           inputs_.device_bytes();
  }
  absl::Status TakeMemory() override;
  std::vector<Transfer::Range> SummedRanges() const override;
  absl::StatusOr<BatchResult> Run(const RunContext& context, const RunBuffers& buffers,
                                  const std::function<void(int variable)>& on_variable_done,
                                  const OnStepTimed& on_step_timed) override;

 private:
  struct CopyIn {
    Transfer transfer;
    std::unique_ptr<Device::Event> copied;
  };
  struct CopyOut {
    Transfer transfer;
    std::unique_ptr<Device::Event> computed, copied;
    std::vector<std::unique_ptr<Kernel>> add_part;  // by range; none: no parts are added up
  };

  DeviceExecutable(Plan plan, Program program, const DeviceMoveKernels& kernels, Device* device,
                   SharedDeviceMemory* memory, OnWarning on_warning);
  absl::Status MakeCopies(int64_t least_copied_bytes, const DeviceMoveKernels& kernels);

  // Of the parameters, and of the gradients.
  int64_t model_bytes() const { return plan_.layout().size * static_cast<int64_t>(sizeof(float)); }
  int64_t part_sums_bytes() const { return plan_.adds_up_parts() ? model_bytes() : 0; }
  // Gives the device its work.
  absl::Status StartCopyingIn(const RunContext& context, const RunBuffers& buffers);
  absl::Status StartCopying(const CopyIn& copy, std::span<const float> parameters);
  absl::Status StartComputing(const RunBuffers& buffers);
  // The steps themselves, one after the other; `timed`: with an event on either side of each.
  // Parameters that are still arriving are awaited and copied in between.
  absl::Status GiveSteps(const RunBuffers& buffers, bool timed);
  absl::Status GiveStep(Kernel& kernel, std::span<void* const> tensors, const std::string& work,
                        bool timed);
  // Adds what leaves with `copy` to the sums of the parts.
  absl::Status GiveAddingPart(const CopyOut& copy, bool timed);
  // Of a run that has ended.
  absl::Status TellTimes(const OnStepTimed& on_step_timed);
  absl::StatusOr<std::unique_ptr<Device::Recording>> RecordSteps(const RunBuffers& buffers);
  absl::Status StartCopyingGradients(const RunBuffers& buffers);
  absl::Status StartCopyingResults(const RunBuffers& buffers);
  // What was found of the gradients: that they are to be used.
  bool GradientsAreFinite() const;
  // The sums of the run, from what it left.
  BatchResult ReadResults(const RunBuffers& buffers) const;
  // Waits for what kOut does with one of the pieces.
  absl::Status AwaitPiece(const CopyOut& copy, const SumRank& sum);
  // Waits for what the device leaves, piece by piece.
  absl::Status AwaitAll(const RunBuffers& buffers,
                        const std::function<void(int variable)>& on_variable_done);

  const Plan plan_;
  Program program_;
  Device& device_;
  SharedDeviceMemory& memory_;
  const OnWarning on_warning_;
  DeviceInputs inputs_;
  // Where results come to lie on the host; bytes.
  int64_t prediction_offset_ = 0, losses_offset_ = 0, sums_offset_ = 0, check_offset_ = 0;
  int64_t results_size_bytes_ = 0;
  std::vector<CopyIn> copies_in_;    // by first step
  std::vector<CopyOut> copies_out_;  // by last step
  std::unique_ptr<Device::Event> computed_, check_copied_, results_copied_;

  std::vector<void*> addresses_;  // by tensor, of the run

  struct Timing {
    std::string work;
    std::unique_ptr<Device::Event> begin, end;
  };
  std::vector<Timing> timings_;  // of the last run that was timed; the first timed_steps_ of them
  size_t timed_steps_ = 0;

  struct Recorded {
    // Of the first run, and so of the recording: where its inputs are, its sums and its tensors.
    const void* inputs = nullptr;
    const void* part_sums = nullptr;
    std::vector<void*> addresses;
    std::unique_ptr<Device::Recording> recording;  // null: not yet
  };
  // By slot of the inputs; whether parameters are the same as before; whether parts are added up.
  std::array<std::array<std::array<Recorded, 2>, 2>, 2> recorded_;
  bool records_ = true;  // until it is found that they cannot be: then steps are given one by one
};

}  // namespace shoal
