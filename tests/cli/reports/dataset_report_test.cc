#include "cli/reports/dataset_report.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "cli/trained_model/data_source_guess.h"
#include "tests/worker/input/formats/data_file_content.h"
#include "tests/worker/input/formats/record_content.h"
#include "tests/worker/input/pictures/picture_files.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DatasetReportTest : public DataFileTest {
 protected:
  // What is said of `path`, with how much of it is damaged.
  std::string Inspect(const std::string& path) {
    const auto source = GuessDataSource(path);
    if (!source.ok()) return source.status().ToString();
    const auto text = InspectData(*source, &damaged_);
    return text.ok() ? *text : text.status().ToString();
  }

  uint64_t damaged_ = 0;
};

TEST_F(DatasetReportTest, AFolderOfPicturesAndWhatIsDamaged) {
  for (const char* folder : {"set/a", "set/b"}) std::filesystem::create_directories(Path(folder));
  Write("set/a/1.jpg", PlainJpeg(30, 5, 10));
  Write("set/a/2.png", EncodePng(TestPixels(9, 9, 3), 9, 9, 3));
  EXPECT_THAT(Inspect(Path("set")),
              AllOf(HasSubstr("format: image_folder\n2 pictures, 2 classes\n"),
                    HasSubstr("from 9 x 9 to 30 x 5\n"), HasSubstr("class 0, a: 2\n"),
                    HasSubstr("class 1, b: 0\n"), HasSubstr("damaged: 0\n")));
  EXPECT_EQ(damaged_, 0u);
  const std::string bad = Write("set/b/bad.jpg", PlainJpeg(90, 90, 3).substr(0, 500));
  Write("set/b/empty.png", "");
  EXPECT_THAT(Inspect(Path("set")),
              AllOf(HasSubstr("4 pictures"), HasSubstr("damaged: 2\n"),
                    HasSubstr("  " + bad + ": ends early, at byte 500"), HasSubstr("empty.png"),
                    HasSubstr("with \"damaged\": \"skip\"")));
  EXPECT_EQ(damaged_, 2u);
}

// What cannot be opened ends a job that skips what is damaged.
TEST_F(DatasetReportTest, SkippingIsAdvisedForWhatItLeavesOut) {
  std::filesystem::create_directories(Path("set/a"));
  ASSERT_EQ(mkfifo(Path("set/a/pipe.jpg").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", Path("set/a/link.jpg"));
  EXPECT_THAT(Inspect(Path("set")), AllOf(HasSubstr("damaged: 2\n"), Not(HasSubstr("skip")),
                                          Not(HasSubstr("did you mean"))));
  Write("set/a/empty.png", "");
  EXPECT_THAT(Inspect(Path("set")),
              AllOf(HasSubstr("damaged: 3\n"),
                    HasSubstr("A job leaves 1 of them out with \"damaged\": \"skip\" in its data; "
                              "the others end it.\n")));
}

TEST_F(DatasetReportTest, SkippingIsNoAdviceWhereRecordsCannotBeToldApart) {
  const std::string junk = TfRecordOf("junk");
  EXPECT_THAT(Inspect(Write("a.tfrecord", junk + junk)), HasSubstr("A job leaves such examples"));
  EXPECT_THAT(Inspect(Write("b.tfrecord", junk + junk.substr(0, 18))),
              AllOf(HasSubstr("damaged: 2\n"), Not(HasSubstr("skip"))));
}

TEST_F(DatasetReportTest, Records) {
  // {"x": FloatList([1]), "y": Int64List([2])}
  const std::string example =
      std::string("\x0a\x1b\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f", 17) +
      std::string("\x0a\x0a\x0a\x01y\x12\x05\x1a\x03\x0a\x01\x02", 12);
  std::string damaged = TfRecordOf(example);
  damaged[20] ^= 1;
  const std::string path = Write("a.tfrecord", TfRecordOf(example) + damaged + TfRecordOf("junk"));
  EXPECT_THAT(Inspect(path),
              AllOf(HasSubstr("3 records in 1 file"), HasSubstr("key x: 1 float in 1\n"),
                    HasSubstr("key y: 1 int64 in 1\n"), HasSubstr("damaged: 2\n"),
                    HasSubstr("at byte 45: the checksum of its data"),
                    HasSubstr("at byte 90: is no tf.train.Example")));
}

TEST_F(DatasetReportTest, RowsOfNumbers) {
  const std::string path = Write("a.csv", "x,name,y\n1,anna,2\n-3,otto,4e2\n5,6\n");
  EXPECT_THAT(Inspect(path),
              AllOf(HasSubstr("3 rows of 3 columns\n"), HasSubstr("x: from -3 to 1"),
                    HasSubstr("name: no numbers\n"), HasSubstr("y: from 2 to 400"),
                    HasSubstr("damaged: 1\n"), HasSubstr(path + ": line 4: 2 fields; expected 3")));
}

TEST_F(DatasetReportTest, Arrays) {
  const std::string path = Write("a.idx", IdxHeader(0x08, {3, 2}) + "abcdef");
  EXPECT_THAT(Inspect(path), HasSubstr(path + ": (3, 2) u8\n"));
  EXPECT_THAT(Inspect(Write("b.bin", std::string(3073, '\x02'))),
              AllOf(HasSubstr("1 pictures of 32 x 32, 10 classes"), HasSubstr("class 2: 1\n"),
                    Not(HasSubstr("class 10"))));
  Inspect(Write("c.npy", "junk"));
  EXPECT_EQ(damaged_, 1u);
}

TEST_F(DatasetReportTest, AMissingPathIsNotDamaged) {
  for (const char* name : {"nope", "nope.csv", "nope.tfrecord"}) {
    EXPECT_THAT(Inspect(Path(name)), AllOf(HasSubstr("NOT_FOUND"), HasSubstr(Path(name)),
                                           HasSubstr("No such file or directory")));
  }
  EXPECT_EQ(damaged_, 0u);
}

TEST_F(DatasetReportTest, APictureThatIsMissingIsNoPicture) {
  Write("cat.jpg", PlainJpeg(3, 3, 3));
  EXPECT_THAT(Inspect(Path("cta.jpg")),
              AllOf(HasSubstr("No such file"), HasSubstr("did you mean \"" + Path("cat.jpg"))));
}

TEST_F(DatasetReportTest, AFileOfNoFormatIsNotCalledADamagedArray) {
  for (const char* name : {"notes.txt", "moving.gif"}) {
    EXPECT_THAT(Inspect(Write(name, "GIF89a of a cat")),
                AllOf(HasSubstr(Path(name) + ": "), HasSubstr("\"GIF89a"),
                      HasSubstr("(.jpg, .jpeg, .png)")));
  }
  EXPECT_EQ(damaged_, 0u);
}

TEST_F(DatasetReportTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Inspect(Path("pipe")), HasSubstr("not a regular file"));
}

TEST_F(DatasetReportTest, APatternStandsForFiles) {
  for (const char* name : {"a-1.tfrecord", "a-2.tfrecord"}) Write(name, "");
  EXPECT_THAT(Inspect(Path("a-*.tfrecord")), HasSubstr("in 2 files"));
}

}  // namespace
}  // namespace shoal
