#include "common/checkpoint/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointStoreTest : public testing::Test {
 protected:
  // Cut steps of what is listed, newest first.
  std::vector<uint64_t> Steps() {
    std::vector<uint64_t> steps;
    const auto listed = store_.List(nullptr);
    EXPECT_TRUE(listed.ok()) << listed.status();
    if (!listed.ok()) return steps;
    for (const StoredCheckpoint& stored : *listed) {
      steps.push_back(stored.manifest.cut_step);
    }
    return steps;
  }
  std::string MakeLaidOutDirectory(uint64_t cut_step) {
    const auto directory = store_.CreateDirectory(cut_step, 1);
    EXPECT_TRUE(directory.ok()) << directory.status();
    EXPECT_TRUE(CreateCheckpointFiles(layout_, *directory).ok());
    return *directory;
  }
  absl::Status CommitParts(const std::string& directory, const std::vector<WrittenPart>& parts) {
    return store_.Commit(directory, layout_, parts, SmallTexts(), SmallManifest(1, 10)).status();
  }
  // A checkpoint in which the last value of `tensor` is `value`.
  StoredCheckpoint WriteNotFinite(uint64_t timeline, uint64_t cut_step, const std::string& tensor,
                                  float value) {
    const std::string directory = *store_.CreateDirectory(cut_step, timeline);
    EXPECT_TRUE(CreateCheckpointFiles(layout_, directory).ok());
    CheckpointWriter writer(&layout_, directory);
    for (const auto& [name, place] : layout_.places) {
      std::vector<float> values(place.entry.size / sizeof(float), 1);
      if (name == tensor) values.back() = value;
      EXPECT_TRUE(writer.Write(name, 0, values.data(), place.entry.size).ok());
    }
    auto stored = store_.Commit(directory, layout_, *writer.Finish(), SmallTexts(),
                                SmallManifest(timeline, cut_step));
    EXPECT_TRUE(stored.ok()) << stored.status();
    return *std::move(stored);
  }
  const TemporaryDirectory run_;
  const std::string root_ = run_.path() + "/deep/checkpoints";
  const CheckpointLayout layout_ = SmallLayout();
  CheckpointStore store_{root_ + "/"};
};

TEST_F(CheckpointStoreTest, NothingThereIsNoError) {
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_FALSE(store_.NewestVerified({}, nullptr)->has_value());
  EXPECT_TRUE(store_.RemoveOld(1).ok());
}

TEST_F(CheckpointStoreTest, PartsOfSeveralPsAreReadBack) {
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 3, 500);
  EXPECT_EQ(stored.directory, root_ + "/step-000000000500-0-00000003");
  EXPECT_THAT(
      NamesIn(stored.directory),
      ElementsAre("job.json", "manifest.json", "model-00001-of-00002.safetensors",
                  "model-00002-of-00002.safetensors", "model.json", "model.safetensors.index.json",
                  "optimizer-00001-of-00002.safetensors", "optimizer-00002-of-00002.safetensors"));
  ASSERT_TRUE(store_.Verify(stored).ok());
  EXPECT_EQ(FileContent(stored.directory + "/job.json"), SmallTexts().at("job.json"));

  const auto reader = CheckpointReader::Open(stored.directory);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->manifest().timeline, 3u);
  EXPECT_EQ((*reader)->variables().size(), 4u);
  EXPECT_EQ((*reader)->variables()[1].name, "dense/bias");
  EXPECT_EQ(layout_.places.size(), 4u + 6) << "with the slots";
  for (const auto& [name, place] : layout_.places) {
    const uint64_t count = place.entry.size / 4;
    for (uint64_t i = 0; i < count; ++i) {
      float value = 0;
      ASSERT_TRUE((*reader)->Read(name, place.entry.shape, 4 * i, &value, 4).ok());
      ASSERT_EQ(value, SmallValue(name, i, 500)) << name << " " << i;
    }
  }
}

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(files, std::filesystem::directory_iterator());
}

