#include "worker/gpu_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kLibrary[] = SHOAL_FAKE_NVML;

TEST(GpuStatsTest, ShowWhatTheDriverSaysAndNothingElse) {
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = cuda::Nvml::LoadFrom(kLibrary);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  // The first of the two is unknown to it.
  const GpuStats stats({{"cuda:0", "GPU-5"}, {"cuda:1", "GPU-1234"}}, *std::move(nvml));
  MetricSamples samples;
  stats.Collect(&samples);
  std::map<std::string, double> found;
  for (const MetricSamples::Sample& sample : samples.samples()) {
    EXPECT_EQ(sample.labels, std::vector<std::string>{"cuda:1"});
    found.emplace(sample.metric.description().name, sample.value);
  }
  // It does not know its power.
  EXPECT_THAT(found, UnorderedElementsAre(Pair("shoal_gpu_busy_ratio", 0.75),
                                          Pair("shoal_gpu_memory_used_bytes", 12.0 * (1 << 30)),
                                          Pair("shoal_gpu_memory_bytes", 80.0 * (1 << 30)),
                                          Pair("shoal_gpu_temperature_celsius", 61)));
}

TEST(GpuStatsTest, AreNoneOfAGpuThatTheDriverDoesNotKnow) {
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = cuda::Nvml::LoadFrom(kLibrary);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const absl::Status status = (*nvml)->Read("GPU-5").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("GPU-5"));
  MetricSamples samples;
  GpuStats({{"cuda:0", "GPU-5"}}, *std::move(nvml)).Collect(&samples);
  EXPECT_TRUE(samples.samples().empty());
}

TEST(GpuStatsTest, TheDriverSaysHowMuchMemoryIsFree) {
  absl::StatusOr<std::unique_ptr<const cuda::Nvml>> nvml = cuda::Nvml::LoadFrom(kLibrary);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_EQ((*nvml)->FreeBytes("GPU-1234").value_or(0), 68ULL << 30);
  EXPECT_EQ((*nvml)->FreeBytes("GPU-5").status().code(), absl::StatusCode::kNotFound);
  setenv("FAKE_NVML_MEMORY", "3", 1);
  const absl::Status status = (*nvml)->FreeBytes("GPU-1234").status();
  unsetenv("FAKE_NVML_MEMORY");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("GPU-1234"));
}

TEST(GpuStatsTest, ALibraryWithoutADriverIsRejected) {
  setenv("FAKE_NVML_INIT", "9", 1);
  const absl::Status status = cuda::Nvml::LoadFrom(kLibrary).status();
  unsetenv("FAKE_NVML_INIT");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("nvmlInit"));
  EXPECT_EQ(cuda::Nvml::LoadFrom("/nowhere/libnvidia-ml.so.1").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(GpuStatsTest, NobodyIsAskedAboutACpu) {
  MetricSamples samples;
  std::vector<ComputeDevice> devices;
  devices.push_back({.name = "cpu", .reason = ""});
  devices.push_back({.name = "cpu", .reason = ""});
  GpuStats::Of(devices).Collect(&samples);
  EXPECT_TRUE(samples.samples().empty());
}

}  // namespace
}  // namespace shoal
