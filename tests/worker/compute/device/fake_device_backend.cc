#include "tests/worker/compute/device/fake_device_backend.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/micro_batches.h"

namespace shoal {
namespace {

class Move : public Kernel {
 public:
  explicit Move(std::function<void(std::span<void* const>)> move) : move_(std::move(move)) {}
  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    move_(tensors);
    return absl::OkStatus();
  }

 private:
  const std::function<void(std::span<void* const>)> move_;
};

class AddPartKernel : public Kernel {
 public:
  explicit AddPartKernel(size_t size) : size_(size) {}
  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    AddPart({static_cast<const float*>(tensors[0]), size_}, context->share, context->begins_sums,
            {static_cast<float*>(tensors[1]), size_});
    return absl::OkStatus();
  }

 private:
  const size_t size_;
};

}  // namespace

class FakeDeviceBackend::CountedMoves : public DeviceMoveKernels {
 public:
  std::unique_ptr<Kernel> Copy(int64_t size_bytes) const override {
    ++copies;
    return std::make_unique<Move>([size_bytes](std::span<void* const> tensors) {
      std::memcpy(tensors[1], tensors[0], size_bytes);
    });
  }
  std::unique_ptr<Kernel> Zero(int64_t size_bytes) const override {
    ++zeros;
    return std::make_unique<Move>(
        [size_bytes](std::span<void* const> tensors) { std::memset(tensors[0], 0, size_bytes); });
  }
  std::unique_ptr<Kernel> AddPart(int64_t size_bytes) const override {
    return std::make_unique<AddPartKernel>(size_bytes / sizeof(float));
  }
  std::unique_ptr<Kernel> FloatsOfBytes(int64_t count) const override {
    return std::make_unique<Move>([count](std::span<void* const> tensors) {
      const auto* from = static_cast<const uint8_t*>(tensors[0]);
      std::copy(from, from + count, static_cast<float*>(tensors[1]));
    });
  }

  mutable int copies = 0, zeros = 0;
};

FakeDeviceBackend::FakeDeviceBackend(std::unique_ptr<FakeDevice> device, int64_t min_copied_bytes,
                                     OnWarning on_warning)
    : DeviceBackend(std::move(device), min_copied_bytes, std::move(on_warning)),
      moves_(std::make_unique<CountedMoves>()) {}

FakeDeviceBackend::~FakeDeviceBackend() = default;

bool FakeDeviceBackend::Supports(const Node& node) const { return ReferenceSupports(node); }

int FakeDeviceBackend::copies() const { return moves_->copies; }
int FakeDeviceBackend::zeros() const { return moves_->zeros; }

absl::Status FakeDeviceBackend::AddSteps(ProgramBuilder& builder) const {
  AddReferenceSteps(builder);
  return absl::OkStatus();
}

const DeviceMoveKernels& FakeDeviceBackend::moves() const { return *moves_; }

}  // namespace shoal
