#include "worker/compute/cuda/runtime/memory.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/text/format_bytes.h"
#include "worker/compute/cuda/runtime/cuda_status.h"

namespace shoal::cuda {
namespace {

absl::Status WithSize(const absl::Status& status, size_t size_bytes, const char* kind) {
  return absl::Status(status.code(), absl::StrCat("no ", FormatBytes(size_bytes), " of ", kind,
                                                  " memory: ", std::string(status.message())));
}

// "; 1.5 GiB of 79 GiB are free"
std::string FreeText() {
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return "";
  return absl::StrCat("; ", FormatBytes(free_bytes), " of ", FormatBytes(total_bytes), " are free");
}

}  // namespace

void DeviceMemory::Free::operator()(std::byte* data) const { cudaFree(data); }

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(size_t size_bytes) {
  void* data = nullptr;
  absl::Status status = SHOAL_CUDA(cudaMalloc(&data, size_bytes));
  if (status.ok()) return DeviceMemory(static_cast<std::byte*>(data), size_bytes);
  status = WithSize(status, size_bytes, "device");
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(absl::StrCat(std::string(status.message()), FreeText()));
}

void PinnedMemory::Free::operator()(std::byte* data) const { cudaFreeHost(data); }

absl::StatusOr<PinnedMemory> PinnedMemory::Allocate(size_t size_bytes) {
  void* data = nullptr;
  const absl::Status status = SHOAL_CUDA(cudaHostAlloc(&data, size_bytes, cudaHostAllocPortable));
  if (!status.ok()) return WithSize(status, size_bytes, "pinned host");
  return PinnedMemory(static_cast<std::byte*>(data), size_bytes);
}

}  // namespace shoal::cuda
