#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/cuda/runtime/stream.h"
#include "worker/compute/device/device.h"

namespace shoal::cuda {

// A GPU as a Device with three CUDA streams. Creating it makes it the current device of the calling
// thread. Other threads call UseOnThisThread.
class CudaDevice : public Device {
 public:
  // `info` comes from FindDevice.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const DeviceInfo& info);

  // The stream for kernels.
  const cuda::Stream& compute_stream() const { return stream(Device::Stream::kCompute); }
  // The stream for copies to the host.
  const cuda::Stream& out_stream() const { return stream(Device::Stream::kOut); }
  // A few blocks for each multiprocessor.
  int64_t blocks() const { return blocks_; }

  void UseOnThisThread() override;
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t size_bytes) override;
  absl::StatusOr<int64_t> FreeBytes() override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(int64_t size_bytes) override;
  // Pins for all GPUs. Returns null if another GPU has pinned the memory already; that pin must be
  // released last.
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(void* memory, int64_t size_bytes) override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::StatusOr<std::unique_ptr<Event>> NewTimedEvent() override;
  absl::Status CopyIn(const void* from, char* to, int64_t size_bytes) override;
  absl::Status CopyOut(const char* from, void* to, int64_t size_bytes) override;
  absl::Status Launch(Kernel& kernel, const RunContext* context,
                      std::span<void* const> tensors) override;
  absl::Status Record(Device::Stream stream, Event& event) override;
  absl::Status Wait(Device::Stream stream, Event& event) override;
  // Records as a CUDA graph.
  absl::Status BeginRecording() override;
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override;
  absl::Status Play(Recording& recording) override;
  absl::Status Await(Event& event) override;
  absl::StatusOr<bool> IsComplete(Event& event) override;
  absl::StatusOr<double> SecondsBetween(Event& begin, Event& end) override;
  void Finish() override;

 private:
  using Streams = std::array<cuda::Stream, 3>;  // by Device::Stream
  CudaDevice(int index, int64_t blocks, Streams streams)
      : index_(index), blocks_(blocks), streams_(std::move(streams)) {}

  const cuda::Stream& stream(Device::Stream stream) const {
    return streams_[static_cast<int>(stream)];
  }

  // Whether work submitted to the stream is being captured.
  bool IsRecorded(Device::Stream stream) const {
    return recording_ && stream == Device::Stream::kCompute;
  }

  const int index_;
  const int64_t blocks_;
  Streams streams_;
  bool recording_ = false;
};

}  // namespace shoal::cuda
