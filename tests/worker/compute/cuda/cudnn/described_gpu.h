#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "worker/compute/cuda/cudnn/cudnn_device.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"

// cuDNN without a GPU: it lists engines and makes plans for a described GPU. Only running a plan
// needs the GPU.

namespace shoal::cuda {

// An H100 as cuDNN describes it. The numbers are from NVIDIA's data sheet and from CUDA's
// programming guide for compute capability 9.0.
inline constexpr char kH100[] = R"({
  "deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "totalGlobalMem": 85045084160, "l2CacheSize": 52428800, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1})";

class DescribedGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = CudnnLibrary::Load();
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *std::move(library);
    auto device = CudnnDevice::Described(*library_, kH100);
    ASSERT_TRUE(device.ok()) << device.status();
    device_.emplace(*std::move(device));
  }

  std::unique_ptr<const CudnnLibrary> library_;
  std::optional<CudnnDevice> device_;
};

}  // namespace shoal::cuda
