#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "worker/compute/cuda/nccl/nccl_library.h"
#include "worker/compute/device/rendezvous.h"
#include "worker/compute/program/gradient_reducer.h"

namespace shoal::cuda {

// GradientReducer by NCCL, over NVLink or PCIe: a reduction to rank 0 in the stream kOut of each
// GPU.
//
// All communicators are non-blocking: no call waits for another rank. Hence a rank is inside NCCL
// only for moments, and another thread may abort its communicator in between.
class NcclSums : public GradientReducer {
 public:
  struct Options {
    std::shared_ptr<const NcclLibrary> library;
    std::vector<int> devices;  // in CUDA's numbering, by rank
    // Makes a GPU the calling thread's current device.
    std::function<absl::Status(int device)> use_device;
  };
  // Connects the GPUs, which takes seconds. An error names the call that failed; kDeadlineExceeded
  // if one takes longer than a minute.
  static absl::StatusOr<std::unique_ptr<NcclSums>> Create(Options options);
  ~NcclSums() override { Abort(); }

  absl::Status Meet() override { return rendezvous_.Meet(); }
  absl::Status Reduce(const SumRank& rank, Device& device, char* gradients,
                      int64_t size_bytes) override;
  // Also reports failures of NCCL's own threads and links, which still work after a call is
  // accepted.
  absl::Status Check(int rank) override;
  void Abort() override;

  // Reduce, in any stream of the rank's device.
  absl::Status ReduceOn(cudaStream_t stream, const SumRank& rank, char* gradients,
                        int64_t size_bytes);

 private:
  struct Communicator {
    int device = 0;
    Mutex mutex;
    ncclComm_t communicator ABSL_GUARDED_BY(mutex) = nullptr;  // null: aborted
    ncclRedOp_t times_share ABSL_GUARDED_BY(mutex) = ncclSum;  // sums the gradients times `share`
    float share ABSL_GUARDED_BY(mutex) = 0;                    // 0: not created yet
  };
  explicit NcclSums(Options options);
  absl::Status Connect();
  // NCCL's state of the communicator, including failures after a call; kCancelled after Abort.
  absl::StatusOr<ncclResult_t> StateOf(Communicator& own) const;
  // Waits until NCCL has accepted the work of `call`; the rank's stream runs it later.
  absl::Status AwaitAccepted(Communicator& own, const char* call) const;
  absl::Status SetShare(Communicator& own, float share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(own.mutex);

  const Options options_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  Rendezvous rendezvous_;
  // Set before the first communicator is aborted, and so before any sum ends for that reason.
  std::atomic<bool> aborted_ = false;
};

}  // namespace shoal::cuda
