#include "tests/common/archive/archive_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace shoal {

std::string ArchivePath(const std::string& name) {
  return std::string(SHOAL_SOURCE_DIR) + "/tests/common/archive/testdata/" + name;
}

void WriteAll(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

absl::StatusOr<std::unique_ptr<Hdf5File>> OpenHdf5(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(ByteSource source, OpenByteSource(path));
  return Hdf5File::Open(std::move(source));
}

std::vector<std::string> DatasetLines(const Hdf5File& file) {
  std::vector<std::string> lines;
  for (const Hdf5File::Dataset& dataset : file.datasets()) {
    std::vector<float> values(ElementCount(dataset.shape));
    const absl::Status read = file.ReadFloats(dataset, 0, values);
    EXPECT_TRUE(read.ok()) << read;
    lines.push_back(absl::StrCat(dataset.path, " ", ShapeToString(dataset.shape), ": ",
                                 absl::StrJoin(values, " ")));
  }
  return lines;
}

}  // namespace shoal