// There may be one for each GiB of the model and of each slot.
TEST_F(CheckpointStoreTest, ReaderKeepsNoFileOpen) {
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 3, 500);
  const size_t before = OpenFiles();
  const auto reader = CheckpointReader::Open(stored.directory);
  ASSERT_TRUE(reader.ok()) << reader.status();
  float value = 0;
  EXPECT_TRUE((*reader)->Read("scale", {}, 0, &value, 4).ok());
  EXPECT_EQ(OpenFiles(), before);
}

TEST_F(CheckpointStoreTest, ReaderRejectsWhatTheModelDoesNotHave) {
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 3, 500);
  const auto reader = CheckpointReader::Open(stored.directory);
  ASSERT_TRUE(reader.ok()) << reader.status();
  float value = 0;
  const absl::Status unknown = (*reader)->Read("dense/kernl", {5, 3}, 0, &value, 4);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("\"dense/kernel\""));
  const absl::Status shape = (*reader)->Read("dense/kernel", {3, 5}, 0, &value, 4);
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()), HasSubstr("(5, 3)"));
  EXPECT_EQ((*reader)->Read("scale", {}, 4, &value, 4).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(CheckpointStoreTest, NewestIsOfTheNewestTimeline) {
  WriteSmallCheckpoint(&store_, 1, 10);
  WriteSmallCheckpoint(&store_, 1, 90);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, 2, 30);
  EXPECT_THAT(Steps(), ElementsAre(30, 90, 10));
  EXPECT_EQ((*store_.NewestVerified({}, nullptr))->directory, newest.directory);
  std::vector<std::string> problems;
  const auto second =
      store_.NewestVerified({{newest.directory, absl::DataLossError("a flipped bit")}}, &problems);
  EXPECT_EQ((*second)->manifest.cut_step, 90u);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], AllOf(HasSubstr(newest.directory), HasSubstr("a flipped bit")));
}

TEST_F(CheckpointStoreTest, OneThatWasOnlyNotReadIsNotCalledDamaged) {
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 1, 10);
  for (const absl::Status& why :
       {absl::UnknownError("EIO"), absl::NotFoundError("ENOENT"), absl::DataLossError("crc32c")}) {
    std::vector<std::string> problems;
    ASSERT_FALSE(store_.NewestVerified({{stored.directory, why}}, &problems)->has_value());
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_THAT(problems[0],
                AllOf(HasSubstr(stored.directory), HasSubstr(std::string(why.message()))));
    EXPECT_EQ(problems[0].find("damaged") != std::string::npos, absl::IsDataLoss(why)) << why;
  }
}

// As where cuts are tried again under new terms.
TEST_F(CheckpointStoreTest, OfOneStepTheNewestIsThatOfTheLastTerm) {
  std::vector<StoredCheckpoint> written;
  for (const uint32_t number : {2, 9, 10}) {
    written.push_back(WriteSmallCheckpoint(&store_, 2, 30));
    const std::string directory =
        absl::StrCat(root_, "/step-000000000030-", TermText(MakeTerm(number, 0xbadcafe)));
    std::filesystem::rename(written.back().directory, directory);
    written.back().directory = directory;
  }
  EXPECT_EQ((*store_.NewestVerified({}, nullptr))->directory, written[2].directory);
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_FALSE(std::filesystem::exists(written[0].directory));
  EXPECT_TRUE(std::filesystem::exists(written[2].directory));
}

TEST_F(CheckpointStoreTest, ACheckpointOfANewerShoalIsNotSkipped) {
  WriteSmallCheckpoint(&store_, 1, 10);
  StoredCheckpoint newer = WriteSmallCheckpoint(&store_, 1, 20);
  newer.manifest.format_version = 7;
  WriteAll(newer.directory + "/" + kManifestName, newer.manifest.ToText());
  const absl::Status status = store_.NewestVerified({}, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(newer.directory));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" version 7"));
}

