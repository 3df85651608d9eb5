// cuDNN loaded at run time, its errors as ours, and its descriptors. None of this needs a GPU.

#include "worker/compute/cuda/cudnn/cudnn_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"
#include "tests/worker/compute/cuda/cudnn/described_gpu.h"
#include "worker/compute/cuda/cudnn/descriptor.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CudnnLibraryTest, SaysWhatIsMissing) {
  const absl::Status none = CudnnLibrary::LoadFrom("/nowhere/libcudnn.so.9").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.message(), HasSubstr("/nowhere/libcudnn.so.9"));
  const absl::Status other = CudnnLibrary::LoadFrom("libm.so.6").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), AllOf(HasSubstr("libm.so.6"), HasSubstr("cudnn")));
}

TEST(CudnnLibraryTest, KnowsWhichVersionsWillDo) {
  EXPECT_TRUE(CheckCudnnVersion(90800).ok());
  EXPECT_TRUE(CheckCudnnVersion(91900).ok());
  EXPECT_THAT(CheckCudnnVersion(90701).message(), AllOf(HasSubstr("9.7.1"), HasSubstr("9.8.0")));
  EXPECT_FALSE(CheckCudnnVersion(8907).ok());
  EXPECT_FALSE(CheckCudnnVersion(100000).ok());
}

class CudnnDescriptorTest : public DescribedGpuTest {};

TEST_F(CudnnDescriptorTest, StatusesNameCallOpAndLayer) {
  EXPECT_TRUE(library_->ToStatus(CUDNN_STATUS_SUCCESS, "cudnnCreate").ok());
  const absl::Status status =
      library_->ToStatus(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "cudnnBackendFinalize(plan)",
                         {.op = "Conv2D", .layer = "conv"});
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnimplemented,
                                {"cudnnBackendFinalize ", " Conv2D ",
                                 " conv: CUDNN_STATUS_NOT_SUPPORTED_LAYOUT"}));
  const auto code = [&](cudnnStatus_t status) {
    return library_->ToStatus(status, "cudnnCreate").code();
  };
  EXPECT_EQ(code(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER),
            absl::StatusCode::kFailedPrecondition);
  // One engine may say so where others compute.
  EXPECT_EQ(code(CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code(CUDNN_STATUS_EXECUTION_FAILED_CUDART), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(CUDNN_STATUS_BAD_PARAM_NULL_POINTER), absl::StatusCode::kInternal);
}

TEST_F(CudnnDescriptorTest, HoldsAttributes) {
  auto tensor = Descriptor::Create(*library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                                   {.op = "Conv2D", .layer = "conv"});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  // It has no extents yet.
  EXPECT_THAT(std::string(tensor->Finalize().message()),
              AllOf(StartsWith("cudnnBackendFinalize "), HasSubstr(" Conv2D "),
                    HasSubstr(" conv: CUDNN_STATUS_BAD_PARAM")));
  const std::vector<int64_t> dims = {2, 3, 4, 5}, strides = {60, 1, 15, 3};
  const auto set = [&](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; };
  set(tensor->Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_BFLOAT16));
  set(tensor->Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(dims)));
  set(tensor->Set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides)));
  set(tensor->Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{7}));
  set(tensor->Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16}));
  set(tensor->Finalize());
  Descriptor moved = *std::move(tensor);
  EXPECT_THAT(moved.Get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).value(), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(moved.GetOne<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).value(), 7);
  EXPECT_EQ(moved.GetOne<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).value(),
            CUDNN_DATA_BFLOAT16);
  EXPECT_FALSE(moved.Get<float>(CUDNN_ATTR_TENSOR_DIMENSIONS).ok());
}

TEST_F(CudnnDescriptorTest, DescribesADevice) {
  EXPECT_EQ(device_->name(), "NVIDIA H100 80GB HBM3 9.0 132");
  for (const char* properties : {"", "{}", "no JSON"}) {
    EXPECT_FALSE(CudnnDevice::Described(*library_, properties).ok()) << properties;
  }
}

}  // namespace
}  // namespace shoal::cuda
