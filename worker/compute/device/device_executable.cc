#include "worker/compute/device/device_executable.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/program/batch_sums.h"
#include "worker/compute/program/tensor_addresses.h"

namespace shoal {
namespace {

using Stream = Device::Stream;

// Short compared to a step, long compared to the cost of a check.
constexpr std::chrono::microseconds kBetweenChecks{100};

}  // namespace

DeviceExecutable::DeviceExecutable(Plan plan, Program program, const DeviceMoveKernels& kernels,
                                   Device* device, SharedDeviceMemory* memory, OnWarning on_warning)
    : plan_(std::move(plan)),
      program_(std::move(program)),
      device_(*device),
      memory_(*memory),
      inputs_(plan_, kernels, device, &memory->inputs),
      results_(&program_, device, &memory->results),
      addresses_(program_.tensors().size()),
      times_(device),
      recordings_(device, std::move(on_warning)) {}

absl::StatusOr<std::unique_ptr<Executable>> DeviceExecutable::Create(
    Plan plan, Program program, int64_t min_copied_bytes, const DeviceMoveKernels& kernels,
    Device* device, SharedDeviceMemory* memory, OnWarning on_warning) {
  std::unique_ptr<DeviceExecutable> executable(new DeviceExecutable(
      std::move(plan), std::move(program), kernels, device, memory, std::move(on_warning)));
  SHOAL_RETURN_IF_ERROR(executable->MakeCopies(min_copied_bytes, kernels));
  return executable;
}

absl::Status DeviceExecutable::MakeCopies(int64_t min_copied_bytes,
                                          const DeviceMoveKernels& kernels) {
  std::vector<VariableAtStep> read, done;
  for (int step = 0; step < static_cast<int>(program_.steps().size()); ++step) {
    const Program::Step& each = program_.steps()[step];
    for (const int variable : each.variables_read) read.push_back({variable, step});
    for (const int variable : each.variables_done) done.push_back({variable, step});
  }
  for (Transfer& transfer : PlanTransfers(read, plan_.layout(), min_copied_bytes)) {
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Device::Event> copied, device_.NewEvent());
    copies_in_.push_back({std::move(transfer), std::move(copied)});
  }
  for (Transfer& transfer : PlanTransfers(done, plan_.layout(), min_copied_bytes)) {
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Device::Event> computed, device_.NewEvent());
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Device::Event> copied, device_.NewEvent());
    copies_out_.push_back({std::move(transfer), std::move(computed), std::move(copied)});
    if (!plan_.sums_parts()) continue;
    for (const Transfer::Range& range : copies_out_.back().transfer.ranges)
      copies_out_.back().add_part.push_back(kernels.AddPart(range.size_bytes));
  }
  SHOAL_RETURN_IF_ERROR(inputs_.MakeEvents());
  SHOAL_ASSIGN_OR_RETURN(computed_, device_.NewEvent());
  SHOAL_ASSIGN_OR_RETURN(results_copied_, device_.NewEvent());
  if (program_.results().check < 0) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(check_copied_, device_.NewEvent());
  return absl::OkStatus();
}

absl::StatusOr<BatchResult> DeviceExecutable::Run(
    const RunContext& context, const RunBuffers& buffers,
    const std::function<void(int variable)>& on_variable_done, const OnStepTimed& on_step_timed) {
  if (buffers.same_inputs) inputs_.SwitchSlot();
  SHOAL_RETURN_IF_ERROR(TakeMemory());
  absl::Status status = StartCopyingIn(context, buffers);
  if (status.ok()) {
    status = on_step_timed ? SubmitSteps(buffers, /*timed=*/true) : StartComputing(buffers);
  }
  if (status.ok()) status = StartCopyingGradients(buffers);
  if (status.ok()) status = StartCopyingResults(buffers);
  if (status.ok()) status = inputs_.StartCopyingNext(buffers.next_inputs);
  if (status.ok()) status = AwaitAll(buffers, on_variable_done);
  if (status.ok() && on_step_timed) status = times_.Report(on_step_timed);
  if (!status.ok()) {
    if (buffers.sum.reducer != nullptr) buffers.sum.reducer->Abort();
    device_.Finish();  // work of the failed run may still read and write the caller's memory
    return status;
  }
  return ReadResults(buffers);
}

