#include "worker/compute/registry/compute_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A machine with `gpus` GPUs that can be used.
cuda::DeviceSurvey Machine(int gpus) {
  cuda::DeviceSurvey survey = {.built_with_cuda = true,
                               .min_compute_capability = 90,
                               .runtime_version = 13000,
                               .driver_version = 13000};
  for (int i = 0; i < gpus; ++i) {
    survey.devices.push_back({.index = i,
                              .name = "NVIDIA H100",
                              .uuid = "GPU-" + std::to_string(i),
                              .compute_capability = 90});
  }
  return survey;
}

class ComputeDeviceTest : public ::testing::Test {
 protected:
  // One device.
  absl::StatusOr<ComputeDevice> Choose(const std::string& asked, const cuda::DeviceSurvey& survey) {
    absl::StatusOr<std::vector<ComputeDevice>> chosen = ChooseSeveral(asked, survey);
    if (!chosen.ok()) return chosen.status();
    EXPECT_EQ(chosen->size(), 1u);
    return std::move(chosen->front());
  }
  absl::StatusOr<std::vector<ComputeDevice>> ChooseSeveral(const std::string& asked,
                                                           const cuda::DeviceSurvey& survey) {
    const auto look = [&] {
      ++surveys_;
      return survey;
    };
    const auto free_bytes = [this](const cuda::DeviceInfo& device) -> absl::StatusOr<uint64_t> {
      asked_of_.push_back(device.index);
      if (!free_.contains(device.index)) return absl::UnavailableError("the test's device is lost");
      return free_[device.index];
    };
    // Other tests of this machine, and workers, have GPUs of other names.
    const auto claim = [this](const std::string& uuid) {
      return GpuClaim::Take(absl::StrCat("test ", getpid(), " ", uuid, claims_));
    };
    return ChooseDevices(asked, {.survey = look,
                                 .free_bytes = free_bytes,
                                 .check_libraries = [this] { return libraries_; },
                                 .claim = claim});
  }

  std::map<int, uint64_t> free_;  // by device; others have an error
  std::vector<int> asked_of_;
  int surveys_ = 0;
  absl::Status libraries_;
  std::string claims_;  // a suffix of theirs
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
  EXPECT_EQ(device->uuid, Machine(2).devices[1].uuid);
  EXPECT_TRUE(asked_of_.empty());
}

TEST_F(ComputeDeviceTest, AGpuThatIsNotThereIsRejectedWithWhatIsMissing) {
  const absl::Status without = Choose("cuda:0", {}).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(without.message(), HasSubstr("built without CUDA"));
  EXPECT_EQ(Choose("cuda:2", Machine(2)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ComputeDeviceTest, OtherNamesAreRejected) {
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
  EXPECT_EQ(device->uuid, survey.devices[2].uuid);
  EXPECT_THAT(asked_of_, ElementsAre(0, 1, 2));
}

TEST_F(ComputeDeviceTest, WorkersThatChooseForThemselvesTakeAGpuEach) {
  free_ = {{0, 70000}, {1, 80000}};
  std::vector<ComputeDevice> workers;
  for (const char* name : {"cuda:1", "cuda:0", "cpu"}) {
    auto device = Choose("auto", Machine(2));
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->name, name);
    workers.push_back(*std::move(device));
  }
  EXPECT_THAT(workers[2].reason,
              AllOf(HasSubstr("computes on the cpu: other workers"),
                    HasSubstr("cuda:0, cuda:1; to share one, start with --device=cuda:0")));
  workers[1] = {};  // it has ended
  EXPECT_EQ(Choose("auto", Machine(2))->name, "cuda:0");
}

TEST_F(ComputeDeviceTest, AGpuThatIsAskedForByNameIsTakenAndMayBeShared) {
  free_ = {{0, 80000}, {1, 70000}};
  const auto first = Choose("cuda:0", Machine(2)), second = Choose("cuda:0", Machine(2));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->reason, "");
  EXPECT_THAT(second->reason, HasSubstr("shares cuda:0 with another worker"));
  EXPECT_EQ(Choose("auto", Machine(2))->name, "cuda:1");
}

// The name of a socket has an end.
TEST_F(ComputeDeviceTest, AGpuThatCannotBeClaimedIsStillUsed) {
  claims_ = std::string(200, 'x');
  const auto device = Choose("auto", Machine(1));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cuda:0");
  EXPECT_THAT(device->reason, HasSubstr("other workers may choose it, too: the name of a GPU"));
}

