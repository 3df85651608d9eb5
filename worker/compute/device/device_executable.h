#pragma once

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
#include "worker/compute/device/growing_device_memory.h"
#include "worker/compute/device/result_buffer.h"
#include "worker/compute/device/step_recordings.h"
#include "worker/compute/device/step_times.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/program/executable.h"
#include "worker/compute/program/gradient_reducer.h"
#include "worker/compute/program/program.h"

namespace shoal {

// Memory that the executables of a backend share and use in turn. Parameters and gradients have the
// same layout as on the host.
struct SharedDeviceMemory {
  GrowingDeviceMemory arena;
  GrowingDeviceMemory parameters;
  GrowingDeviceMemory gradients;
  GrowingDeviceMemory part_sums;  // gradients summed over the parts of a batch so far
  SharedInputs inputs;
  // The results on the host, pinned, to copy into from the device.
  GrowingDeviceMemory results{&Device::AllocateHost};

  int64_t device_bytes() const {
    return arena.size_bytes() + parameters.size_bytes() + gradients.size_bytes() +
           part_sums.size_bytes() + inputs.device_bytes();
  }
};

// A program on a Device. A run submits all of its work to the device at once:
//
//   kIn       context and inputs | parameters, in the order of their first use | the next inputs
//   kCompute  waits for the inputs; converts bytes to floats (TrainingGraph::uint8_inputs); each
//             step, once the parameters that it is the first to read have arrived
//   kOut      gradients, after the last step that touches them | results
//
// Parts: for a part of a batch the device adds each gradient to the sums as soon as it is complete.
// Only the run of the last part copies the sums out.
//
// Several devices: if gradients are added up with those of other devices (GradientReducer), kOut
// does that first. Only rank 0 then copies them out. While the host waits for these sums, it checks
// repeatedly whether they can still complete. A run that fails aborts the sums and then waits for
// the work that it has submitted to the device.
//
// Checked gradients (Program::Results::check): the check's result is copied out before the
// gradients.
//
// Next batch (DeviceInputs): if the batch was announced by the run before, the new run copies only
// the context and its own inputs. The host stages the next batch after submitting all of the run's
// work. This overlaps with the device's forward computation, because the first gradients come
// later.
//
// Recording (StepRecordings): from the second run on the device replays the work of kCompute. After
// submitting, the host waits for the copies of gradients one by one, and at last for the results.
//
// Arriving parameters: the host submits their copy when they have arrived, right before the first
// step that reads them, while the device computes the earlier steps. Such a run is not replayed. A
// wait refers to the event as recorded when the wait is submitted, so a replay would need all
// copies submitted before it.
class DeviceExecutable : public Executable {
 public:
  using OnWarning = std::function<void(const std::string& warning)>;
  // The device and the memory must outlive this. Copies parameters and gradients at least
  // `min_copied_bytes` at a time. `on_warning` gets messages for people about problems that stop
  // nothing.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(
      Plan plan, Program program, int64_t min_copied_bytes, const DeviceMoveKernels& kernels,
      Device* device, SharedDeviceMemory* memory, OnWarning on_warning);
  // May run on any thread: it frees memory of the device.
  ~DeviceExecutable() override { device_.UseOnThisThread(); }

  int64_t memory_bytes() const override { return program_.arena_size_bytes(); }
  int64_t device_bytes() const override {
    return memory_bytes() + (plan_.computes_gradients() ? 2 : 1) * model_bytes() +
           part_sums_bytes() + inputs_.device_bytes();
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
    std::vector<std::unique_ptr<Kernel>> add_part;  // by range; empty: no adding up of parts
  };

  DeviceExecutable(Plan plan, Program program, const DeviceMoveKernels& kernels, Device* device,
                   SharedDeviceMemory* memory, OnWarning on_warning);
  absl::Status MakeCopies(int64_t min_copied_bytes, const DeviceMoveKernels& kernels);

  // The size of the parameters, and of the gradients.
  int64_t model_bytes() const { return plan_.layout().size * static_cast<int64_t>(sizeof(float)); }
  int64_t part_sums_bytes() const { return plan_.sums_parts() ? model_bytes() : 0; }
  // These submit work to the device.
  absl::Status StartCopyingIn(const RunContext& context, const RunBuffers& buffers);
  absl::Status StartCopying(const CopyIn& copy, std::span<const float> parameters);
  absl::Status StartComputing(const RunBuffers& buffers);
  // Submits the steps one by one. With `timed`, measures each. Awaits and copies in parameters that
  // are still arriving.
  absl::Status SubmitSteps(const RunBuffers& buffers, bool timed);
  absl::Status SubmitStep(Kernel& kernel, std::span<void* const> tensors, const std::string& work,
                          bool timed);
  // Adds the gradients of `copy` to the sums of the parts.
  absl::Status SubmitPartSum(const CopyOut& copy, bool timed);
  absl::Status StartCopyingGradients(const RunBuffers& buffers);
  absl::Status StartCopyingResults(const RunBuffers& buffers);
  // Whether the check found all gradients finite, or there is none.
  bool GradientsAreFinite() const;
  // The sums of the run, from its results on the host.
  BatchResult ReadResults(const RunBuffers& buffers) const;
  // Waits for kOut to finish with one of the pieces.
  absl::Status AwaitPiece(const CopyOut& copy, const SumRank& sum);
  // Waits for all output of the device, piece by piece.
  absl::Status AwaitAll(const RunBuffers& buffers,
                        const std::function<void(int variable)>& on_variable_done);

  const Plan plan_;
  Program program_;
  Device& device_;
  SharedDeviceMemory& memory_;
  DeviceInputs inputs_;
  ResultBuffer results_;
  std::vector<CopyIn> copies_in_;    // by first step
  std::vector<CopyOut> copies_out_;  // by last step
  std::unique_ptr<Device::Event> computed_, check_copied_, results_copied_;

  std::vector<void*> addresses_;  // by tensor, of the current run
  StepTimes times_;
  // Last: recordings refer to the events above.
  StepRecordings recordings_;
};

}  // namespace shoal