absl::Status DeviceExecutable::TakeMemory() {
  SHOAL_RETURN_IF_ERROR(memory_.arena.Reserve(device_, program_.arena_size_bytes()));
  SHOAL_RETURN_IF_ERROR(memory_.parameters.Reserve(device_, model_bytes()));
  SHOAL_RETURN_IF_ERROR(
      memory_.gradients.Reserve(device_, plan_.computes_gradients() ? model_bytes() : 0));
  SHOAL_RETURN_IF_ERROR(memory_.part_sums.Reserve(device_, part_sums_bytes()));
  SHOAL_RETURN_IF_ERROR(inputs_.Reserve());
  SHOAL_RETURN_IF_ERROR(results_.Reserve());
  FindAddresses(
      program_.tensors(),
      {memory_.arena.data(), memory_.parameters.data(), memory_.gradients.data()},
      [&](int input) { return inputs_.AddressOf(input); }, addresses_);
  return absl::OkStatus();
}

absl::Status DeviceExecutable::StartCopyingIn(const RunContext& context,
                                              const RunBuffers& buffers) {
  SHOAL_RETURN_IF_ERROR(inputs_.StartCopying(context, buffers.inputs, buffers.same_inputs));
  if (buffers.same_parameters || buffers.arriving != nullptr) return absl::OkStatus();
  for (const CopyIn& copy : copies_in_)
    SHOAL_RETURN_IF_ERROR(StartCopying(copy, buffers.parameters));
  return absl::OkStatus();
}

absl::Status DeviceExecutable::StartCopying(const CopyIn& copy, std::span<const float> parameters) {
  const auto* from = reinterpret_cast<const char*>(parameters.data());
  for (const auto& [offset, size] : copy.transfer.ranges) {
    SHOAL_RETURN_IF_ERROR(device_.CopyIn(from + offset, memory_.parameters.data() + offset, size));
  }
  return device_.Record(Stream::kIn, *copy.copied);
}

absl::Status DeviceExecutable::StartComputing(const RunBuffers& buffers) {
  return recordings_.Run({.slot = inputs_.slot(),
                          .same_parameters = buffers.same_parameters,
                          .sums_parts = buffers.part != RunBuffers::Part::kNone},
                         {.inputs = inputs_.slot_address(),
                          .part_sums = memory_.part_sums.data(),
                          .tensors = addresses_},
                         /*may_replay=*/buffers.arriving == nullptr,
                         [&] { return SubmitSteps(buffers, /*timed=*/false); });
}

absl::Status DeviceExecutable::SubmitSteps(const RunBuffers& buffers, bool timed) {
  times_.Begin();
  SHOAL_RETURN_IF_ERROR(device_.Wait(Stream::kCompute, inputs_.copied()));
  for (const auto& [kernel, tensors] : inputs_.Conversions())
    SHOAL_RETURN_IF_ERROR(SubmitStep(kernel, tensors, "FloatsOfBytes", timed));
  auto in = buffers.same_parameters ? copies_in_.end() : copies_in_.begin();
  auto out = copies_out_.begin();
  std::vector<void*> tensors;
  for (int i = 0; i < static_cast<int>(program_.steps().size()); ++i) {
    const Program::Step& step = program_.steps()[i];
    for (; in != copies_in_.end() && in->transfer.first_step == i; ++in) {
      if (buffers.arriving != nullptr) {
        for (const int variable : in->transfer.variables)
          SHOAL_RETURN_IF_ERROR(buffers.arriving->Await(variable));
        SHOAL_RETURN_IF_ERROR(StartCopying(*in, buffers.parameters));
      }
      SHOAL_RETURN_IF_ERROR(device_.Wait(Stream::kCompute, *in->copied));
    }
    tensors.clear();
    for (const TensorId id : step.tensors) tensors.push_back(addresses_[id]);
    SHOAL_RETURN_IF_ERROR(SubmitStep(*step.kernel, tensors, step.work, timed));
    for (; out != copies_out_.end() && out->transfer.last_step == i; ++out) {
      if (buffers.part != RunBuffers::Part::kNone)
        SHOAL_RETURN_IF_ERROR(SubmitPartSum(*out, timed));
      SHOAL_RETURN_IF_ERROR(device_.Record(Stream::kCompute, *out->computed));
    }
  }
  return device_.Record(Stream::kCompute, *computed_);
}

absl::Status DeviceExecutable::SubmitStep(Kernel& kernel, std::span<void* const> tensors,
                                          const std::string& work, bool timed) {
  if (timed) return times_.Launch(kernel, inputs_.context(), tensors, work);
  return device_.Launch(kernel, inputs_.context(), tensors);
}

absl::Status DeviceExecutable::SubmitPartSum(const CopyOut& copy, bool timed) {
  for (size_t i = 0; i < copy.add_part.size(); ++i) {
    const int64_t offset = copy.transfer.ranges[i].offset_bytes;
    const std::array<void*, 2> tensors = {memory_.gradients.data() + offset,
                                          memory_.part_sums.data() + offset};
    SHOAL_RETURN_IF_ERROR(SubmitStep(*copy.add_part[i], tensors, "AddPart", timed));
  }
  return absl::OkStatus();
}

