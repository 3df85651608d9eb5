// What is over the objects of CUDA and its libraries. Much of it needs a GPU and is skipped where
// there is none; that each says what is missing then is tested everywhere.

#include "worker/compute/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "worker/compute/backends.h"
#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/cuda/cublaslt_library.h"
#include "worker/compute/cuda/cublaslt_products.h"
#include "worker/compute/cuda/kernels/matrix_product.h"
#include "worker/compute/cuda/kernels/run_on_cpu.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CublasLtLibraryTest, IsLoadedWithoutAGpu) {
  const auto library = CublasLtLibrary::Load();
  ASSERT_TRUE(library.ok()) << library.status();
  const absl::Status status = (*library)->ToStatus(
      CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul(a, b)", {.op = "Dense", .layer = "logits"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "cublasLtMatmul of Dense in the layer logits: CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST(CublasLtLibraryTest, SaysWhatIsMissing) {
  const absl::Status nowhere = CublasLtLibrary::LoadFrom("/nowhere/libcublasLt.so").status();
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(nowhere.message(), HasSubstr("/nowhere/libcublasLt.so"));
  const absl::Status other = CublasLtLibrary::LoadFrom("libm.so.6").status();
  EXPECT_EQ(other.message(), "libm.so.6 has no function cublasLtGetStatusName");
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  const absl::StatusOr<DeviceInfo> found_ = FindDevice(SurveyDevices(), 0);
};

TEST_F(CudaDeviceTest, WithoutOneTheBackendSaysSo) {
  if (found_.ok()) GTEST_SKIP() << "There is a GPU here.";
  EXPECT_EQ(CreateCudaBackend(0).status(), found_.status());
  EXPECT_EQ(CreateBackend("cuda:0").status(), found_.status());
}

TEST_F(CudaDeviceTest, CopiesThereAndBack) {
  if (!found_.ok()) GTEST_SKIP() << "No GPU here: " << found_.status().message();
  const auto device = CudaDevice::Create(*found_);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_GT((*device)->blocks(), 0);
  std::vector<char> from(1000, 7), to(1000, 0);
  const auto pinned = (*device)->Pin(to.data(), 1000);
  const auto memory = (*device)->Allocate(1000);
  const auto copied_in = (*device)->NewEvent(), copied_out = (*device)->NewEvent();
  ASSERT_TRUE(pinned.ok() && memory.ok() && copied_in.ok() && copied_out.ok());
  ASSERT_TRUE((*device)->CopyIn(from.data(), (*memory)->data(), 1000).ok());
  ASSERT_TRUE((*device)->Record(Device::Stream::kIn, **copied_in).ok());
  ASSERT_TRUE((*device)->Wait(Device::Stream::kOut, **copied_in).ok());
  ASSERT_TRUE((*device)->CopyOut((*memory)->data(), to.data(), 1000).ok());
  ASSERT_TRUE((*device)->Record(Device::Stream::kOut, **copied_out).ok());
  const absl::Status done = (*device)->Await(**copied_out);
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_EQ(from, to);
}

// Against plain sums, in memory of the host that the device sees.
TEST_F(CudaDeviceTest, MultipliesMatrices) {
  if (!found_.ok()) GTEST_SKIP() << "No GPU here: " << found_.status().message();
  const auto device = CudaDevice::Create(*found_);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto products = CreateCublasLtProducts(&(*device)->compute_stream());
  ASSERT_TRUE(products.ok()) << products.status();
  const auto done = (*device)->NewEvent();
  const auto workspace = (*device)->Allocate((*products)->workspace_bytes());
  ASSERT_TRUE(done.ok() && workspace.ok());
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool bias : {false, true}) {
        const MatrixProduct product = {transpose_a, transpose_b, bias, 33, 17, 65};
        SCOPED_TRACE(testing::Message() << transpose_a << transpose_b << bias);
        std::vector<std::unique_ptr<Device::Memory>> memories;
        std::vector<float*> data;
        std::vector<void*> tensors;
        for (const int64_t size : {33 * 65, 65 * 17, 17, 33 * 17, 33 * 17}) {
          auto memory = (*device)->AllocateHost(size * static_cast<int64_t>(sizeof(float)));
          ASSERT_TRUE(memory.ok()) << memory.status();
          data.push_back(reinterpret_cast<float*>((*memory)->data()));
          for (int64_t i = 0; i < size; ++i) data.back()[i] = normal(random);
          memories.push_back(*std::move(memory));
        }
        RunOnCpu(MatrixProductKernel{product, data[0], data[1], bias ? data[2] : nullptr, data[4]},
                 random);
        tensors = {data[0], data[1]};
        if (bias) tensors.push_back(data[2]);
        tensors.push_back(data[3]);
        tensors.push_back((*workspace)->data());
        const auto kernel = (*products)->Make(product, {.op = "Dense", .layer = "test"});
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        ASSERT_TRUE((*device)->Launch(**kernel, nullptr, tensors).ok());
        ASSERT_TRUE((*device)->Record(Device::Stream::kCompute, **done).ok());
        const absl::Status ran = (*device)->Await(**done);
        ASSERT_TRUE(ran.ok()) << ran;
        for (int i = 0; i < 33 * 17; ++i) ASSERT_NEAR(data[3][i], data[4][i], 1e-4) << i;
      }
    }
  }
}

}  // namespace
}  // namespace shoal::cuda
