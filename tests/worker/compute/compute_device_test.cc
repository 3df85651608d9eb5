#include "worker/compute/compute_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A machine with `gpus` GPUs that can be used.
cuda::DeviceSurvey Machine(int gpus) {
  cuda::DeviceSurvey survey = {.built_with_cuda = true,
                               .least_compute_capability = 90,
                               .runtime_version = 13000,
                               .driver_version = 13000};
  for (int i = 0; i < gpus; ++i) {
    survey.devices.push_back({.index = i, .name = "NVIDIA H100", .compute_capability = 90});
  }
  return survey;
}

class ComputeDeviceTest : public ::testing::Test {
 protected:
  absl::StatusOr<ComputeDevice> Choose(const std::string& asked, const cuda::DeviceSurvey& survey) {
    const auto look = [&] {
      ++surveys_;
      return survey;
    };
    return ChooseDevice(asked, look, [this](int index) -> absl::StatusOr<uint64_t> {
      asked_of_.push_back(index);
      if (!free_.contains(index)) return absl::UnavailableError("the test's device is lost");
      return free_[index];
    });
  }

  std::map<int, uint64_t> free_;  // by device; others have an error
  std::vector<int> asked_of_;
  int surveys_ = 0;
};

TEST_F(ComputeDeviceTest, ANameIsItself) {
  for (const char* name : {"cpu", "reference"}) {
    const auto device = Choose(name, {});
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->name, name);
    EXPECT_EQ(device->reason, "");
  }
  EXPECT_EQ(surveys_, 0);  // nobody wakes a driver
  const auto device = Choose("cuda:1", Machine(2));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cuda:1");
  EXPECT_TRUE(asked_of_.empty());
}

TEST_F(ComputeDeviceTest, AGpuThatIsNotThereIsRefusedWithWhatIsMissing) {
  const absl::Status without = Choose("cuda:0", {}).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(without.message(), HasSubstr("built without CUDA"));
  EXPECT_EQ(Choose("cuda:2", Machine(2)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ComputeDeviceTest, OtherNamesAreRefused) {
  for (const char* name : {"cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:99999999999", "", "gpu"}) {
    const absl::Status status = Choose(name, Machine(1)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("there are auto, cpu, reference, cuda:N")) << name;
  }
  EXPECT_THAT(Choose("cuda", Machine(1)).status().message(), HasSubstr("\"cuda:0\"?"));
  EXPECT_THAT(Choose("cpus", Machine(1)).status().message(), HasSubstr("\"cpu\"?"));
}

TEST_F(ComputeDeviceTest, AutoIsTheCpuWhereThereIsNoGpuAndSaysWhy) {
  const auto plain = Choose("auto", {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->name, "cpu");
  EXPECT_EQ(plain->reason, "");  // a program without CUDA
  cuda::DeviceSurvey survey = Machine(0);
  survey.driver_version = 0;
  const auto device = Choose("auto", survey);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cpu");
  EXPECT_THAT(device->reason, AllOf(HasSubstr("on the cpu"), HasSubstr("no NVIDIA driver")));
}

TEST_F(ComputeDeviceTest, AutoIsTheGpuWithTheMostFreeMemoryOfThoseThatCanBeUsed) {
  cuda::DeviceSurvey survey = Machine(4);
  survey.devices[3].compute_capability = 70;
  free_ = {{1, 5000}, {2, 70000}, {3, 80000}};
  const auto device = Choose("auto", survey);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cuda:2");
  EXPECT_THAT(device->reason, AllOf(HasSubstr("cuda:2"), HasSubstr("NVIDIA H100")));
  EXPECT_THAT(asked_of_, ElementsAre(0, 1, 2));
}

// To ask takes some of its memory.
TEST_F(ComputeDeviceTest, OneGpuIsNotAskedHowMuchIsFree) {
  const auto device = Choose("auto", Machine(1));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cuda:0");
  EXPECT_TRUE(asked_of_.empty());
}

}  // namespace
}  // namespace shoal