std::vector<Transfer::Range> DeviceExecutable::SummedRanges() const {
  std::vector<Transfer::Range> ranges;
  for (const CopyOut& copy : copies_out_)
    ranges.insert(ranges.end(), copy.transfer.ranges.begin(), copy.transfer.ranges.end());
  return ranges;
}

absl::Status DeviceExecutable::StartCopyingGradients(const RunBuffers& buffers) {
  if (const TensorId check = program_.results().check; check >= 0) {
    SHOAL_RETURN_IF_ERROR(device_.Wait(Stream::kOut, *computed_));
    SHOAL_RETURN_IF_ERROR(results_.StartCopying(check, addresses_));
    SHOAL_RETURN_IF_ERROR(device_.Record(Stream::kOut, *check_copied_));
  }
  if (buffers.part == RunBuffers::Part::kNotLast) return absl::OkStatus();
  const SumRank& sum = buffers.sum;
  if (sum.reducer != nullptr) SHOAL_RETURN_IF_ERROR(sum.reducer->Meet());
  char* const from =
      buffers.part == RunBuffers::Part::kLast ? memory_.part_sums.data() : memory_.gradients.data();
  auto* const to = reinterpret_cast<char*>(buffers.gradients.data());
  for (const CopyOut& copy : copies_out_) {
    SHOAL_RETURN_IF_ERROR(device_.Wait(Stream::kOut, *copy.computed));
    for (const auto& [offset, size] : copy.transfer.ranges) {
      char* const computed = from + offset;
      if (sum.reducer != nullptr)
        SHOAL_RETURN_IF_ERROR(sum.reducer->Reduce(sum, device_, computed, size));
      if (sum.reducer == nullptr || sum.rank == 0)
        SHOAL_RETURN_IF_ERROR(device_.CopyOut(computed, to + offset, size));
    }
    SHOAL_RETURN_IF_ERROR(device_.Record(Stream::kOut, *copy.copied));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutable::StartCopyingResults(const RunBuffers& buffers) {
  SHOAL_RETURN_IF_ERROR(device_.Wait(Stream::kOut, *computed_));
  const auto& [prediction, losses, sums, check] = program_.results();
  if (sums >= 0) {
    SHOAL_RETURN_IF_ERROR(results_.StartCopying(sums, addresses_));
  } else if (plan_.has_loss()) {
    SHOAL_RETURN_IF_ERROR(results_.StartCopying(losses, addresses_));
  }
  const bool sums_here = sums < 0 && plan_.has_loss() && !plan_.metrics().empty();
  if (sums_here || !buffers.prediction.empty()) {
    SHOAL_RETURN_IF_ERROR(results_.StartCopying(prediction, addresses_));
  }
  return device_.Record(Stream::kOut, *results_copied_);
}

bool DeviceExecutable::GradientsAreFinite() const {
  return program_.results().check < 0 || results_.check().not_finite_sum == 0;
}

BatchResult DeviceExecutable::ReadResults(const RunBuffers& buffers) const {
  const std::span<const float> predicted = results_.prediction();
  std::copy_n(predicted.begin(), buffers.prediction.size(), buffers.prediction.begin());
  if (!plan_.has_loss()) return BatchResult{.examples = plan_.examples()};
  BatchResult result = program_.results().sums >= 0
                           ? ResultOf(plan_, results_.sums())
                           : SumsOf(plan_, buffers, results_.losses(), predicted);
  result.overflowed = !GradientsAreFinite();
  return result;
}

absl::Status DeviceExecutable::AwaitPiece(const CopyOut& copy, const SumRank& sum) {
  if (sum.reducer == nullptr) return device_.Await(*copy.copied);
  for (;;) {
    SHOAL_ASSIGN_OR_RETURN(const bool copied, device_.IsComplete(*copy.copied));
    SHOAL_RETURN_IF_ERROR(sum.reducer->Check(sum.rank));
    if (copied) return absl::OkStatus();
    std::this_thread::sleep_for(kBetweenChecks);
  }
}

absl::Status DeviceExecutable::AwaitAll(const RunBuffers& buffers,
                                        const std::function<void(int variable)>& on_variable_done) {
  if (buffers.part == RunBuffers::Part::kNotLast) return device_.Await(*results_copied_);
  if (program_.results().check >= 0) SHOAL_RETURN_IF_ERROR(device_.Await(*check_copied_));
  const bool leave = on_variable_done && GradientsAreFinite();
  for (const CopyOut& copy : copies_out_) {
    SHOAL_RETURN_IF_ERROR(AwaitPiece(copy, buffers.sum));
    if (!leave) continue;
    for (const int variable : copy.transfer.variables) on_variable_done(variable);
  }
  return device_.Await(*results_copied_);
}

}  // namespace shoal
