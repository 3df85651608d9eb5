#include "tests/cluster/in_process/small_job.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"

namespace shoal {
namespace {

constexpr int kSide = 8;
constexpr char kModel[] = R"({
 "class_name": "Sequential",
 "config": {"name": "small", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1], "dtype": "float32", "name": "input"}},
  {"class_name": "Rescaling", "config": {"name": "rescaling", "scale": 0.00392156862745098, "offset": 0.0}},$1
  {"class_name": "Conv2D", "config": {"name": "conv2d", "filters": 4, "kernel_size": [3, 3], "strides": [1, 1],
    "padding": "same", "activation": "relu", "use_bias": true, "dtype": "$2"}},
  {"class_name": "MaxPooling2D", "config": {"name": "max_pooling2d", "pool_size": [2, 2], "padding": "valid"}},
  {"class_name": "Flatten", "config": {"name": "flatten"}},
  {"class_name": "Dense", "config": {"name": "dense", "units": $0, "activation": "relu", "use_bias": true,
    "dtype": "$2"}},
  {"class_name": "Dense", "config": {"name": "dense_1", "units": 4, "activation": "linear", "use_bias": true,
    "dtype": "$2"}}
 ]}})";

void WriteBigEndian(std::ofstream& file, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(value >> shift));
}

void WriteExamples(const std::string& prefix, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::ofstream images(prefix + "-images.idx", std::ios::binary);
  std::ofstream labels(prefix + "-labels.idx", std::ios::binary);
  WriteBigEndian(images, 0x00000803);
  for (const int extent : {count, kSide, kSide}) WriteBigEndian(images, extent);
  WriteBigEndian(labels, 0x00000801);
  WriteBigEndian(labels, count);
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 4);
    labels.put(static_cast<char>(label));
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const bool bright = (y >= kSide / 2) * 2 + (x >= kSide / 2) == label;
        images.put(static_cast<char>((bright ? 120 : 20) + random() % 90));
      }
    }
  }
}

}  // namespace

std::string SmallJob::Write() const {
  std::ofstream(directory + "/model.json") << absl::Substitute(
      kModel, units,
      normalization.empty()
          ? ""
          : absl::StrCat(R"({"class_name": "BatchNormalization", "config": {"name": "norm", )",
                         normalization, "}},"),
      dtype);
  WriteExamples(directory + "/train", training_examples, 11);
  WriteExamples(directory + "/test", test_examples, 12);
  const std::string path = directory + "/job.json";
  std::ofstream(path) << absl::StrCat(
      R"({"name": "small", "model": "model.json", "data": {
          "training": {"images": "train-images.idx", "labels": "train-labels.idx"},
          "test": {"images": "test-images.idx", "labels": "test-labels.idx"}},
          "loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": true}},
          "metrics": ["accuracy"], "optimizer": )",
      optimizer, R"(, "batch_size": )", batch_size,
      steps > 0 ? R"(, "steps": )" : R"(, "epochs": )", steps > 0 ? steps : epochs,
      R"(, "callbacks": )", callbacks, R"(, "strategy": )", strategy, R"(, "checkpoint": )",
      checkpoint, R"(, "seed": )", seed, "}");
  return path;
}

Job SmallJob::Load() const {
  absl::StatusOr<Job> job = LoadJob(Write(), /*check_data=*/true);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *std::move(job) : Job();
}

}  // namespace shoal
