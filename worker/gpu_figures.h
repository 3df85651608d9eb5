#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/metric_samples.h"
#include "worker/compute/compute_device.h"
#include "worker/compute/cuda/nvml.h"

namespace shoal {

// What the driver says of the GPUs that a worker computes on, for Prometheus. Any thread.
class GpuFigures {
 public:
  struct Gpu {
    std::string device;  // "cuda:0"
    std::string uuid;
  };
  // `nvml` may be null where there are no GPUs.
  GpuFigures(std::vector<Gpu> gpus, std::unique_ptr<const cuda::Nvml> nvml)
      : gpus_(std::move(gpus)), nvml_(std::move(nvml)) {}

  // Of a device that is no GPU they show nothing, nor, with a line in the log, of one of which the
  // driver says nothing.
  static GpuFigures Of(const std::vector<ComputeDevice>& devices);

  // Takes some milliseconds. What is not known is absent.
  void Collect(MetricSamples* out) const;

 private:
  const std::vector<Gpu> gpus_;
  const std::unique_ptr<const cuda::Nvml> nvml_;
};

}  // namespace shoal
