#include "tests/worker/compute/suite_backends.h"

#include "common/model/ops/dense.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/registry/backends.h"

namespace shoal {

std::vector<std::string> SuiteBackends() {
  std::vector<std::string> names = TestedBackends();
  names.push_back("fake_device");
  names.push_back("cuda_on_cpu");
  if (cuda::SurveyDevices().built_with_cuda) names.push_back("cuda");
  return names;
}

absl::Status CheckDevice(const std::string& name) {
  if (name != "cuda") return absl::OkStatus();
  return cuda::FindDevice(cuda::SurveyDevices(), 0).status();
}

absl::StatusOr<std::unique_ptr<Backend>> CreateSuiteBackend(const std::string& name) {
  auto device = std::make_unique<FakeDevice>(/*seed=*/1);
  if (name == "cuda_on_cpu") return std::make_unique<CudaOnCpuBackend>(std::move(device));
  if (name == "cuda") return CreateBackend("cuda:0");
  if (name != "fake_device") return CreateBackend(name);
  return std::make_unique<FakeDeviceBackend>(std::move(device), /*min_copied_bytes=*/1024);
}

std::vector<std::string> ReducedPrecisionBackends() {
  std::vector<std::string> names = SuiteBackends();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("cuda"); });
  return names;
}

std::set<ComputeDtype> ComputeDtypesOf(const Backend& backend) {
  std::set<ComputeDtype> dtypes;
  for (const ComputeDtype dtype :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    if (backend.Supports({.op = std::make_shared<DenseOp>(), .compute_dtype = dtype}))
      dtypes.insert(dtype);
  }
  return dtypes;
}

std::set<std::string> KernelsOf(const std::string& name) {
#define KERNEL(TYPE) #TYPE,
#define TYPED(TYPE) #TYPE,
#define FUSED(TYPE, FACTORY) #TYPE,
  if (name == "cpu") {
    return {
#include "worker/compute/cpu/kernel_list.inc"
    };
  }
  if (name.starts_with("cuda")) {
    return {
#include "worker/compute/cuda/kernel_list.inc"
    };
  }
  return {
#include "worker/compute/reference/kernel_list.inc"
  };
#undef FUSED
#undef TYPED
#undef KERNEL
}

std::set<std::string> MissingOps(const std::string& /*name*/) { return {}; }

}  // namespace shoal
