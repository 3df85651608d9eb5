#include "worker/input/files/data_roots.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/worker/input/formats/data_file_content.h"
#include "tests/worker/input/pictures/picture_files.h"
#include "worker/input/dataset/dataset.h"
#include "worker/input/files/file_content.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// "in" is the root. "out" has the secrets, and "in/link" leads to it.
class DataRootsTest : public DataFileTest {
 protected:
  DataRootsTest() {
    fs::create_directories(Path("in"));
    fs::create_directories(Path("out"));
    fs::create_directories(Path("inner"));
    Write("in/a.csv", "x,y\n1,2\n");
    Write("out/a.csv", "x,y\n1,2\n");
    Write("inner/a.csv", "x,y\n1,2\n");
    fs::create_directory_symlink(Path("out"), Path("in/link"));
    fs::create_symlink(Path("out/a.csv"), Path("in/b.csv"));
    fs::create_directory_symlink(Path("in"), Path("alias"));
    roots_ = *ResolveDataRoots({Path("alias")});
  }

  absl::StatusCode Open(const std::string& name) const {
    return OpenBelowRoots(Path(name), roots_).status().code();
  }
  absl::Status ErrorOf(const std::string& format, const std::string& name) const {
    DataSource source{.labels = "y", .format = format, .paths = {Path(name)}, .roots = roots_};
    std::vector<Feature> inputs = {{.name = "x", .shape = {1}}};
    if (format == "image_folder" || format == "pictures") inputs[0].shape = {4, 4, 3};
    if (format == "npz" || format == "tfrecord") source.features = {{.from = {"x"}}};
    if (format == "arrays") {
      source.images = source.paths[0];
      source.labels = source.paths[0];
      source.paths.clear();
    }
    const auto dataset = OpenDataset(source, inputs);
    if (!dataset.ok()) return dataset.status();
    std::vector<float> values(ElementCount(inputs[0].shape));
    return (*dataset)->Read(0, std::vector<FeatureSpan>{values}, {});
  }

  std::vector<std::string> roots_;
};

TEST_F(DataRootsTest, FilesBelowARootAreRead) {
  EXPECT_EQ(Open("in/a.csv"), absl::StatusCode::kOk);
  EXPECT_EQ(Open("alias/a.csv"), absl::StatusCode::kOk);
  fs::create_symlink(Path("in/a.csv"), Path("out/back.csv"));
  EXPECT_EQ(Open("out/back.csv"), absl::StatusCode::kOk);
  EXPECT_EQ(Open("in/missing.csv"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Open("alias/missing/too.csv"), absl::StatusCode::kNotFound);
  roots_.push_back(Path("out"));
  EXPECT_EQ(Open("out/a.csv"), absl::StatusCode::kOk);
}

TEST_F(DataRootsTest, OtherFilesAreRefusedWhetherTheyExistOrNot) {
  for (const char* name : {"out/a.csv", "in/b.csv", "in/link/a.csv", "in/../out/a.csv",
                           "inner/a.csv", "out/missing.csv", "missing/a.csv"}) {
    EXPECT_EQ(Open(name), absl::StatusCode::kFailedPrecondition) << name;
  }
  const std::string text(CheckBelowRoots(Path("out/a.csv"), roots_).message());
  EXPECT_NE(text.find(Path("out/a.csv")), std::string::npos) << text;
  EXPECT_NE(text.find(roots_[0]), std::string::npos) << text;
}

TEST_F(DataRootsTest, WithoutRootsEveryFileIsRead) {
  roots_.clear();
  EXPECT_EQ(Open("out/a.csv"), absl::StatusCode::kOk);
  EXPECT_TRUE(CheckBelowRoots(Path("out/missing.csv"), roots_).ok());
}

TEST_F(DataRootsTest, EveryFormatAsks) {
  fs::create_directories(Path("out/set/a"));
  Write("out/set/a/1.jpg", PlainJpeg(4, 4, 10));
  for (const char* format : {"arrays", "csv", "npz", "tfrecord", "cifar10"}) {
    for (const char* name : {"out/a.csv", "in/b.csv", "out/missing.csv"}) {
      EXPECT_EQ(ErrorOf(format, name).code(), absl::StatusCode::kFailedPrecondition)
          << format << " " << name;
    }
  }
  for (const char* name : {"out/set", "in/link/set", "out/missing"}) {
    EXPECT_EQ(ErrorOf("image_folder", name).code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(ErrorOf("pictures", name).code(), absl::StatusCode::kFailedPrecondition) << name;
  }
  EXPECT_TRUE(ErrorOf("csv", "in/a.csv").ok());
}

TEST_F(DataRootsTest, PicturesAndClassesThatAreLinksAreFollowedOnlyBelowTheRoot) {
  fs::create_directories(Path("in/set/a"));
  fs::create_directories(Path("out/b"));
  Write("out/1.jpg", PlainJpeg(4, 4, 10));
  Write("out/b/2.jpg", PlainJpeg(4, 4, 10));
  fs::create_symlink(Path("out/1.jpg"), Path("in/set/a/1.jpg"));
  EXPECT_EQ(ErrorOf("image_folder", "in/set").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf("pictures", "in/set").code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(Path("in/set/a/1.jpg"));
  Write("in/set/a/0.jpg", PlainJpeg(4, 4, 10));
  EXPECT_TRUE(ErrorOf("image_folder", "in/set").ok());
  fs::create_directory_symlink(Path("out/b"), Path("in/set/b"));
  EXPECT_EQ(ErrorOf("image_folder", "in/set").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DataRootsTest, PatternsListNothingElsewhere) {
  const auto expand = [&](const std::string& pattern) {
    return ExpandPaths({.paths = {Path(pattern)}, .roots = roots_}).status();
  };
  for (const char* pattern : {"out/*.csv", "out/x*", "in/link/*.csv", "i*/a.csv"})
    EXPECT_EQ(expand(pattern).code(), absl::StatusCode::kFailedPrecondition) << pattern;
  EXPECT_EQ(expand("in/x*").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(expand("in/a*").ok());
  // "in/b.csv" and "in/link/a.csv" are links. The error names what the job names.
  for (const char* pattern : {"in/*.csv", "in/*/a.csv"}) {
    const absl::Status status = expand(pattern);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << pattern;
    EXPECT_TRUE(std::string(status.message()).starts_with(Path(pattern))) << status;
  }
}

TEST_F(DataRootsTest, ARootIsADirectory) {
  EXPECT_EQ(ResolveDataRoots({Path("in/a.csv")}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ResolveDataRoots({Path("none")}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*ResolveDataRoots({"/"}), std::vector<std::string>{"/"});
  EXPECT_TRUE(CheckBelowRoots(Path("out/a.csv"), {"/"}).ok());
}

}  // namespace
}  // namespace shoal
