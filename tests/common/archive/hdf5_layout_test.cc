#include "common/archive/hdf5_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/common/archive/archive_files.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::ElementsAre;

// The file with data set i holding i, i + 0.25, ...
std::string Filled(const std::vector<std::pair<std::string, Shape>>& datasets) {
  const Hdf5Layout layout = LayOutHdf5(datasets);
  std::string text = layout.header;
  text.resize(layout.file_size);
  for (size_t i = 0; i < datasets.size(); ++i) {
    for (int64_t k = 0; k < ElementCount(datasets[i].second); ++k) {
      const float value = static_cast<float>(i) + static_cast<float>(k) / 4;
      std::memcpy(text.data() + layout.begins[i] + 4 * k, &value, 4);
    }
  }
  return text;
}

class Hdf5LayoutTest : public testing::Test {
 protected:
  std::vector<std::string> Read(const std::vector<std::pair<std::string, Shape>>& datasets) {
    WriteAll(path_, Filled(datasets));
    const auto file = OpenHdf5(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? DatasetLines(**file) : std::vector<std::string>();
  }
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.h5";
};

TEST_F(Hdf5LayoutTest, TheReaderReadsIt) {
  EXPECT_THAT(Read({{"layers/dense/vars/1", {3}}, {"layers/dense/vars/0", {2, 1}}, {"scalar", {}}}),
              ElementsAre("layers/dense/vars/0 (2, 1): 1 1.25",
                          "layers/dense/vars/1 (3,): 0 0.25 0.5", "scalar (): 2"));
  EXPECT_THAT(Read({}), ElementsAre());
}

// More than a node of the tree has room for, and more than a tree of one level has.
TEST_F(Hdf5LayoutTest, AGroupMayHaveThousandsOfEntries) {
  std::vector<std::pair<std::string, Shape>> datasets;
  for (int i = 0; i < 3000; ++i) datasets.emplace_back(absl::StrCat("layers/dense_", i), Shape{});
  EXPECT_EQ(Read(datasets).size(), 3000u);
}

}  // namespace
}  // namespace shoal
