#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/metric_samples.h"
#include "worker/compute/cuda/runtime/nvml.h"
#include "worker/compute/registry/compute_device.h"

namespace shoal {

// The driver's stats of the GPUs that a worker computes on, for Prometheus. Any thread.
class GpuStats {
 public:
  struct Gpu {
    std::string device;  // "cuda:0"
    std::string uuid;
  };
  // `nvml` may be null if there are no GPUs.
  GpuStats(std::vector<Gpu> gpus, std::unique_ptr<const cuda::Nvml> nvml)
      : gpus_(std::move(gpus)), nvml_(std::move(nvml)) {}

  // Returns the stats for the GPUs among `devices`. Skips other devices, and with a line in the log
  // each GPU that the driver cannot read.
  static GpuStats Of(const std::vector<ComputeDevice>& devices);

  // Adds the samples; omits unknown ones. Takes some milliseconds.
  void Collect(MetricSamples* out) const;

 private:
  const std::vector<Gpu> gpus_;
  const std::unique_ptr<const cuda::Nvml> nvml_;
};

}  // namespace shoal