TEST_F(CheckpointStoreTest, DirectoriesAreNobodyElses) {
  const uint64_t term = MakeTerm(3, 0xbadcafe);
  EXPECT_EQ(*store_.CreateDirectory(7, term), root_ + "/step-000000000007-3-0badcafe");
  EXPECT_EQ(*CheckpointStore(root_).CreateDirectory(7, term),
            root_ + "/step-000000000007-3-0badcafe-2");
  EXPECT_EQ(*store_.CreateDirectory(7, term), root_ + "/step-000000000007-3-0badcafe-3");
  EXPECT_EQ(*store_.CreateDirectory(7, term + 1), root_ + "/step-000000000007-3-0badcaff");
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(CheckpointStoreTest, OtherThingsInTheDirectoryAreLeftAlone) {
  WriteSmallCheckpoint(&store_, 1, 10);
  std::filesystem::create_directory(root_ + "/notes");
  WriteAll(root_ + "/step-by-step.txt", "hello");
  EXPECT_THAT(Steps(), ElementsAre(10));
  WriteSmallCheckpoint(&store_, 1, 20);
  WriteSmallCheckpoint(&store_, 1, 30);
  ASSERT_TRUE(store_.RemoveOld(1).ok());
  EXPECT_THAT(NamesIn(root_), ElementsAre("notes", "step-000000000020-0-00000001",
                                          "step-000000000030-0-00000001", "step-by-step.txt"));
}

TEST_F(CheckpointStoreTest, CommitFindsWhatNoPsWrote) {
  const std::string directory = MakeLaidOutDirectory(10);
  const absl::Status status = CommitParts(directory, WriteElements(layout_, directory, 0, 3, 10));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory));
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(CheckpointStoreTest, CommitFindsRowsWrittenTwice) {
  const std::string directory = MakeLaidOutDirectory(10);
  std::vector<WrittenPart> parts = WriteElements(layout_, directory, 0, 3, 10);
  const auto others = WriteElements(layout_, directory, 2, 100, 10);
  parts.insert(parts.end(), others.begin(), others.end());
  const absl::Status status = CommitParts(directory, parts);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory));
}

TEST_F(CheckpointStoreTest, CommitFindsWhatIsNotAsWritten) {
  const std::string directory = MakeLaidOutDirectory(10);
  const std::vector<WrittenPart> parts = WriteElements(layout_, directory, 0, 100, 10);
  for (const CheckpointLayout::File& file : layout_.files) {
    const std::string path = directory + "/" + file.name;
    const std::string whole = FileContent(path);
    for (size_t i = 0; i < whole.size(); i += 11) {
      std::string damaged = whole;
      damaged[i] ^= 4;
      WriteAll(path, damaged);
      const absl::Status status = CommitParts(directory, parts);
      ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << path << " " << i << " " << status;
      ASSERT_THAT(std::string(status.message()), HasSubstr(path));
    }
    WriteAll(path, whole);
  }
  EXPECT_TRUE(CommitParts(directory, parts).ok());
}

TEST_F(CheckpointStoreTest, CommitSurvivesNonsenseFromAPs) {
  const std::string directory = MakeLaidOutDirectory(10);
  const std::vector<WrittenPart> parts = WriteElements(layout_, directory, 0, 100, 10);
  const uint64_t begin = parts[0].offset_bytes;
  for (const WrittenPart& nonsense :
       {WrittenPart{parts[0].file, UINT64_MAX, UINT64_MAX, 0}, WrittenPart{parts[0].file, 0, 8, 0},
        WrittenPart{parts[0].file, begin, UINT64_MAX, 0}, WrittenPart{"../x", 0, 8, 0},
        WrittenPart{"manifest.json", 0, 8, 0}, WrittenPart{"", 0, 0, 0}}) {
    std::vector<WrittenPart> bad = parts;
    bad[0] = nonsense;
    const absl::Status status = CommitParts(directory, bad);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), absl::StatusCode::kAlreadyExists) << status;
  }
  EXPECT_THAT(Steps(), IsEmpty());
  std::vector<WrittenPart> with_empty = parts;
  with_empty.push_back({parts[0].file, begin + 4, 0, 0});
  EXPECT_TRUE(CommitParts(directory, with_empty).ok());
}

