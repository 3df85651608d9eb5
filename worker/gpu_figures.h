#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/metrics/metric_samples.h"
#include "worker/compute/compute_device.h"
#include "worker/compute/cuda/nvml.h"

namespace shoal {

// What the driver says of the GPU that a worker computes on, for Prometheus. Any thread.
class GpuFigures {
 public:
  // `nvml` may be null: there is nothing to show.
  GpuFigures(std::string device, std::string uuid, std::unique_ptr<const cuda::Nvml> nvml)
      : device_(std::move(device)), uuid_(std::move(uuid)), nvml_(std::move(nvml)) {}

  // Where the device is no GPU they show nothing, and, with a line in the log, where the driver
  // says nothing of this one.
  static GpuFigures Of(const ComputeDevice& device);

  // Takes some milliseconds. What is not known is absent.
  void Collect(MetricSamples* out) const;

 private:
  const std::string device_;
  const std::string uuid_;
  const std::unique_ptr<const cuda::Nvml> nvml_;
};

}  // namespace shoal
