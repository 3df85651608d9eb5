#include "worker/compute/device/device_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Executable>> DeviceBackend::CompileNodes(Plan plan) {
  ProgramBuilder builder(plan, moves());
  SHOAL_RETURN_IF_ERROR(AddSteps(builder));
  Program program = std::move(builder).Build();
  return DeviceExecutable::Create(std::move(plan), std::move(program), min_copied_bytes_, moves(),
                                  device_.get(), &memory_, [this](const std::string& warning) {
                                    if (!std::exchange(warned_, true)) on_warning_(warning);
                                  });
}

absl::StatusOr<int64_t> DeviceBackend::DeviceBytes(bool trains) const {
  SHOAL_ASSIGN_OR_RETURN(const int64_t free, device_->FreeBytes());
  const int64_t of_training = memory_.gradients.size_bytes() + memory_.part_sums.size_bytes();
  return free + memory_.device_bytes() - (trains ? 0 : of_training);
}

absl::StatusOr<std::unique_ptr<PinnedBuffer>> DeviceBackend::Pin(std::span<float> buffer) {
  if (buffer.empty()) return nullptr;
  return device_->Pin(buffer.data(), static_cast<int64_t>(buffer.size_bytes()));
}

absl::Status DeviceBackend::Poison(int64_t size_bytes) {
  device_->UseOnThisThread();
  SHOAL_RETURN_IF_ERROR(memory_.arena.Reserve(*device_, size_bytes));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<Device::Event> copied, device_->NewEvent());
  for (const GrowingDeviceMemory* memory :
       {&memory_.arena, &memory_.parameters, &memory_.gradients, &memory_.part_sums,
        &memory_.inputs.slots[0].device, &memory_.inputs.slots[1].device, &memory_.inputs.floats}) {
    if (memory->size_bytes() == 0) continue;
    const std::vector<char> poison(memory->size_bytes(), '\xff');
    SHOAL_RETURN_IF_ERROR(device_->CopyIn(poison.data(), memory->data(), memory->size_bytes()));
    SHOAL_RETURN_IF_ERROR(device_->Record(Device::Stream::kIn, *copied));
    SHOAL_RETURN_IF_ERROR(device_->Await(*copied));
  }
  return absl::OkStatus();
}

}  // namespace shoal
