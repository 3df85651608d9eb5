#include "worker/compute/device/device_inputs.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"

namespace shoal {
namespace {

using Stream = Device::Stream;

}  // namespace

DeviceInputs::DeviceInputs(const Plan& plan, const DeviceMoveKernels& kernels, Device* device,
                           SharedInputs* shared)
    : plan_(plan),
      device_(*device),
      shared_(*shared),
      size_bytes_(AlignedForDevice(sizeof(RunContext))) {
  Place(kernels);
}

void DeviceInputs::Place(const DeviceMoveKernels& kernels) {
  const TrainingGraph& training = plan_.training_graph();
  const std::vector<ValueId>& inputs = plan_.graph().inputs();
  offsets_.resize(inputs.size());
  const auto place = [&](bool of_run) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if ((inputs[i] == training.weights || inputs[i] == training.loss_scale) != of_run) continue;
      offsets_[i] = size_bytes_;
      const int64_t count = ElementCount(plan_.shape(inputs[i]));
      const int64_t floats_bytes = AlignedForDevice(count * static_cast<int64_t>(sizeof(float)));
      if (!training.uint8_inputs.contains(inputs[i])) {
        size_bytes_ += floats_bytes;
        continue;
      }
      size_bytes_ += AlignedForDevice(count);
      uint8_inputs_[i] = {floats_size_bytes_, kernels.FloatsOfBytes(count)};
      floats_size_bytes_ += floats_bytes;
    }
  };
  place(/*of_run=*/true);
  batch_offset_ = size_bytes_;
  place(/*of_run=*/false);
}

absl::Status DeviceInputs::MakeEvents() {
  SHOAL_ASSIGN_OR_RETURN(copied_, device_.NewEvent());
  return absl::OkStatus();
}

absl::Status DeviceInputs::Reserve() {
  if (shared_.next_copied == nullptr) {
    SHOAL_ASSIGN_OR_RETURN(shared_.next_copied, device_.NewEvent());
  }
  SHOAL_RETURN_IF_ERROR(Reserve(own()));
  if (plan_.computes_gradients()) SHOAL_RETURN_IF_ERROR(Reserve(next()));
  return shared_.floats.Reserve(device_, floats_size_bytes_);
}

absl::Status DeviceInputs::Reserve(SharedInputs::Slot& slot) {
  const int64_t size_bytes = slot.device.size_bytes();
  // The copy of an announced next batch may still be running there.
  if (size_bytes > 0 && size_bytes < size_bytes_)
    SHOAL_RETURN_IF_ERROR(device_.Await(*shared_.next_copied));
  SHOAL_RETURN_IF_ERROR(slot.device.Reserve(device_, size_bytes_));
  return slot.host.Reserve(device_, size_bytes_);
}

int64_t DeviceInputs::WriteInput(size_t input, const InputValues& values,
                                 SharedInputs::Slot& slot) const {
  char* const to = slot.host.data() + offsets_[input];
  const auto lay = [&](auto elements) {
    if (!elements.empty()) std::memcpy(to, elements.data(), elements.size_bytes());
    return offsets_[input] + static_cast<int64_t>(elements.size_bytes());
  };
  return uint8_inputs_.contains(input) ? lay(values.bytes()) : lay(values.floats());
}

absl::Status DeviceInputs::StartCopying(const RunContext& context,
                                        const std::vector<InputValues>& inputs, bool has_batch) {
  char* const host = own().host.data();
  std::memcpy(host, &context, sizeof(context));
  int64_t end = sizeof(context);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (has_batch && offsets_[i] >= batch_offset_) continue;
    end = std::max(end, WriteInput(i, inputs[i], own()));
  }
  SHOAL_RETURN_IF_ERROR(device_.CopyIn(host, own().device.data(), end));
  return device_.Record(Stream::kIn, *copied_);
}

absl::Status DeviceInputs::StartCopyingNext(const std::vector<InputValues>& inputs) {
  if (inputs.empty()) return absl::OkStatus();
  // A copy of an earlier announced batch that never came may still read that memory.
  SHOAL_RETURN_IF_ERROR(device_.Await(*shared_.next_copied));
  char* const host = next().host.data();
  int64_t end = batch_offset_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    end = std::max(end, WriteInput(i, inputs[i], next()));
  }
  SHOAL_RETURN_IF_ERROR(device_.CopyIn(host + batch_offset_, next().device.data() + batch_offset_,
                                       end - batch_offset_));
  return device_.Record(Stream::kIn, *shared_.next_copied);
}

void* DeviceInputs::AddressOf(size_t input) const {
  const auto bytes = uint8_inputs_.find(input);
  return bytes == uint8_inputs_.end() ? own().device.data() + offsets_[input]
                                      : shared_.floats.data() + bytes->second.floats_offset;
}

std::vector<DeviceInputs::Conversion> DeviceInputs::Conversions() const {
  std::vector<Conversion> conversions;
  for (const auto& [input, bytes] : uint8_inputs_)
    conversions.push_back(
        {*bytes.kernel, {own().device.data() + offsets_[input], AddressOf(input)}});
  return conversions;
}

}  // namespace shoal