TEST_F(ComputeDeviceTest, AutoIsTheCpuWhereALibraryIsMissing) {
  libraries_ = absl::FailedPreconditionError("cuDNN cannot be used: install it");
  const auto device = Choose("auto", Machine(2));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "cpu");
  EXPECT_EQ(device->reason, "computes on the cpu: cuDNN cannot be used: install it");
  // It may be that the model needs none: who asks for a GPU gets it.
  EXPECT_EQ(Choose("cuda:1", Machine(2))->name, "cuda:1");
}

// Until its process is gone, however it ends.
TEST_F(ComputeDeviceTest, AClaimEndsWithItsProcess) {
  const std::string uuid = absl::StrCat("test ", getpid(), " of another process");
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = GpuClaim::Take(uuid);
    const char taken = claim.ok() ? 'y' : 'n';
    if (write(pipe_ends[1], &taken, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char taken = 0;
  ASSERT_EQ(read(pipe_ends[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_EQ(GpuClaim::Take(uuid).status().code(), absl::StatusCode::kAlreadyExists);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(GpuClaim::Take(uuid).ok());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(ComputeDeviceTest, SeveralGpusAreClaimedEach) {
  free_ = {{0, 80000}, {1, 70000}, {2, 60000}};
  const auto devices = ChooseSeveral("cuda:2,cuda:0", Machine(3));
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(NameOf(*devices), "cuda:2,cuda:0");
  EXPECT_EQ((*devices)[0].uuid, "GPU-2");
  EXPECT_EQ((*devices)[1].uuid, "GPU-0");
  EXPECT_EQ(surveys_, 1);
  EXPECT_EQ(Choose("auto", Machine(3))->name, "cuda:1");
  const auto again = ChooseSeveral("cuda:1,cuda:2", Machine(3));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)[0].reason, "");
  EXPECT_THAT((*again)[1].reason, HasSubstr("shares cuda:2 with another worker"));
  EXPECT_EQ(ChooseSeveral("cuda:0,cuda:3", Machine(3)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ComputeDeviceTest, TheCpuMayBeNamedSeveralTimes) {
  const auto devices = ChooseSeveral("cpu,cpu,cpu", {});
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(NameOf(*devices), "cpu,cpu,cpu");
  EXPECT_EQ(surveys_, 0);
}

TEST_F(ComputeDeviceTest, SeveralThatDoNotGoTogetherAreRejectedByName) {
  const std::map<std::string, std::string> said_of = {
      {"cuda:0,cuda:0", "names cuda:0 twice"},
      {"cuda:0,cuda:00", "names cuda:00 twice"},
      {"cpu,cuda:0", "must be of one kind"},
      {"cpu,reference", "must be of one kind"},
      {"auto,auto", "auto is one device"},
      {"cuda:0,auto", "auto is one device"},
      {"cuda:0,cuda", "device \"cuda\" is not"},
      {"cpu,", "did you mean \"cpu\"?"},
      {"cuda:0,,cuda:1", "did you mean \"cuda:0,cuda:1\"?"},
      {",", "no device on one side of a comma"},
      {"cpu,cpus", "did you mean \"cpu\"?"}};
  for (const auto& [name, said] : said_of) {
    const absl::Status status = ChooseSeveral(name, Machine(2)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr(said)) << name;
  }
  EXPECT_EQ(surveys_, 0);
  EXPECT_THAT(CheckDeviceName("cpu,cpu", {.several = false}).message(),
              HasSubstr("names several devices; expected one"));
}

TEST_F(ComputeDeviceTest, AskingWhetherAGpuIsHereClaimsNone) {
  int surveys = 0;
  const auto survey = [&surveys] {
    ++surveys;
    return Machine(2);
  };
  for (const char* name : {"auto", "cpu,cpu"}) EXPECT_TRUE(CheckDevicesAreHere(name, survey).ok());
  EXPECT_EQ(surveys, 0);
  EXPECT_TRUE(CheckDevicesAreHere("cuda:1,cuda:0", survey).ok());
  EXPECT_EQ(CheckDevicesAreHere("cuda:0,cuda:2", survey).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckDevicesAreHere("cuda:0", [] { return cuda::DeviceSurvey(); }).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Choose("auto", Machine(2))->name, "cuda:0");
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