TEST_F(CheckpointStoreTest, CommitChecksTheJob) {
  const std::string directory = MakeLaidOutDirectory(10);
  const auto parts = WriteElements(layout_, directory, 0, 100, 10);
  const auto status =
      store_.Commit(directory, layout_, parts, {{"job.json", "another"}}, SmallManifest(1, 10));
  EXPECT_EQ(status.status().code(), absl::StatusCode::kInvalidArgument) << status.status();
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(CheckpointStoreTest, DiscardKeepsACheckpoint) {
  const std::string unfinished = MakeLaidOutDirectory(20);
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 1, 10);
  store_.Discard(unfinished);
  store_.Discard(stored.directory);
  store_.Discard(root_ + "/step-never-there");
  EXPECT_THAT(NamesIn(root_), ElementsAre("step-000000000010-0-00000001"));
}

TEST_F(CheckpointStoreTest, RemoveOldKeepsTwoAtLeast) {
  for (const uint64_t step : {10, 20, 30, 40}) WriteSmallCheckpoint(&store_, 1, step);
  ASSERT_TRUE(store_.RemoveOld(3).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30, 20));
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30));
  ASSERT_TRUE(store_.RemoveOld(0).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30));
}

TEST_F(CheckpointStoreTest, RemoveOldSparesWhatItIsTold) {
  const std::string best = WriteSmallCheckpoint(&store_, 1, 10).directory;
  for (const uint64_t step : {20, 30, 40}) WriteSmallCheckpoint(&store_, 1, step);
  ASSERT_TRUE(store_.RemoveOld(2, {best}).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30, 10));
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30));
}

// Coordinators that take over from each other may never live for two checkpoints.
TEST_F(CheckpointStoreTest, RemoveOldVerifiesWhatOthersWrote) {
  for (const uint64_t step : {10, 20, 30, 40}) WriteSmallCheckpoint(&store_, 1, step);
  for (const uint64_t step : {50, 60, 70}) {
    CheckpointStore successor(root_);
    WriteSmallCheckpoint(&successor, 1, step);
    ASSERT_TRUE(successor.RemoveOld(2).ok());
    EXPECT_THAT(Steps(), ElementsAre(step, step - 10));
  }
}

TEST_F(CheckpointStoreTest, RemoveOldCountsNoDamagedOne) {
  for (const uint64_t step : {10, 20, 30, 40}) WriteSmallCheckpoint(&store_, 1, step);
  std::filesystem::remove((*store_.List(nullptr))[1].directory + "/job.json");
  ASSERT_TRUE(CheckpointStore(root_).RemoveOld(1).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30, 20));
}

// Nor among those that are kept for `keep` alone.
TEST_F(CheckpointStoreTest, ADamagedOneTakesNoPlaceInKeep) {
  for (const uint64_t step : {10, 20, 30, 40, 50}) WriteSmallCheckpoint(&store_, 1, step);
  const std::string file =
      (*store_.List(nullptr))[2].directory + "/model-00001-of-00002.safetensors";
  std::string content = FileContent(file);
  content.back() ^= 4;
  WriteAll(file, content);
  CheckpointStore successor(root_);
  ASSERT_TRUE(successor.RemoveOld(4).ok());
  EXPECT_THAT(Steps(), ElementsAre(50, 40, 30, 20, 10)) << "none can be spared";
  ASSERT_TRUE(successor.RemoveOld(3).ok());
  EXPECT_THAT(Steps(), ElementsAre(50, 40, 30, 20)) << "30 is damaged";
  WriteSmallCheckpoint(&successor, 1, 60);
  WriteSmallCheckpoint(&successor, 1, 70);
  ASSERT_TRUE(successor.RemoveOld(3).ok());
  EXPECT_THAT(Steps(), ElementsAre(70, 60, 50)) << "what is older goes";
}

TEST_F(CheckpointStoreTest, ACheckpointNotFiniteIsMarkedByItsFirstTensor) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    const StoredCheckpoint stored = WriteNotFinite(1, 10, "dense/kernel", bad);
    EXPECT_FALSE(stored.manifest.finite());
    EXPECT_EQ(stored.manifest.not_finite, "dense/kernel");
    EXPECT_EQ(Manifest::Read(stored.directory)->not_finite, "dense/kernel");
    EXPECT_TRUE(store_.Verify(stored).ok());
  }
  EXPECT_EQ(WriteNotFinite(1, 10, "adam_v/scale", NAN).manifest.not_finite, "adam_v/scale");
  const float largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(WriteNotFinite(1, 10, "scale", -largest).manifest.finite());
}

