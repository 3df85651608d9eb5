#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"
#include "worker/compute/cuda/cudnn/descriptor.h"

namespace shoal::cuda {

// A GPU as cuDNN needs it for engines and plans: one of this machine, or any, by its properties
// alone. Constant once made.
class CudnnDevice {
 public:
  // The GPU of this machine with CUDA's number `index`.
  static absl::StatusOr<CudnnDevice> OfThisMachine(const CudnnLibrary& library, int index);
  // `properties` is cuDNN's JSON. Plans for a GPU that is not in this machine do not run.
  static absl::StatusOr<CudnnDevice> Described(const CudnnLibrary& library,
                                               std::string_view properties);

  const Descriptor& properties() const { return properties_; }
  // "NVIDIA H100 80GB HBM3 9.0 132": name, compute capability and multiprocessors. They decide
  // which engines are fast.
  const std::string& name() const { return name_; }

 private:
  CudnnDevice(Descriptor properties, std::string name)
      : properties_(std::move(properties)), name_(std::move(name)) {}
  static absl::StatusOr<CudnnDevice> Finish(Descriptor properties);

  Descriptor properties_;
  std::string name_;
};

}  // namespace shoal::cuda
