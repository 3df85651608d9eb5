// What a worker answers who asks for a GPU. In the cuda preset these tests run on machines without
// a driver too: that the program starts there is a part of what is tested.

#include "worker/compute/cuda/runtime/device_survey.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DeviceSurvey OneH100() {
  return {.built_with_cuda = true,
          .min_compute_capability = 90,
          .runtime_version = 13000,
          .driver_version = 13000,
          .devices = {{.index = 0, .name = "NVIDIA H100", .compute_capability = 90}}};
}

// The error that asking `survey` for device `index` gives.
absl::Status Answer(const DeviceSurvey& survey, int index = 0) {
  return FindDevice(survey, index).status();
}

TEST(DeviceSurveyTest, FindsADevice) {
  const auto device = FindDevice(OneH100(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "NVIDIA H100");
}

TEST(DeviceSurveyTest, NamesADeviceAsNvidiaSmiDoes) {
  char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<char>(17 * i);
  EXPECT_EQ(UuidText(bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
}

TEST(DeviceSurveyTest, ADriverOfAnEarlierMinorVersionWillDo) {
  DeviceSurvey survey = OneH100();
  survey.runtime_version = 13020;
  EXPECT_TRUE(Answer(survey).ok()) << Answer(survey);
}

TEST(DeviceSurveyTest, SaysThatTheProgramHasNoCuda) {
  const absl::Status status = Answer({});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("cmake --preset cuda"));
}

TEST(DeviceSurveyTest, SaysThatThereIsNoDriver) {
  DeviceSurvey survey = OneH100();
  survey.driver_version = 0;
  survey.devices.clear();
  const absl::Status status = Answer(survey);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no NVIDIA driver"));
}

TEST(DeviceSurveyTest, SaysThatTheDriverIsTooOld) {
  DeviceSurvey survey = OneH100();
  survey.driver_version = 12040;
  EXPECT_THAT(Answer(survey).message(), AllOf(HasSubstr("CUDA 12.4"), HasSubstr("CUDA 13.0")));
  survey.runtime_version = 12080;
  EXPECT_TRUE(Answer(survey).ok()) << Answer(survey);
  // One of the same major version that says itself that it cannot.
  survey.devices.clear();
  survey.error = absl::FailedPreconditionError("cudaErrorInsufficientDriver");
  EXPECT_THAT(Answer(survey).message(), HasSubstr("too old"));
}

TEST(DeviceSurveyTest, SaysThatThereIsNoDevice) {
  DeviceSurvey survey = OneH100();
  survey.devices.clear();
  const absl::Status status = Answer(survey);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(DeviceSurveyTest, SaysWhichDevicesThereAre) {
  DeviceSurvey survey = OneH100();
  EXPECT_THAT(Answer(survey, 1).message(), AllOf(HasSubstr("cuda:1"), HasSubstr("cuda:0")));
  EXPECT_THAT(Answer(survey, -1).message(), HasSubstr("cuda:-1"));
  survey.devices.push_back(survey.devices[0]);
  EXPECT_THAT(Answer(survey, 2).message(), HasSubstr("cuda:0 to cuda:1"));
}

TEST(DeviceSurveyTest, SaysThatADeviceIsTooOld) {
  DeviceSurvey survey = OneH100();
  survey.devices[0] = {.index = 0, .name = "Tesla T4", .compute_capability = 75};
  EXPECT_THAT(Answer(survey).message(),
              AllOf(HasSubstr("Tesla T4"), HasSubstr("7.5"), HasSubstr("8.0")));
  survey.devices[0] = {.index = 0, .name = "NVIDIA A100", .compute_capability = 80};
  EXPECT_THAT(Answer(survey).message(),
              AllOf(HasSubstr("9.0"), HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=80")));
}

// One that the driver says nothing about leaves the others as they are.
TEST(DeviceSurveyTest, ADeviceHasAnErrorOfItsOwn) {
  DeviceSurvey survey = OneH100();
  survey.devices.push_back(
      {.index = 1, .error = absl::UnavailableError("cudaGetDeviceProperties: it has fallen off")});
  EXPECT_TRUE(Answer(survey, 0).ok()) << Answer(survey, 0);
  const absl::Status status = Answer(survey, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cuda:1 "), HasSubstr("it has fallen off"), HasSubstr("nvidia-smi")));
}

TEST(DeviceSurveyTest, PassesOnWhatCudaSays) {
  DeviceSurvey survey = OneH100();
  survey.devices.clear();
  survey.error = absl::UnavailableError("cudaGetDeviceCount: system not yet initialized");
  EXPECT_EQ(Answer(survey), survey.error);
}

#ifdef SHOAL_CUDA
// Whether this process has what CUDA calls the device's primary context, of which the driver alone
// tells.
bool IsUsedHere(int index) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  using GetState = int (*)(int device, unsigned* flags, int* active);
  const auto get_state = reinterpret_cast<GetState>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 1;
  return get_state == nullptr || get_state(index, &flags, &active) != 0 || active != 0;
}
#endif

TEST(DeviceSurveyTest, LooksAtThisMachine) {
  const DeviceSurvey survey = SurveyDevices();
  const auto device = FindDevice(survey, 0);
#ifdef SHOAL_CUDA
  EXPECT_TRUE(survey.built_with_cuda);
  EXPECT_GE(survey.runtime_version, 12000);
  if (device.ok()) {
    EXPECT_FALSE(device->name.empty());
    const auto free_bytes = FreeBytes(*device);
    ASSERT_TRUE(free_bytes.ok()) << free_bytes.status();
    EXPECT_FALSE(IsUsedHere(0)) << "who only asks holds its memory";
    EXPECT_GT(*free_bytes, 0u);
    EXPECT_LE(*free_bytes, device->total_bytes);
    return;
  }
  EXPECT_NE(device.status().code(), absl::StatusCode::kUnimplemented);
  if (survey.driver_version == 0) {
    EXPECT_THAT(device.status().message(), HasSubstr("no NVIDIA driver"));
  }
  GTEST_SKIP() << "No GPU here: " << device.status().message();
#else
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(FreeBytes(OneH100().devices[0]).status(), device.status());
#endif
}

}  // namespace
}  // namespace shoal::cuda
