#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "common/log/logging.h"
#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/data_file_content.h"
#include "tests/worker/input/pictures/picture_files.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFolderTest : public DataFileTest {
 protected:
  ImageFolderTest() {
    for (const char* folder : {"set/b/deep", "set/a", "set/.hidden"}) {
      std::filesystem::create_directories(Path(folder));
    }
    // Of one grey level each, by which they are known.
    Write("set/b/1.jpeg", PlainJpeg(9, 9, 40));
    Write("set/b/deep/0.JPG", PlainJpeg(9, 9, 50));
    Write("set/a/2.png", EncodePng(std::vector<uint8_t>(5, 20), 5, 1, 1));
    Write("set/a/1.jpg", PlainJpeg(30, 5, 10));
    Write("set/a/notes.txt", "no picture");
    Write("set/.hidden/3.jpg", PlainJpeg(9, 9, 60));
    Write("set/4.jpg", PlainJpeg(9, 9, 70));
    source_.format = "image_folder";
    source_.paths = {Path("set")};
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open() const {
    return OpenDataset(source_, {{.name = "x", .shape = {4, 4, 3}}});
  }
  absl::Status ErrorOfOpening() const { return Open().status(); }

  // "level label..." of an example whose pixels are all equal.
  static std::string Row(const Dataset& dataset, uint64_t index) {
    std::vector<float> pixels(48), label(ElementCount(dataset.label_shape()));
    const absl::Status status = dataset.Read(index, std::vector<FeatureSpan>{pixels}, label);
    if (!status.ok()) return std::string(status.message());
    EXPECT_EQ(pixels, std::vector<float>(48, pixels[0]));
    std::string row = std::to_string(static_cast<int>(pixels[0]));
    for (const float number : label) row += " " + std::to_string(static_cast<int>(number));
    return row;
  }
  std::vector<std::string> Rows() const {
    const auto dataset = Open();
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    std::vector<std::string> rows;
    for (uint64_t i = 0; dataset.ok() && i < (*dataset)->size(); ++i)
      rows.push_back(Row(**dataset, i));
    return rows;
  }

  DataSource source_;
};

TEST_F(ImageFolderTest, ClassesAndFilesAreSorted) {
  EXPECT_THAT(Rows(), ElementsAre("10 0", "20 0", "40 1", "50 1"));
  EXPECT_TRUE((*Open())->IsCostlyToRead());
}

TEST_F(ImageFolderTest, LabelsAreAsTheModeSays) {
  source_.label_mode = "categorical";
  EXPECT_THAT(Rows(), ElementsAre("10 1 0", "20 1 0", "40 0 1", "50 0 1"));
  source_.label_mode = "binary";
  source_.class_names = {"b", "a"};
  EXPECT_THAT(Rows(), ElementsAre("40 0", "50 0", "10 1", "20 1"));
  std::filesystem::create_directory(Path("set/c"));
  source_.class_names = {};
  EXPECT_THAT(ErrorOfOpening(), FailsWith(absl::StatusCode::kInvalidArgument, {Path("set"), "3"}));
}

// As a test set has it, whose classes are those of the training set.
TEST_F(ImageFolderTest, AFolderMayLackClassesButHaveNoOthers) {
  source_.class_names = {"0", "a", "aa", "b"};
  EXPECT_THAT(Rows(), ElementsAre("10 1", "20 1", "40 3", "50 3"));
  source_.label_mode = "categorical";
  EXPECT_THAT(Rows()[2], "40 0 0 0 1");
  source_.class_names = {"aa", "b"};
  EXPECT_THAT(ErrorOfOpening(),
              FailsWith(absl::StatusCode::kInvalidArgument, {Path("set/a") + ": ", ": aa, b. "}));
  // Of predictions nobody asks for the class.
  source_.unlabelled = true;
  EXPECT_EQ((*Open())->size(), 4u);
}

TEST_F(ImageFolderTest, ADamagedPictureFailsByName) {
  const std::string path = Write("set/b/1.jpeg", PlainJpeg(90, 90, 40).substr(0, 700));
  EXPECT_THAT(Rows()[2], AllOf(HasSubstr(path + ": "), HasSubstr("byte 700"),
                               HasSubstr("\"damaged\": \"skip\"")));
  Write("set/b/1.jpeg", "GIF89a");
  EXPECT_THAT(Rows()[2], AllOf(HasSubstr(path), HasSubstr("GIF")));
  std::filesystem::remove(path);
  source_.damaged = "skip";
  const auto dataset = Open();
  std::filesystem::remove(Path("set/a/2.png"));
  EXPECT_THAT(Row(**dataset, 1), HasSubstr("No such file"));  // not damage: it was there
}