TEST_F(CheckpointStoreTest, ACheckpointNotFiniteReplacesNoGoodOne) {
  for (const uint64_t step : {10, 20, 30}) WriteSmallCheckpoint(&store_, 1, step);
  for (const uint64_t step : {40, 50, 60}) {
    WriteNotFinite(1, step, "dense/kernel", NAN);
    ASSERT_TRUE(store_.RemoveOld(3).ok());
    EXPECT_THAT(Steps(), ElementsAre(step, 30, 20, 10)) << "only the newest of its kind stays";
  }
  WriteSmallCheckpoint(&store_, 2, 20);
  ASSERT_TRUE(store_.RemoveOld(3).ok());
  EXPECT_THAT(Steps(), ElementsAre(20, 30, 20));
}

TEST_F(CheckpointStoreTest, NewestWholePrefersWhatIsFinite) {
  WriteSmallCheckpoint(&store_, 1, 10);
  const StoredCheckpoint bad = WriteNotFinite(1, 20, "dense/kernel", NAN);
  std::vector<std::string> problems;
  const auto finite = store_.NewestVerified({}, &problems);
  EXPECT_EQ((*finite)->manifest.cut_step, 10u);
  EXPECT_THAT(problems,
              ElementsAre(AllOf(HasSubstr(bad.directory), HasSubstr("\"dense/kernel\""))));
  problems.clear();
  const auto best =
      store_.NewestVerified({{(*finite)->directory, absl::DataLossError("torn")}}, &problems);
  EXPECT_EQ((*best)->directory, bad.directory) << "there is no other";
  EXPECT_THAT(problems.back(), HasSubstr(bad.directory));
}

TEST_F(CheckpointStoreTest, ACheckpointFoundDamagedLaterDoesNotCount) {
  for (const uint64_t step : {10, 20, 30}) WriteSmallCheckpoint(&store_, 1, step);
  const auto listed = store_.List(nullptr);
  std::filesystem::remove((*listed)[0].directory + "/job.json");
  EXPECT_FALSE(store_.Verify((*listed)[0]).ok());
  ASSERT_TRUE(store_.RemoveOld(1).ok());
  EXPECT_THAT(Steps(), ElementsAre(30, 20, 10));
}

// As of `ln -s BACKUP/step-... RUN/checkpoints/`.
TEST_F(CheckpointStoreTest, RemoveOldLeavesLinkedCheckpointsWhole) {
  const TemporaryDirectory backup;
  CheckpointStore backups(backup.path());
  const StoredCheckpoint kept = WriteSmallCheckpoint(&backups, 1, 10);
  const StoredCheckpoint broken =
      WriteNotFinite(1, 15, "dense/kernel", std::numeric_limits<float>::quiet_NaN());
  const std::string broken_name = std::filesystem::path(broken.directory).filename();
  std::filesystem::rename(broken.directory, backup / broken_name);
  std::filesystem::create_directory(backup / "step-000000000005-0-00000001");
  std::vector<std::string> names = NamesIn(backup.path());
  for (const std::string& name : names)
    std::filesystem::create_directory_symlink(backup / name, root_ + "/" + name);
  for (const uint64_t step : {20, 30, 40}) WriteSmallCheckpoint(&store_, 1, step);

  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(40, 30, 15, 10));
  EXPECT_EQ(NamesIn(backup.path()), names);
  EXPECT_TRUE(backups.Verify(kept).ok());
  EXPECT_THAT(store_.TakeFoundLinks(), testing::SizeIs(3));
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(store_.TakeFoundLinks(), IsEmpty());
}

