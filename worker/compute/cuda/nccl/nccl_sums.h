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
#include "worker/compute/device/gradient_sums.h"
#include "worker/compute/device/rendezvous.h"

namespace shoal::cuda {

// GradientSums by NCCL, over NVLink or PCIe: a reduction to rank 0 in the stream kOut of each GPU.
//
// All communicators are non-blocking ones: no call waits for another rank, so that a rank is inside
// of NCCL only for moments, and another thread may abort its communicator in between.
class NcclSums : public GradientSums {
 public:
  struct Options {
    std::shared_ptr<const NcclLibrary> library;
    std::vector<int> devices;  // in CUDA's numbering, by rank
    // Makes a GPU the calling thread's current one.
    std::function<absl::Status(int device)> use_device;
  };
  // Connects the GPUs, which takes seconds. An error says which call failed; one that takes longer
  // than a minute is kDeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<NcclSums>> Create(Options options);
  ~NcclSums() override { Abort(); }

  absl::Status Meet() override { return rendezvous_.Meet(); }
  absl::Status Reduce(const SumRank& rank, Device& device, char* gradients,
                      int64_t size_bytes) override;
  // NCCL's own threads and links, which go on working when a call has been taken.
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
    ncclRedOp_t times_share ABSL_GUARDED_BY(mutex) = ncclSum;  // the sum of what is times `share`
    float share ABSL_GUARDED_BY(mutex) = 0;                    // 0: there is none yet
  };
  explicit NcclSums(Options options);
  absl::Status Connect();
  // What NCCL says of it, that fails in the midst of a call, too; kCancelled after Abort.
  absl::StatusOr<ncclResult_t> StateOf(Communicator& own) const;
  // Waits until what `call` began is taken; the rank's stream runs it later.
  absl::Status AwaitTaken(Communicator& own, const char* call) const;
  absl::Status SetShare(Communicator& own, float share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(own.mutex);

  const Options options_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  Rendezvous rendezvous_;
  // Set before the first sum is cut off, and so before any ends for that.
  std::atomic<bool> aborted_ = false;
};

}  // namespace shoal::cuda
