#include "worker/compute/cuda/nccl/nccl_sums.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/cuda_device.h"

namespace shoal::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// The timeout for NCCL to accept a call. The first call waits until all GPUs are connected.
constexpr std::chrono::minutes kPatience{1};

absl::Status AbortedSums() { return absl::CancelledError("the sums were aborted"); }

// Adds the remedy to an error of a running sum. The cause is mostly a GPU or a link, possibly of
// another rank.
absl::Status WithRemedy(const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(std::string(status.message()),
                   ", while GPUs added up their gradients: the driver's log (dmesg, \"Xid\" and "
                   "\"NVRM\") tells of GPUs and links that have failed; with --deterministic the "
                   "host adds up, without NCCL"));
}

}  // namespace

NcclSums::NcclSums(Options options)
    : options_(std::move(options)), rendezvous_(static_cast<int>(options_.devices.size())) {
  for (const int device : options_.devices) {
    ranks_.push_back(std::make_unique<Communicator>());
    ranks_.back()->device = device;
  }
}

absl::StatusOr<std::unique_ptr<NcclSums>> NcclSums::Create(Options options) {
  std::unique_ptr<NcclSums> sums(new NcclSums(std::move(options)));
  // The current device belongs to a thread. A thread of its own keeps the caller's unchanged.
  absl::Status status;
  std::thread([&] { status = sums->Connect(); }).join();
  SHOAL_RETURN_IF_ERROR(status);
  return sums;
}

absl::Status NcclSums::Connect() {
  const NcclLibrary& nccl = *options_.library;
  const int first = options_.devices.front();
  ncclUniqueId id;
  SHOAL_RETURN_IF_ERROR(nccl.ToStatus(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId", first));
  SHOAL_RETURN_IF_ERROR(nccl.ToStatus(nccl.ncclGroupStart(), "ncclGroupStart", first));
  absl::Status status;
  for (size_t rank = 0; rank < ranks_.size() && status.ok(); ++rank) {
    Communicator& own = *ranks_[rank];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    status = options_.use_device(own.device);
    if (!status.ok()) break;
    MutexLock lock(&own.mutex);
    status = nccl.ToStatus(
        nccl.ncclCommInitRankConfig(&own.communicator, static_cast<int>(ranks_.size()), id,
                                    static_cast<int>(rank), &config),
        "ncclCommInitRankConfig", own.device);
  }
  status.Update(nccl.ToStatus(nccl.ncclGroupEnd(), "ncclGroupEnd", first));
  SHOAL_RETURN_IF_ERROR(status);
  for (const auto& own : ranks_)
    SHOAL_RETURN_IF_ERROR(AwaitAccepted(*own, "ncclCommInitRankConfig"));
  return absl::OkStatus();
}

absl::Status NcclSums::Reduce(const SumRank& rank, Device& device, char* gradients,
                              int64_t size_bytes) {
  return ReduceOn(static_cast<CudaDevice&>(device).out_stream().get(), rank, gradients, size_bytes);
}

absl::Status NcclSums::ReduceOn(cudaStream_t stream, const SumRank& rank, char* gradients,
                                int64_t size_bytes) {
  const NcclLibrary& nccl = *options_.library;
  Communicator& own = *ranks_[rank.rank];
  {
    MutexLock lock(&own.mutex);
    if (own.communicator == nullptr) return AbortedSums();
    SHOAL_RETURN_IF_ERROR(SetShare(own, rank.share));
    SHOAL_RETURN_IF_ERROR(nccl.ToStatus(
        nccl.ncclReduce(gradients, gradients, static_cast<size_t>(size_bytes) / sizeof(float),
                        ncclFloat, own.times_share, /*root=*/0, own.communicator, stream),
        "ncclReduce", own.device));
  }
  return WithRemedy(AwaitAccepted(own, "ncclReduce"));
}

absl::Status NcclSums::SetShare(Communicator& own, float share) const {
  if (own.share == share) return absl::OkStatus();
  const NcclLibrary& nccl = *options_.library;
  // The operator may be destroyed once the call that used it has returned.
  if (own.share != 0) {
    SHOAL_RETURN_IF_ERROR(nccl.ToStatus(nccl.ncclRedOpDestroy(own.times_share, own.communicator),
                                        "ncclRedOpDestroy", own.device));
    own.share = 0;
  }
  SHOAL_RETURN_IF_ERROR(
      nccl.ToStatus(nccl.ncclRedOpCreatePreMulSum(&own.times_share, &share, ncclFloat,
                                                  ncclScalarHostImmediate, own.communicator),
                    "ncclRedOpCreatePreMulSum", own.device));
  own.share = share;
  return absl::OkStatus();
}

absl::StatusOr<ncclResult_t> NcclSums::StateOf(Communicator& own) const {
  const NcclLibrary& nccl = *options_.library;
  MutexLock lock(&own.mutex);
  if (aborted_ || own.communicator == nullptr) return AbortedSums();
  ncclResult_t state = ncclSuccess;
  SHOAL_RETURN_IF_ERROR(nccl.ToStatus(nccl.ncclCommGetAsyncError(own.communicator, &state),
                                      "ncclCommGetAsyncError", own.device));
  return state;
}

absl::Status NcclSums::AwaitAccepted(Communicator& own, const char* call) const {
  for (const Clock::time_point deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
    SHOAL_ASSIGN_OR_RETURN(const ncclResult_t state, StateOf(own));
    if (state != ncclInProgress) return options_.library->ToStatus(state, call, own.device);
    std::this_thread::yield();
  }
  return absl::DeadlineExceededError(
      absl::StrCat(call, " on cuda:", own.device, " has not ended after a minute"));
}

absl::Status NcclSums::Check(int rank) {
  Communicator& own = *ranks_[rank];
  SHOAL_ASSIGN_OR_RETURN(const ncclResult_t state, StateOf(own));
  return WithRemedy(options_.library->ToStatus(state, "ncclReduce", own.device));
}

void NcclSums::Abort() {
  aborted_ = true;
  rendezvous_.Abort();
  for (const auto& own : ranks_) {
    MutexLock lock(&own->mutex);
    if (own->communicator == nullptr) continue;
    (void)options_.library->ncclCommAbort(own->communicator);
    own->communicator = nullptr;
  }
}

}  // namespace shoal::cuda