TEST_F(CheckpointStoreTest, LinkedCheckpointsTakeNoPlaceInKeep) {
  const TemporaryDirectory backup;
  CheckpointStore backups(backup.path());
  for (const uint64_t step : {35, 45}) {
    const std::string from = WriteSmallCheckpoint(&backups, 1, step).directory;
    std::filesystem::create_directories(root_);
    std::filesystem::create_directory_symlink(
        from, root_ + "/" + std::filesystem::path(from).filename().string());
  }
  for (const uint64_t step : {10, 20, 30}) WriteSmallCheckpoint(&store_, 1, step);
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(45, 35, 30, 20));
}

TEST_F(CheckpointStoreTest, ALinkedCheckpointIsGoneOnFrom) {
  const TemporaryDirectory backup;
  CheckpointStore backups(backup.path());
  const std::string from = WriteSmallCheckpoint(&backups, 1, 10).directory;
  std::filesystem::create_directories(root_);
  std::filesystem::create_directory_symlink(from, root_ + "/step-000000000010-0-00000001");
  const auto newest = store_.NewestVerified({}, nullptr);
  ASSERT_TRUE(newest.ok()) << newest.status();
  ASSERT_TRUE(newest->has_value());
  EXPECT_EQ((*newest)->manifest.cut_step, 10);
}

// The directory of a run may be a link; what lies behind a link inside it is not the run's own.
TEST_F(CheckpointStoreTest, RemoveOldTakesNothingBehindALinkedRoot) {
  for (const uint64_t step : {10, 20, 30}) WriteSmallCheckpoint(&store_, 1, step);
  const std::string link = run_.path() + "/linked";
  std::filesystem::create_directory_symlink(root_, link);
  CheckpointStore linked(link);
  ASSERT_TRUE(linked.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(30, 20, 10));
  EXPECT_THAT(linked.TakeFoundLinks(), ElementsAre(link));

  std::filesystem::create_directory_symlink(run_.path() + "/deep", run_.path() + "/run");
  CheckpointStore of_linked_run(run_.path() + "/run/checkpoints");
  ASSERT_TRUE(of_linked_run.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(30, 20));
}

TEST_F(CheckpointStoreTest, RemoveOldTakesLinksInACheckpointAlone) {
  const std::string elsewhere = run_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  WriteAll(elsewhere + "/kept", "kept");
  const StoredCheckpoint old = WriteSmallCheckpoint(&store_, 1, 10);
  std::filesystem::create_directory_symlink(elsewhere, old.directory + "/folder");
  std::filesystem::rename(old.directory + "/manifest.json", elsewhere + "/manifest.json");
  std::filesystem::create_symlink(elsewhere + "/manifest.json", old.directory + "/manifest.json");
  for (const uint64_t step : {20, 30}) WriteSmallCheckpoint(&store_, 1, step);
  ASSERT_TRUE(store_.RemoveOld(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(30, 20));
  EXPECT_THAT(NamesIn(elsewhere), ElementsAre("kept", "manifest.json"));
}

TEST_F(CheckpointStoreTest, RemoveOldTakesOrphansThatAreOlder) {
  const std::string own = MakeLaidOutDirectory(5);
  CheckpointStore other(root_);
  const std::string orphan = *other.CreateDirectory(15, 1);
  const std::string ahead = *other.CreateDirectory(60, 1);
  for (const uint64_t step : {20, 40}) WriteSmallCheckpoint(&store_, 1, step);
  ASSERT_TRUE(store_.RemoveOld(5).ok());
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_FALSE(std::filesystem::exists(orphan));
  EXPECT_TRUE(std::filesystem::exists(ahead));
}

TEST_F(CheckpointStoreTest, ErrorsNameThePathAndTheReason) {
  WriteAll(run_.path() + "/file", "x");
  CheckpointStore store(run_.path() + "/file/checkpoints");
  const auto created = store.CreateDirectory(1, 1);
  EXPECT_THAT(std::string(created.status().message()), HasSubstr(run_.path() + "/file"));
  EXPECT_EQ(created.status().code(), absl::StatusCode::kFailedPrecondition);
  const auto listed = store.List(nullptr);
  EXPECT_FALSE(listed.ok());
  EXPECT_THAT(std::string(listed.status().message()), HasSubstr(run_.path() + "/file"));
}

}  // namespace
}  // namespace shoal
