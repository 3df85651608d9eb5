#include "common/run/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HistoryTest : public ::testing::Test {
 protected:
  History Read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return ReadWritten();
  }
  History ReadWritten() const {
    const absl::StatusOr<History> history = ReadHistory(path_);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.value_or(History());
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "history.csv";
};

std::map<uint64_t, proto::EpochResult> TwoEpochs() {
  std::map<uint64_t, proto::EpochResult> epochs;
  const auto set = [](const char* name, double value, proto::MetricValue* metric) {
    metric->set_name(name);
    metric->set_value(value);
  };
  proto::EpochResult& first = epochs[0];
  first.set_loss(1 / 3.0);
  set("accuracy", 2 / 3.0, first.add_metrics());
  set("mse", 0.0416667, first.add_metrics());
  first.set_test_loss(0.75);
  set("accuracy", 0.5, first.add_test_metrics());
  set("mse", 0.0625, first.add_test_metrics());
  first.set_seconds(1.5);
  first.set_examples_per_second(2);
  first.set_examples(3);
  proto::EpochResult& second = epochs[1];
  second.set_epoch(1);
  second.set_loss(0.0123456789);
  set("accuracy", 0.987, second.add_metrics());
  set("mse", 1e-7, second.add_metrics());
  second.set_seconds(1);
  second.set_examples_per_second(1000);
  return epochs;
}

std::string FormatHistory(const std::vector<std::string>& metric_names,
                          const std::map<uint64_t, proto::EpochResult>& epochs) {
  std::string text = HistoryHeader(metric_names);
  for (const auto& [number, epoch] : epochs) text += FormatHistoryLine(metric_names, epoch).text;
  return text;
}

constexpr char kTwoEpochs[] =
    "epoch,loss,accuracy,mse,val_loss,val_accuracy,val_mse,seconds,examples_per_second,"
    "examples\n"
    "1,0.333333,0.666667,0.0416667,0.75,0.5,0.0625,1.500,2.0,3\n"
    "2,0.0123457,0.987,1e-07,,,,1.000,1000.0,0\n";

TEST(FormatHistoryTest, NanHasNoSign) {
  proto::EpochResult epoch;
  epoch.set_loss(-NAN);
  EXPECT_THAT(FormatHistory({}, {{0, epoch}}), HasSubstr("\n1,nan,"));
}

TEST(FormatHistoryTest, HasALineForEachEpoch) {
  EXPECT_EQ(FormatHistory({"accuracy", "mse"}, TwoEpochs()), kTwoEpochs);
  EXPECT_EQ(FormatHistory({}, {}), "epoch,loss,val_loss,seconds,examples_per_second,examples\n");
}

TEST_F(HistoryTest, ReadsWhatWasWritten) {
  const History history = Read(kTwoEpochs);
  EXPECT_TRUE(history.damage.ok()) << history.damage;
  ASSERT_THAT(history.epochs, SizeIs(2));
  const proto::EpochResult& first = history.epochs[0];
  EXPECT_EQ(first.examples(), 3u);
  EXPECT_EQ(first.epoch(), 0u);
  EXPECT_EQ(first.metrics(1).name(), "mse");
  EXPECT_EQ(first.test_loss(), 0.75);
  EXPECT_EQ(first.test_metrics(0).name(), "accuracy");
  EXPECT_EQ(first.test_metrics(0).value(), 0.5);
  EXPECT_EQ(first.seconds(), 1.5);
  EXPECT_FALSE(history.epochs[1].has_test_loss());
  EXPECT_THAT(history.epochs[1].test_metrics(), IsEmpty());
  EXPECT_EQ(FormatHistory({"accuracy", "mse"}, {{0, history.epochs[0]}, {1, history.epochs[1]}}),
            kTwoEpochs);
}

TEST_F(HistoryTest, ColumnsAreFoundByName) {
  const History history = Read("epoch,val_loss,loss\n1,0.5,0.25\n");
  ASSERT_THAT(history.epochs, SizeIs(1));
  EXPECT_EQ(history.epochs[0].loss(), 0.25);
  EXPECT_EQ(history.epochs[0].test_loss(), 0.5);
}

