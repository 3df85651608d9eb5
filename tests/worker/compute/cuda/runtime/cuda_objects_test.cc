// Streams, events, memory and CUDA's errors as ours: in the cuda preset.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/common/base/fails_with.h"
#include "worker/compute/cuda/runtime/cuda_status.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/cuda/runtime/memory.h"
#include "worker/compute/cuda/runtime/stream.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CudaStatusTest, NamesCallOpAndLayer) {
  EXPECT_TRUE(ToStatus(cudaSuccess, "cudaMalloc").ok());
  const absl::Status status = ToStatus(cudaErrorMemoryAllocation, "cudaMalloc(&data, 3)",
                                       {.op = "DepthwiseConv2D", .layer = "conv"});
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kResourceExhausted,
                                {"cudaMalloc ", " DepthwiseConv2D ",
                                 " conv: ", "cudaErrorMemoryAllocation"}));
  EXPECT_EQ(ToStatus(cudaErrorECCUncorrectable, "cudaLaunchKernel").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(ToStatus(cudaErrorInvalidValue, "cudaMemcpyAsync").code(), absl::StatusCode::kInternal);
}

// Runs with a GPU and, where there is none, expects the error that says so of everything.
class CudaObjectsTest : public ::testing::Test {
 protected:
  const absl::Status device_ = FindDevice(SurveyDevices(), 0).status();
};

TEST_F(CudaObjectsTest, WithoutADeviceEachSaysSo) {
  if (device_.ok()) GTEST_SKIP() << "There is a GPU here.";
  for (const absl::Status& status :
       {Stream::Create().status(), Event::Create().status(), DeviceMemory::Allocate(256).status(),
        PinnedMemory::Allocate(256).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.message(), HasSubstr("cudaError"));
  }
  EXPECT_THAT(DeviceMemory::Allocate(3 << 20).status().message(),
              AllOf(HasSubstr("3.0 MiB "), HasSubstr("cudaMalloc:")));
}

TEST_F(CudaObjectsTest, CopiesThroughADevice) {
  if (!device_.ok()) GTEST_SKIP() << "No GPU here: " << device_.message();
  auto stream = Stream::Create(), other = Stream::Create();
  auto event = Event::Create();
  auto device = DeviceMemory::Allocate(1000);
  auto from = PinnedMemory::Allocate(1000), to = PinnedMemory::Allocate(1000);
  ASSERT_TRUE(stream.ok() && other.ok() && event.ok() && device.ok() && from.ok() && to.ok());
  std::memset(from->data(), 7, 1000);
  std::memset(to->data(), 0, 1000);
  ASSERT_TRUE(SHOAL_CUDA(cudaMemcpyAsync(device->data(), from->data(), 1000, cudaMemcpyHostToDevice,
                                         stream->get()))
                  .ok());
  ASSERT_TRUE(event->Record(*stream).ok());
  ASSERT_TRUE(other->WaitFor(*event).ok());
  ASSERT_TRUE(SHOAL_CUDA(cudaMemcpyAsync(to->data(), device->data(), 1000, cudaMemcpyDeviceToHost,
                                         other->get()))
                  .ok());
  ASSERT_TRUE(other->Synchronize().ok());
  EXPECT_EQ(std::memcmp(from->data(), to->data(), 1000), 0);
  EXPECT_EQ(event->IsComplete().value(), true);
}

TEST_F(CudaObjectsTest, AStreamComesFirstWhereItIsToDoSo) {
  if (!device_.ok()) GTEST_SKIP() << "No GPU here: " << device_.message();
  const auto stream = Stream::Create(), first = Stream::Create(Stream::Priority::kHighest);
  ASSERT_TRUE(stream.ok() && first.ok());
  int priority = 1, higher = 1;
  ASSERT_TRUE(SHOAL_CUDA(cudaStreamGetPriority(stream->get(), &priority)).ok());
  ASSERT_TRUE(SHOAL_CUDA(cudaStreamGetPriority(first->get(), &higher)).ok());
  EXPECT_EQ(priority, 0);
  EXPECT_LT(higher, 0);
}

TEST_F(CudaObjectsTest, SaysHowMuchMemoryIsFree) {
  if (!device_.ok()) GTEST_SKIP() << "No GPU here: " << device_.message();
  const absl::Status status = DeviceMemory::Allocate(size_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("are free"));
  // It is not said again.
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace shoal::cuda
