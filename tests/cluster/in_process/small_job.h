#pragma once

#include <cstdint>
#include <string>

#include "common/job/job.h"

namespace shoal {

// A job that trains in a moment: 8x8 images of four classes, which differ in the bright quarter,
// and a small network. All its files are under `directory`. The fields hold the options.
struct SmallJob {
  std::string directory;
  int training_examples = 200;
  int test_examples = 50;
  int batch_size = 16;
  int epochs = 2;
  int steps = 0;  // instead of epochs
  std::string optimizer = R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})";
  std::string callbacks = "[]";
  std::string checkpoint = R"({"every_steps": 5, "keep": 2})";
  std::string strategy = R"({"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024})";
  uint64_t seed = 1;
  int units = 24;                 // of the hidden layer
  std::string dtype = "float32";  // policy of the layers with variables
  // Options of a BatchNormalization of the images: R"("momentum": 0.9)". Empty: no such layer.
  std::string normalization = "";

  // Writes model.json, the data as IDX files, and job.json. Returns the path of job.json.
  std::string Write() const;
  // Writes and loads the job.
  Job Load() const;
};

}  // namespace shoal