// As an input of a dtype of whole numbers takes them.
TEST_F(ImageFolderTest, FractionalPixelsAreRejectedWhereTheInputTakesNone) {
  const std::string path =
      Write("set/b/1.jpeg", EncodePng({10, 20, 30, 40, 51, 60, 70, 80, 90}, 3, 3, 1));
  const Feature whole{"x", {4, 4, 3}, FeatureType::kInteger, 0, 255};
  const auto dataset = OpenDataset(source_, {whole});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Row(**dataset, 2),
              AllOf(HasSubstr(path + ": the input \"x\""), HasSubstr("0 to 255")));
}

TEST_F(ImageFolderTest, DamagedPicturesAreSkippedNamedAndCounted) {
  std::vector<std::string> lines;
  SendLogTo([&](const std::string& message, const LogFields& fields) {
    lines.push_back(message + " " + fields[0].first + "=" + fields[0].second);
  });
  source_.damaged = "skip";
  const std::string first = Write("set/a/2.png", "\x89PNG\r\n\x1a\nxx");
  const std::string second = Write("set/b/deep/0.JPG", "");
  // The next whole one in its place; of the last, the first.
  EXPECT_THAT(Rows(), ElementsAre("10 0", "40 1", "40 1", "10 0"));
  SendLogTo({});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr(first), HasSubstr("skipped=1")),
                                 AllOf(HasSubstr(second), HasSubstr("skipped=2"))));
  for (const char* file : {"set/a/1.jpg", "set/b/1.jpeg"}) Write(file, "");
  EXPECT_THAT(Rows()[0], AllOf(HasSubstr(Path("set/a/1.jpg")), HasSubstr("99")));
}

// Of a file that was read for nothing, too.
TEST_F(ImageFolderTest, KeepsNoLargeFileInMemory) {
  const std::string path = Write("set/a/2.png", "");
  std::filesystem::resize_file(path, 100 << 20);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok());
  const size_t before = mallinfo2().hblkhd;
  EXPECT_THAT(Row(**dataset, 1), AllOf(HasSubstr(path), HasSubstr("byte 0")));
  EXPECT_LE(mallinfo2().hblkhd, before + (8 << 20));
  std::filesystem::resize_file(path, 129 << 20);
  EXPECT_THAT(Row(**dataset, 1), AllOf(HasSubstr(path), HasSubstr("134217728")));
}

TEST_F(ImageFolderTest, KindsThatAreNotReadAreRejectedAtOnce) {
  Write("set/a/jpeg.gif", PlainJpeg(9, 9, 30));
  EXPECT_THAT(Rows(), ElementsAre("10 0", "20 0", "30 0", "40 1", "50 1"));
  const std::string gif = Write("set/a/x.GIF", "GIF89a");
  EXPECT_THAT(ErrorOfOpening(),
              FailsWith(absl::StatusCode::kInvalidArgument, {gif, "\"damaged\": \"skip\""}));
  Write("set/b/x.bmp", "BM");
  EXPECT_THAT(ErrorOfOpening(), FailsWith(absl::StatusCode::kInvalidArgument, {gif, " 2 "}));
  source_.damaged = "skip";
  SendLogTo([](const std::string&, const LogFields&) {});
  EXPECT_THAT(Rows(), ElementsAre("10 0", "20 0", "30 0", "40 1", "40 1", "50 1", "10 0"));
  SendLogTo({});
}

// Not for a worker to try again: the next time it is the same.
TEST_F(ImageFolderTest, LinksInACircleAreBadConfiguration) {
  const auto link_to_itself = [&](const char* name) {
    std::filesystem::remove(Path(name));
    std::filesystem::create_symlink(Path(name), Path(name));
    return Path(name);
  };
  const std::string picture = link_to_itself("set/a/2.png");
  std::vector<float> pixels(48), label(1);
  const absl::Status read = (*Open())->Read(1, std::vector<FeatureSpan>{pixels}, label);
  EXPECT_THAT(read, FailsWith(absl::StatusCode::kInvalidArgument, {picture + ": "}));
  source_.paths = {link_to_itself("circle")};
  EXPECT_THAT(ErrorOfOpening(),
              FailsWith(absl::StatusCode::kInvalidArgument, {Path("circle") + ": "}));
}

TEST_F(ImageFolderTest, AnUnsuitableFolderIsNamed) {
  source_.paths = {Path("missing")};
  EXPECT_THAT(ErrorOfOpening(), FailsWith(absl::StatusCode::kNotFound, {Path("missing")}));
  source_.paths = {Path("set/a")};
  EXPECT_THAT(ErrorOfOpening(), FailsWith(absl::StatusCode::kInvalidArgument, {Path("set/a")}));
  std::filesystem::create_directories(Path("empty/c"));
  source_.paths = {Path("empty")};
  EXPECT_THAT(ErrorOfOpening(),
              FailsWith(absl::StatusCode::kInvalidArgument, {Path("empty"), ".jpg"}));
  source_.paths = {Path("set")};
  EXPECT_THAT(OpenDataset(source_, {{"x", {4, 4, 3}}, {"y", {2}}}).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {Path("set"), "2"}));
}

}  // namespace
}  // namespace shoal
