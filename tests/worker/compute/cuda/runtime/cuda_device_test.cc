// What is over the objects of CUDA and its libraries. Much of it needs a GPU and is skipped where
// there is none; that each says what is missing then is tested everywhere.

#include "worker/compute/cuda/runtime/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/common/base/fails_with.h"
#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/cuda/cublaslt/cublaslt_library.h"
#include "worker/compute/cuda/cublaslt/cublaslt_products.h"
#include "worker/compute/cuda/kernels/matrix_product.h"
#include "worker/compute/cuda/kernels/run_on_cpu.h"
#include "worker/compute/cuda/runtime/nvml.h"
#include "worker/compute/op_math/float16.h"
#include "worker/compute/registry/backends.h"

namespace shoal::cuda {
namespace {

using ::testing::HasSubstr;

TEST(CublasLtLibraryTest, IsLoadedWithoutAGpu) {
  const auto library = CublasLtLibrary::Load();
  ASSERT_TRUE(library.ok()) << library.status();
  const absl::Status status = (*library)->ToStatus(
      CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul(a, b)", {.op = "Dense", .layer = "logits"});
  EXPECT_THAT(status,
              FailsWith(absl::StatusCode::kUnimplemented,
                        {"cublasLtMatmul ", " Dense ", " logits: CUBLAS_STATUS_NOT_SUPPORTED"}));
}

TEST(CublasLtLibraryTest, SaysWhatIsMissing) {
  const absl::Status nowhere = CublasLtLibrary::LoadFrom("/nowhere/libcublasLt.so").status();
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(nowhere.message(), HasSubstr("/nowhere/libcublasLt.so"));
  const absl::Status other = CublasLtLibrary::LoadFrom("libm.so.6").status();
  EXPECT_THAT(other, FailsWith(absl::StatusCode::kFailedPrecondition,
                               {"libm.so.6", "cublasLtGetStatusName"}));
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  const absl::StatusOr<DeviceInfo> found_ = FindDevice(SurveyDevices(), 0);
};

TEST_F(CudaDeviceTest, WithoutOneTheBackendSaysSo) {
  if (found_.ok()) GTEST_SKIP() << "There is a GPU here.";
  EXPECT_EQ(CreateCudaBackend(0, {}).status(), found_.status());
  EXPECT_EQ(CreateBackend("cuda:0").status(), found_.status());
}

// By way of NVIDIA's own library, which is declared by hand.
TEST_F(CudaDeviceTest, TheDriverKnowsIt) {
  if (!found_.ok()) GTEST_SKIP() << "No GPU here: " << found_.status().message();
  const auto nvml = Nvml::Load();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto reading = (*nvml)->Read(found_->uuid);
  ASSERT_TRUE(reading.ok()) << reading.status();
  ASSERT_TRUE(reading->total_bytes.has_value() && reading->used_bytes.has_value());
  EXPECT_GE(*reading->total_bytes, found_->total_bytes);
  EXPECT_LE(*reading->used_bytes, *reading->total_bytes);
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

// By both, of numbers drawn by `random`, in memory of the host that the device sees.
template <typename Operand, typename Result>
void ExpectPlainProduct(CudaDevice& device, MatrixProducts& products, const MatrixProduct& product,
                        double bound, std::mt19937_64& random) {
  const auto done = device.NewEvent();
  const auto workspace = device.Allocate(products.workspace_bytes());
  ASSERT_TRUE(done.ok() && workspace.ok());
  std::normal_distribution<float> normal;
  std::vector<std::unique_ptr<Device::Memory>> memories;
  const auto draw = [&]<typename Element>(Element, int64_t size) {
    auto memory = device.AllocateHost(size * static_cast<int64_t>(sizeof(Element)));
    EXPECT_TRUE(memory.ok()) << memory.status();
    auto* const data = reinterpret_cast<Element*>((*memory)->data());
    for (int64_t i = 0; i < size; ++i) data[i] = FromFloat<Element>(normal(random));
    memories.push_back(*std::move(memory));
    return data;
  };
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  auto *const a = draw(Operand(), m * k), *const b = draw(Operand(), k * n);
  auto *const bias = draw(Result(), n), *const c = draw(Result(), m * n);
  auto* const expected = draw(Result(), m * n);
  RunOnCpu(
      MatrixProductKernel<Operand, Result>{product, a, b, product.bias ? bias : nullptr, expected},
      random);
  std::vector<void*> tensors = {a, b};
  if (product.bias) tensors.push_back(bias);
  tensors.push_back(c);
  tensors.push_back((*workspace)->data());
  const auto kernel = products.Make(product, /*trains=*/true, {.op = "Dense", .layer = "test"});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_TRUE(device.Launch(**kernel, nullptr, tensors).ok());
  ASSERT_TRUE(device.Record(Device::Stream::kCompute, **done).ok());
  const absl::Status ran = device.Await(**done);
  ASSERT_TRUE(ran.ok()) << ran;
  for (int64_t i = 0; i < m * n; ++i) ASSERT_NEAR(ToFloat(c[i]), ToFloat(expected[i]), bound) << i;
}

TEST(CublasLtProductsTest, Float32IsNotReadAsTf32UnlessThatIsAskedFor) {
  EXPECT_EQ(ComputeTypeOf(ComputeDtype::kFloat32, /*tf32=*/false), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(ComputeTypeOf(ComputeDtype::kFloat32, /*tf32=*/true), CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(ComputeTypeOf(ComputeDtype::kBfloat16, /*tf32=*/true), CUBLAS_COMPUTE_32F);
}

TEST(CublasLtProductsTest, AnAlgorithmIsATextAndBack) {
  cublasLtMatmulAlgo_t algorithm = {};
  for (uint64_t i = 0; i < std::size(algorithm.data); ++i) algorithm.data[i] = i << (8 * i);
  algorithm.data[7] = ~uint64_t{0};
  const std::string text = AlgorithmText(algorithm);
  EXPECT_TRUE(text.starts_with("00000000000000000000000000000100")) << text;
  EXPECT_TRUE(text.ends_with("ffffffffffffffff")) << text;
  const auto parsed = ParseAlgorithm(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::memcmp(parsed->data, algorithm.data, sizeof(algorithm.data)), 0);
  for (const std::string& other : {std::string(), text + "0", text.substr(1) + "g"}) {
    EXPECT_FALSE(ParseAlgorithm(other).has_value()) << other;
  }
}

// Against plain sums, by the first algorithm and by the one that is the fastest here. Of TF32 a
// product is off by 2^-11 of it.
TEST_F(CudaDeviceTest, MultipliesMatrices) {
  if (!found_.ok()) GTEST_SKIP() << "No GPU here: " << found_.status().message();
  const auto device = CudaDevice::Create(*found_);
  ASSERT_TRUE(device.ok()) << device.status();
  std::mt19937_64 random(3);
  AlgorithmTuner tuner({.on_warning = [](const std::string& text) { ADD_FAILURE() << text; }});
  for (int choice = 0; choice < 4; ++choice) {
    const bool tf32 = (choice & 1) != 0;
    const auto products = CreateCublasLtProducts({.stream = &(*device)->compute_stream(),
                                                  .tf32 = tf32,
                                                  .tuner = (choice & 2) != 0 ? &tuner : nullptr});
    ASSERT_TRUE(products.ok()) << products.status();
    for (int bits = 0; bits < 8; ++bits) {
      MatrixProduct product = {.transpose_a = (bits & 1) != 0,
                               .transpose_b = (bits & 2) != 0,
                               .bias = (bits & 4) != 0,
                               .m = 33,
                               .n = 17,
                               .k = 65};
      SCOPED_TRACE(testing::Message() << product.transpose_a << product.transpose_b << product.bias
                                      << " choice " << choice);
      ExpectPlainProduct<float, float>(**device, **products, product, tf32 ? 0.05 : 1e-4, random);
      product.operands = product.result = ComputeDtype::kBfloat16;
      ExpectPlainProduct<BFloat16, BFloat16>(**device, **products, product, 0.25, random);
      product.operands = product.result = ComputeDtype::kFloat16;
      ExpectPlainProduct<Float16, Float16>(**device, **products, product, 0.05, random);
      if (product.bias) continue;  // a factory asks for none with these
      product.result = ComputeDtype::kFloat32;
      ExpectPlainProduct<Float16, float>(**device, **products, product, 1e-3, random);
      product.operands = ComputeDtype::kBfloat16;
      ExpectPlainProduct<BFloat16, float>(**device, **products, product, 1e-3, random);
    }
  }
}

}  // namespace
}  // namespace shoal::cuda
