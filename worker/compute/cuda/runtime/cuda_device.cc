#include "worker/compute/cuda/runtime/cuda_device.h"

#include <cuda_runtime_api.h>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/captured_graph.h"
#include "worker/compute/cuda/runtime/cuda_status.h"
#include "worker/compute/cuda/runtime/memory.h"

namespace shoal::cuda {
namespace {

// The number of blocks of 256 threads that a multiprocessor runs at once (ComputeTarget).
constexpr int64_t kBlocksOfMultiprocessor = 4;

template <typename Owned>
class OwnedMemory : public Device::Memory {
 public:
  explicit OwnedMemory(Owned memory) : memory_(std::move(memory)) {}
  char* data() const override { return reinterpret_cast<char*>(memory_.data()); }

 private:
  const Owned memory_;
};

template <typename Owned>
absl::StatusOr<std::unique_ptr<Device::Memory>> ToMemory(absl::StatusOr<Owned> memory) {
  SHOAL_RETURN_IF_ERROR(memory.status());
  return std::make_unique<OwnedMemory<Owned>>(*std::move(memory));
}

class RegisteredBuffer : public PinnedBuffer {
 public:
  RegisteredBuffer(int device_index, void* memory) : device_index_(device_index), memory_(memory) {}
  // May run on any thread. Without a current device CUDA would start to use the first one.
  ~RegisteredBuffer() override {
    cudaSetDevice(device_index_);
    cudaHostUnregister(memory_);
  }

 private:
  const int device_index_;
  void* const memory_;
};

struct GraphRecording : Device::Recording {
  explicit GraphRecording(CapturedGraph graph) : graph(std::move(graph)) {}
  const CapturedGraph graph;
};

struct CudaEvent : Device::Event {
  explicit CudaEvent(cuda::Event event) : event(std::move(event)) {}
  cuda::Event event;
};

cuda::Event& EventOf(Device::Event& event) { return static_cast<CudaEvent&>(event).event; }

absl::Status Copy(const void* from, void* to, int64_t size_bytes, cudaMemcpyKind kind,
                  const cuda::Stream& stream) {
  return SHOAL_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes), kind, stream.get()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const DeviceInfo& info) {
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaSetDevice(info.index)));
  int multiprocessors = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, info.index)));
  SHOAL_ASSIGN_OR_RETURN(cuda::Stream in, cuda::Stream::Create());
  SHOAL_ASSIGN_OR_RETURN(cuda::Stream compute, cuda::Stream::Create());
  // This stream has the kernels that add up gradients with other devices' (GradientReducer). At
  // default priority they would start only after a graph that keeps all multiprocessors busy.
  SHOAL_ASSIGN_OR_RETURN(cuda::Stream out, cuda::Stream::Create(cuda::Stream::Priority::kHighest));
  return std::unique_ptr<CudaDevice>(
      new CudaDevice(info.index, kBlocksOfMultiprocessor * multiprocessors,
                     Streams{std::move(in), std::move(compute), std::move(out)}));
}

// Ignores the result: the device was current before, and an error of earlier work is reported where
// that work is awaited.
void CudaDevice::UseOnThisThread() { cudaSetDevice(index_); }

absl::StatusOr<std::unique_ptr<Device::Memory>> CudaDevice::Allocate(int64_t size_bytes) {
  return ToMemory(DeviceMemory::Allocate(static_cast<size_t>(size_bytes)));
}

absl::StatusOr<int64_t> CudaDevice::FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes)));
  return static_cast<int64_t>(free_bytes);
}

absl::StatusOr<std::unique_ptr<Device::Memory>> CudaDevice::AllocateHost(int64_t size_bytes) {
  return ToMemory(PinnedMemory::Allocate(static_cast<size_t>(size_bytes)));
}

absl::StatusOr<std::unique_ptr<PinnedBuffer>> CudaDevice::Pin(void* memory, int64_t size_bytes) {
  const cudaError_t registered =
      cudaHostRegister(memory, static_cast<size_t>(size_bytes), cudaHostRegisterPortable);
  if (registered == cudaErrorHostMemoryAlreadyRegistered) {
    cudaGetLastError();  // otherwise the next launch would return this error
    return nullptr;
  }
  SHOAL_RETURN_IF_ERROR(ToStatus(registered, "cudaHostRegister"));
  return std::make_unique<RegisteredBuffer>(index_, memory);
}

absl::StatusOr<std::unique_ptr<Device::Event>> CudaDevice::NewEvent() {
  SHOAL_ASSIGN_OR_RETURN(cuda::Event event, cuda::Event::Create());
  return std::make_unique<CudaEvent>(std::move(event));
}

absl::StatusOr<std::unique_ptr<Device::Event>> CudaDevice::NewTimedEvent() {
  SHOAL_ASSIGN_OR_RETURN(cuda::Event event, cuda::Event::Create(/*timed=*/true));
  return std::make_unique<CudaEvent>(std::move(event));
}

absl::Status CudaDevice::CopyIn(const void* from, char* to, int64_t size_bytes) {
  return Copy(from, to, size_bytes, cudaMemcpyHostToDevice, stream(Device::Stream::kIn));
}

absl::Status CudaDevice::CopyOut(const char* from, void* to, int64_t size_bytes) {
  return Copy(from, to, size_bytes, cudaMemcpyDeviceToHost, stream(Device::Stream::kOut));
}

absl::Status CudaDevice::Launch(Kernel& kernel, const RunContext* context,
                                std::span<void* const> tensors) {
  return kernel.Run(context, tensors);
}

absl::Status CudaDevice::Record(Device::Stream stream, Event& event) {
  return EventOf(event).Record(streams_[static_cast<int>(stream)], IsRecorded(stream));
}

absl::Status CudaDevice::Wait(Device::Stream stream, Event& event) {
  return streams_[static_cast<int>(stream)].WaitFor(EventOf(event), IsRecorded(stream));
}

absl::Status CudaDevice::BeginRecording() {
  SHOAL_RETURN_IF_ERROR(CapturedGraph::Begin(compute_stream()));
  recording_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Device::Recording>> CudaDevice::EndRecording() {
  recording_ = false;
  SHOAL_ASSIGN_OR_RETURN(CapturedGraph graph, CapturedGraph::End(compute_stream()));
  return std::make_unique<GraphRecording>(std::move(graph));
}

absl::Status CudaDevice::Play(Recording& recording) {
  return static_cast<GraphRecording&>(recording).graph.Launch(compute_stream());
}

absl::Status CudaDevice::Await(Event& event) { return EventOf(event).Synchronize(); }

absl::StatusOr<bool> CudaDevice::IsComplete(Event& event) { return EventOf(event).IsComplete(); }

absl::StatusOr<double> CudaDevice::SecondsBetween(Event& begin, Event& end) {
  return EventOf(end).SecondsSince(EventOf(begin));
}

void CudaDevice::Finish() {
  for (cuda::Stream& stream : streams_) (void)stream.Synchronize();
}

}  // namespace shoal::cuda