TEST_F(HistoryTest, AFileThatIsNotThereIsEmpty) {
  const History history = ReadWritten();
  EXPECT_THAT(history.epochs, IsEmpty());
  EXPECT_TRUE(history.damage.ok()) << history.damage;
}

TEST_F(HistoryTest, AFileThatCannotBeReadIsAnError) {
  const absl::Status status = ReadHistory(directory_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(directory_.path()));
}

TEST_F(HistoryTest, ALossThatIsNoNumberIsKept) {
  const History history = Read("epoch,loss\n1,nan\n");
  ASSERT_THAT(history.epochs, SizeIs(1));
  EXPECT_TRUE(std::isnan(history.epochs[0].loss()));
}

TEST_F(HistoryTest, ProblemsNameFileLineAndColumn) {
  const History history = Read("epoch,loss\n1,0.5\n2,much\n3,0.25\n4\n5,\n");
  EXPECT_EQ(history.damage.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      history.damage.message(),
      path_ + ":3: column \"loss\": \"much\" is not a number; the line is left out, and 2 more");
  ASSERT_THAT(history.epochs, SizeIs(2));
  EXPECT_EQ(history.epochs[1].epoch(), 2u);
  EXPECT_THAT(std::string(Read("epoch,loss\n1\n").damage.message()),
              EndsWith(":2: has 1 of the header's 2 fields; the line is left out"));
}

TEST_F(HistoryTest, DamagedLinesAreLeftOut) {
  const std::string header =
      "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n";
  for (const char* line : {
           "1,0.5,0.5",                // cut off
           "1,0.5,0.5,,,1.0,2.0,3.0",  // a field too many
           "nan,0.5,0.5,,,1.0,2.0",    // no epoch
           "inf,0.5,0.5,,,1.0,2.0",    //
           "1e300,0.5,0.5,,,1.0,2.0",  //
           "0,0.5,0.5,,,1.0,2.0",      // before the first
           "-1,0.5,0.5,,,1.0,2.0",     //
           "1.5,0.5,0.5,,,1.0,2.0",    // between two
           "1,,0.5,,,1.0,2.0",         // only a test result may be missing
           "1,0.5,0.5,,,,2.0",         //
           "1,zero,0.5,,,1.0,2.0",     //
           "\x01\xff\x7f",             //
           "3,0.5,0.5,0.1,,1.0,2.0",   // half a test result
           "3,0.5,0.5,0.1,",           // cut off at the end
       }) {
    const History history = Read(header + line + "\n2,0.25,0.5,0.125,0.75,1.0,2.0\n");
    ASSERT_THAT(history.epochs, SizeIs(1)) << line;
    EXPECT_EQ(history.epochs[0].epoch(), 1u) << line;
    EXPECT_THAT(history.damage.message(), HasSubstr(":2: ")) << line;
  }
  // No header, or another file.
  EXPECT_THAT(Read("1,0.5\n2,0.25\n").epochs, IsEmpty());
  EXPECT_THAT(Read("loss\n0.5\n").epochs, IsEmpty());
}

TEST_F(HistoryTest, WhereverTheLastLineIsCutOffTheOthersAreRead) {
  const std::string text = kTwoEpochs;
  const size_t last = text.find("\n2,") + 1;
  for (size_t size = last; size < text.size(); ++size) {
    const History history = Read(text.substr(0, size));
    ASSERT_THAT(history.epochs, SizeIs(1)) << text.substr(0, size);
    EXPECT_THAT(std::string(history.damage.message()),
                size == last ? "" : path_ + ":3: is cut off; the line is left out");
  }
}

