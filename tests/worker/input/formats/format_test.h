#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/input/formats/data_file_content.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// A test of a format: opens `source_` for `inputs_` and reads examples as text.
class FormatTest : public DataFileTest {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open() const { return OpenDataset(source_, inputs_); }
  // Returns the error of opening, or else of the first unreadable example.
  absl::Status ErrorOf() const {
    const auto dataset = Open();
    if (!dataset.ok()) return dataset.status();
    for (uint64_t i = 0; i < (*dataset)->size(); ++i) {
      const absl::Status status = Read(**dataset, i, nullptr);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  // Returns "0 1 | 7 : label" for each example.
  std::vector<std::string> Rows() const {
    const auto dataset = Open();
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    std::vector<std::string> rows;
    for (uint64_t i = 0; dataset.ok() && i < (*dataset)->size(); ++i) {
      const absl::Status status = Read(**dataset, i, &rows.emplace_back());
      if (!status.ok()) rows.back() = status.ToString();
    }
    return rows;
  }

  DataSource source_;
  std::vector<Feature> inputs_;

 private:
  absl::Status Read(const Dataset& dataset, uint64_t index, std::string* row) const {
    std::vector<std::vector<float>> numbers;
    for (const Feature& feature : dataset.features())
      numbers.emplace_back(ElementCount(feature.shape));
    std::vector<float> label(ElementCount(dataset.label_shape())), alone(label.size());
    const std::vector<FeatureSpan> features(numbers.begin(), numbers.end());
    const absl::Status status = dataset.Read(index, features, label);
    if (!status.ok()) return status;
    EXPECT_TRUE(dataset.ReadLabel(index, alone).ok());
    // The replacement of a damaged example has another label.
    if (source_.damaged != "skip") {
      EXPECT_EQ(alone, label);
    }
    if (row == nullptr) return status;
    numbers.push_back(label);
    for (size_t f = 0; f < numbers.size(); ++f) {
      if (f > 0) *row += f + 1 == numbers.size() ? " : " : " | ";
      for (size_t i = 0; i < numbers[f].size(); ++i) {
        char text[32];
        std::snprintf(text, sizeof(text), i == 0 ? "%g" : " %g", numbers[f][i]);
        *row += text;
      }
    }
    return status;
  }
};

}  // namespace shoal
