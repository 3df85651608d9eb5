#include "tests/common/checkpoint/small_checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/crc32c.h"

namespace shoal {

namespace fs = std::filesystem;

// In place: many file systems flush a file that was truncated and written anew, which takes long.
void WriteAll(const std::string& path, const std::string& content) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_GE(descriptor, 0) << path;
  const auto size = static_cast<ssize_t>(content.size());
  EXPECT_EQ(pwrite(descriptor, content.data(), content.size(), 0), size) << path;
  if (lseek(descriptor, 0, SEEK_END) != size) {
    EXPECT_EQ(ftruncate(descriptor, size), 0) << path;
  }
  close(descriptor);
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Variable> SmallVariables() {
  return {{"dense/kernel", {5, 3}},
          {"dense/bias", {3}},
          {"norm/moving_mean", {4}, UpdateRule::kMovingAverage, 0.5},
          {"scale", {}}};
}

std::vector<std::string> SmallSlots() { return {"adam_m", "adam_v"}; }

CheckpointLayout SmallLayout() {
  return LayOutCheckpoint(SmallVariables(), SmallSlots(), /*file_bytes=*/80);
}

std::map<std::string, std::string> SmallTexts() {
  return {{"job.json", "{\"name\": \"small\"}"},
          {"model.json", "{\"class_name\": \"Sequential\"}"}};
}

Manifest SmallManifest(uint64_t timeline, uint64_t cut_step) {
  const std::string job = SmallTexts().at("job.json");
  Manifest manifest;
  manifest.program_version = "0.1.0";
  manifest.job_name = "small";
  manifest.job_fingerprint = Crc32c(job);
  manifest.timeline = timeline;
  manifest.cut_step = cut_step;
  manifest.total_steps = 100;
  manifest.epoch = 1;
  manifest.epoch_position = 64;
  manifest.slots = SmallSlots();
  manifest.shard_map = "{\"ps\":[[0,5],[5,9]]}";
  return manifest;
}

float SmallValue(const std::string& tensor, uint64_t index, uint64_t cut_step) {
  return static_cast<float>(
      Crc32c(static_cast<uint32_t>(index + 1000 * cut_step), tensor.data(), tensor.size()) >> 8);
}

std::vector<WrittenPart> WriteElements(const CheckpointLayout& layout, const std::string& directory,
                                       uint64_t begin, uint64_t end, uint64_t cut_step,
                                       FileSystem* files) {
  CheckpointWriter writer(&layout, directory, files);
  for (const auto& [name, place] : layout.places) {
    const uint64_t count = place.entry.size / sizeof(float);
    std::vector<float> values;
    for (uint64_t i = begin; i < std::min(end, count); ++i) {
      values.push_back(SmallValue(name, i, cut_step));
    }
    if (values.empty()) continue;
    const absl::Status status =
        writer.Write(name, begin * sizeof(float), values.data(), values.size() * sizeof(float));
    EXPECT_TRUE(status.ok()) << status;
  }
  auto parts = writer.Finish();
  EXPECT_TRUE(parts.ok()) << parts.status();
  return *std::move(parts);
}

StoredCheckpoint WriteSmallCheckpoint(CheckpointStore* store, uint64_t timeline,
                                      uint64_t cut_step) {
  const CheckpointLayout layout = SmallLayout();
  const auto directory = store->CreateDirectory(cut_step, timeline);
  EXPECT_TRUE(directory.ok()) << directory.status();
  const absl::Status created = CreateCheckpointFiles(layout, *directory, store->files());
  EXPECT_TRUE(created.ok()) << created;
  std::vector<WrittenPart> parts;
  for (const auto& [begin, end] : {std::pair{7, 100}, {0, 2}, {2, 7}}) {
    const auto written = WriteElements(layout, *directory, begin, end, cut_step, store->files());
    parts.insert(parts.end(), written.begin(), written.end());
  }
  auto stored =
      store->Commit(*directory, layout, parts, SmallTexts(), SmallManifest(timeline, cut_step));
  EXPECT_TRUE(stored.ok()) << stored.status();
  return *std::move(stored);
}

}  // namespace shoal