// What is written into a file that exists ends after `room` bytes, as when the power goes then.
class TornFileSystem : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    auto file = PassingFileSystem::Open(path, mode);
    if (!file.ok() || mode != Mode::kWrite) return file;
    return std::make_unique<TornFile>(*std::move(file), room);
  }
  uint64_t room = 0;

 private:
  class TornFile : public File {
   public:
    TornFile(std::unique_ptr<File> file, uint64_t room)
        : File(file->path()), file_(std::move(file)), room_(room) {}
    absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
    absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
      return file_->ReadAt(offset, out, size);
    }
    absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
      EXPECT_TRUE(file_->WriteAt(offset, data, std::min(size, room_)).ok());
      return size <= room_ ? absl::OkStatus() : absl::DataLossError("the power is gone");
    }
    absl::Status Allocate(uint64_t size) const override { return file_->Allocate(size); }
    absl::Status Sync() const override { return file_->Sync(); }

   private:
    const std::unique_ptr<File> file_;
    const uint64_t room_;
  };
};

class HistoryFileTest : public HistoryTest {
 protected:
  static HistoryLine Line(uint64_t epoch, const std::string& text) { return {epoch, text + "\n"}; }
  // Another one when the file was replaced.
  ino_t Inode() const {
    struct stat info;
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    return info.st_ino;
  }
  HistoryFile file_{path_, "epoch,loss\n"};
};

// So that an epoch costs the same after 200,000 others.
TEST_F(HistoryFileTest, EarlierLinesStayUntouched) {
  ASSERT_TRUE(file_.Write(0, {Line(0, "1,a"), Line(1, "2,b")}).ok());
  const std::ifstream held(path_);  // so that the inode is not used again
  const ino_t inode = Inode();
  ASSERT_TRUE(file_.Write(2, {Line(2, "3,c")}).ok());
  EXPECT_EQ(FileContent(path_), "epoch,loss\n1,a\n2,b\n3,c\n");
  ASSERT_TRUE(file_.Write(1, {Line(1, "2,bbb"), Line(2, "3,c")}).ok());
  EXPECT_EQ(FileContent(path_), "epoch,loss\n1,a\n2,bbb\n3,c\n");
  ASSERT_TRUE(file_.Write(1, {Line(1, "2,d")}).ok());
  EXPECT_EQ(FileContent(path_), "epoch,loss\n1,a\n2,d\n");
  ASSERT_TRUE(file_.Write(2, {}).ok());
  EXPECT_EQ(Inode(), inode);
  ASSERT_TRUE(file_.Write(0, {Line(3, "4,e")}).ok());
  EXPECT_NE(Inode(), inode);
  EXPECT_EQ(FileContent(path_), "epoch,loss\n4,e\n");
}

TEST_F(HistoryFileTest, WhereverWritingEndsNoLineIsPartOldPartNew) {
  TornFileSystem files;
  HistoryFile file(path_, "epoch,loss\n", &files);
  const std::string grown = "2,0.3125", shorter = "2,3";
  for (const std::string& line : {grown, shorter, std::string("2,0.75")}) {
    for (files.room = 0; files.room <= line.size(); ++files.room) {
      ASSERT_TRUE(file.Write(0, {Line(0, "1,0.5"), Line(1, "2,0.25")}).ok());
      EXPECT_FALSE(file.Write(1, {Line(1, line)}).ok());
      for (const proto::EpochResult& epoch : ReadHistory(path_).value_or(History()).epochs) {
        EXPECT_EQ(epoch.loss(), epoch.epoch() == 0 ? 0.5 : 0.25) << FileContent(path_);
      }
    }
  }
}

TEST_F(HistoryFileTest, AFileThatSomebodyElseChangedIsReplaced) {
  EXPECT_FALSE(file_.Write(1, {Line(1, "2,b")}).ok()) << "the first has to be whole";
  ASSERT_TRUE(file_.Write(0, {Line(0, "1,a")}).ok());
  std::ofstream(path_, std::ios::app) << "a note\n";
  EXPECT_THAT(std::string(file_.Write(1, {Line(1, "2,b")}).message()), HasSubstr(path_));
  EXPECT_FALSE(file_.Write(1, {Line(1, "2,b")}).ok());
  ASSERT_TRUE(file_.Write(0, {Line(0, "1,a"), Line(1, "2,b")}).ok());
  std::filesystem::remove(path_);
  EXPECT_FALSE(file_.Write(2, {Line(2, "3,c")}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace shoal
