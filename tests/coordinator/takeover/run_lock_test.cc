#include "coordinator/takeover/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/files/durable_file.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/bare_file_system.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A coordinator with a lease, on the loop of all of them.
struct Claimant {
  std::unique_ptr<RunLock> lease;
  std::vector<std::string> answers;  // of Acquire; "" is OK
  std::string lost;

  std::string answer() const { return answers.empty() ? "none" : answers.back(); }
};

// A disk that does not say what a directory holds while `broken`.
class UnlistedFileSystem : public PassingFileSystem {
 public:
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override {
    if (broken) return absl::UnavailableError("cannot list " + directory + ": Stale file handle");
    return PassingFileSystem::List(directory);
  }
  bool broken = false;
};

class RunLockTest : public testing::Test {
 protected:
  // Its process is `name`.
  std::unique_ptr<Claimant> Make(const std::string& name, FileSystem* files = RealFileSystem()) {
    auto claimant = std::make_unique<Claimant>();
    claimant->lease = std::make_unique<RunLock>(RunLock::Options{
        .loop = &loop_,
        .files = files,
        .directory = directory_,
        .self = {.address = name + ":2222",
                 .host = "host-of-" + name,
                 .pid = 77,
                 .process = name,
                 .since = "2026-01-02 03:04:05"},
        .is_gone = [this](const std::string& process) { return gone_.contains(process); },
        .on_lost =
            [it = claimant.get()](const absl::Status& status) {
              EXPECT_TRUE(absl::IsAborted(status));
              it->lost = std::string(status.message());
            }});
    return claimant;
  }
  void Acquire(Claimant& claimant, std::vector<uint64_t> ps) {
    claimant.lease->Acquire(std::move(ps), [&claimant](const absl::Status& status) {
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status));
      claimant.answers.push_back(std::string(status.message()));
    });
    loop_.RunUntilIdle();
  }
  // As after kill -9.
  void Kill(std::unique_ptr<Claimant>& claimant) { claimant.reset(); }
  std::vector<std::string> Files() const { return NamesIn(directory_); }

  const TemporaryDirectory run_;
  const std::string directory_ = run_.path() + "/.lease";
  std::set<std::string> gone_;
  FakeLoop loop_;
};

TEST_F(RunLockTest, TheFirstHasItAtOnceAndRenewsIt) {
  const auto a = Make("a");
  Acquire(*a, {1, 2});
  EXPECT_THAT(a->answers, ElementsAre(""));
  EXPECT_THAT(Files(), ElementsAre("1"));
  std::string before = FileContent(directory_ + "/1");
  for (int i = 0; i < 5; ++i) {
    loop_.Advance(milliseconds(2001));
    const std::string now = FileContent(directory_ + "/1");
    EXPECT_NE(now, before);
    EXPECT_EQ(now.size(), before.size());
    before = now;
  }
  EXPECT_THAT(a->answers, ElementsAre("")) << "once";
}

TEST_F(RunLockTest, OneWithOtherPsIsRejectedWhileTheHolderLives) {
  const auto a = Make("a"), b = Make("b");
  Acquire(*a, {1, 2});
  Acquire(*b, {3, 4});
  EXPECT_THAT(b->answers, IsEmpty());
  EXPECT_THAT(b->lease->Waiting(), HasSubstr("a:2222"));
  loop_.Advance(seconds(9));
  EXPECT_THAT(b->answers, IsEmpty());
  loop_.Advance(seconds(3));
  EXPECT_THAT(b->answer(), AllOf(HasSubstr("a:2222"), HasSubstr("host-of-a"), HasSubstr("pid 77"),
                                 HasSubstr("2026-01-02 03:04:05"), HasSubstr(directory_ + "/1"),
                                 HasSubstr("--run_dir")));
  EXPECT_THAT(b->lease->Waiting(), IsEmpty());
  EXPECT_EQ(a->lost, "");
  EXPECT_THAT(Files(), ElementsAre("1"));
}

// The terms have ended the holder's office.
TEST_F(RunLockTest, OneThatHasClaimedAPsOfTheHolderTakesOverAtOnce) {
  const auto a = Make("a"), b = Make("b");
  Acquire(*a, {1, 2});
  Acquire(*b, {2, 3});
  EXPECT_EQ(b->answer(), "");
  EXPECT_THAT(Files(), ElementsAre("2"));
  loop_.Advance(seconds(3));
  EXPECT_THAT(a->lost, HasSubstr("b:2222"));
  EXPECT_EQ(b->lost, "");
}

TEST_F(RunLockTest, AfterADeadProcessOfThisMachineNobodyWaits) {
  auto a = Make("a");
  Acquire(*a, {1});
  Kill(a);
  gone_.insert("a");
  const auto b = Make("b");
  Acquire(*b, {2});
  EXPECT_EQ(b->answer(), "");
}

TEST_F(RunLockTest, AfterAnOrderlyEndNobodyWaits) {
  auto a = Make("a");
  Acquire(*a, {1});
  a->lease->Release();
  loop_.RunUntilIdle();
  const auto b = Make("b");
  Acquire(*b, {2});
  EXPECT_EQ(b->answer(), "");
  loop_.Advance(seconds(30));
  EXPECT_EQ(a->lost + b->lost, "");
}

TEST_F(RunLockTest, ADeadProcessOfAnotherMachineIsWaitedFor) {
  auto a = Make("a");
  Acquire(*a, {1});
  loop_.Advance(seconds(100));
  Kill(a);
  const auto b = Make("b");
  Acquire(*b, {2});
  loop_.Advance(seconds(9));
  EXPECT_THAT(b->answers, IsEmpty());
  loop_.Advance(seconds(2));
  EXPECT_EQ(b->answer(), "");
}

// It has lost its ps, and waits for them.
TEST_F(RunLockTest, OneThatDoesNotLeadHoldsNobodyUpForLong) {
  const auto a = Make("a"), b = Make("b");
  Acquire(*a, {1});
  loop_.Advance(seconds(5));
  a->lease->Pause();
  Acquire(*b, {2});
  loop_.Advance(seconds(11));
  EXPECT_EQ(b->answer(), "");
  EXPECT_EQ(a->lost, "") << "it did not lead";
  // Both claim the same ps now, the first with the higher term.
  Acquire(*a, {2});
  EXPECT_THAT(a->answers, ElementsAre("", ""));
  loop_.Advance(seconds(3));
  EXPECT_THAT(b->lost, HasSubstr("a:2222"));
}

TEST_F(RunLockTest, TheHolderThatClaimsAnewKeepsIt) {
  const auto a = Make("a"), b = Make("b");
  Acquire(*a, {1});
  a->lease->Pause();
  loop_.Advance(seconds(60));
  Acquire(*a, {5});
  EXPECT_THAT(a->answers, ElementsAre("", ""));
  EXPECT_THAT(Files(), ElementsAre("1"));
  Acquire(*b, {5});
  EXPECT_EQ(b->answer(), "") << "the file names the new ps";
}

TEST_F(RunLockTest, OfTwoThatFindItFreeOneAloneGetsIt) {
  auto a = Make("a");
  Acquire(*a, {1});
  Kill(a);
  gone_.insert("a");
  const auto b = Make("b"), c = Make("c");
  loop_.set_hold_brief(true);
  for (const auto& [claimant, ps] : {std::pair(b.get(), 2), {c.get(), 3}}) {
    claimant->lease->Acquire({static_cast<uint64_t>(ps)},
                             [it = claimant](const absl::Status& status) {
                               it->answers.push_back(std::string(status.message()));
                             });
  }
  loop_.set_hold_brief(false);
  loop_.Advance(seconds(1));
  EXPECT_EQ(b->answer(), "");
  EXPECT_THAT(c->answers, IsEmpty());
  loop_.Advance(seconds(12));
  EXPECT_THAT(c->answer(), HasSubstr("b:2222"));
}

TEST_F(RunLockTest, ALeaseThatIsTornIsWaitedFor) {
  for (const std::string text : {"", "{", "[]", "{\"pid\": \"x\"}", "\x01\xff"}) {
    std::filesystem::remove_all(directory_);
    ASSERT_TRUE(MakeDirectories(directory_).ok());
    WriteAll(directory_ + "/41", text);
    const auto a = Make("a");
    Acquire(*a, {1});
    EXPECT_THAT(a->answers, IsEmpty()) << text;
    loop_.Advance(seconds(11));
    EXPECT_EQ(a->answer(), "") << text;
    EXPECT_THAT(Files(), ElementsAre("42"));
  }
}

TEST_F(RunLockTest, TextOfItsFileIsMadePrintable) {
  ASSERT_TRUE(MakeDirectories(directory_).ok());
  WriteAll(directory_ + "/1",
           R"({"coordinator": "\u001b[2J\n", "host": ")" + std::string(100'000, 'x') +
               R"(", "pid": "1", "since": "", "process": "", "ps": [7, null], "state": 3})");
  const auto a = Make("a");
  Acquire(*a, {7});
  EXPECT_THAT(a->answers, IsEmpty());
  EXPECT_THAT(a->lease->Waiting(),
              AllOf(Not(IsEmpty()), Not(HasSubstr("\033")), Not(HasSubstr("\n"))));
  EXPECT_LT(a->lease->Waiting().size(), 1000u);
}

TEST_F(RunLockTest, WithoutADiskToWriteToTheJobGoesOn) {
  BareFileSystem bare;
  const auto a = Make("a", &bare);
  Acquire(*a, {1});
  EXPECT_EQ(a->answer(), "");
  loop_.Advance(seconds(60));
  EXPECT_EQ(a->lost, "");
}

TEST_F(RunLockTest, ADirectoryThatCannotBeListedIsNoEmptyOne) {
  ASSERT_TRUE(MakeDirectories(directory_).ok());
  WriteAll(directory_ + "/4", R"({"pid": "1", "state": "left"})");
  const auto a = Make("a");
  Acquire(*a, {1});  // in 5
  UnlistedFileSystem disk;
  const auto b = Make("b", &disk);
  disk.broken = true;
  Acquire(*b, {2});
  loop_.Advance(seconds(1));
  EXPECT_THAT(b->answers, IsEmpty());
  EXPECT_THAT(b->lease->Waiting(), HasSubstr(directory_));
  EXPECT_THAT(Files(), ElementsAre("5"));
  disk.broken = false;
  loop_.Advance(seconds(1));
  EXPECT_THAT(b->lease->Waiting(), HasSubstr("a:2222"));
  loop_.Advance(seconds(11));
  EXPECT_THAT(b->answer(), HasSubstr("a:2222"));
  EXPECT_EQ(a->lost, "");
}

// It would never be otherwise: who waits for it waits for ever.
TEST_F(RunLockTest, AFileInPlaceOfTheDirectoryIsNamed) {
  WriteAll(directory_, "not a directory");
  const auto claimant = Make("ada");
  Acquire(*claimant, {1});
  EXPECT_THAT(claimant->answer(),
              AllOf(HasSubstr(directory_), HasSubstr("Not a directory"), HasSubstr("move away")));
  EXPECT_THAT(claimant->lease->Waiting(), IsEmpty());
}

TEST_F(RunLockTest, NothingIsWrittenOrRemovedBehindALink) {
  const std::string elsewhere = run_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  WriteAll(elsewhere + "/1", "kept");
  std::filesystem::create_directory_symlink(elsewhere, directory_);
  const auto claimant = Make("ada");
  Acquire(*claimant, {1});
  EXPECT_THAT(claimant->answer(), HasSubstr(directory_));
  loop_.Advance(seconds(30));
  EXPECT_THAT(NamesIn(elsewhere), ElementsAre("1"));
  EXPECT_EQ(FileContent(elsewhere + "/1"), "kept");
}

TEST_F(RunLockTest, ARenewalWritesThroughNoLink) {
  const auto a = Make("a");
  Acquire(*a, {1});
  const std::string elsewhere = run_.path() + "/elsewhere";
  WriteAll(elsewhere, "kept");
  std::filesystem::remove(directory_ + "/1");
  std::filesystem::create_symlink(elsewhere, directory_ + "/1");
  loop_.Advance(seconds(5));
  EXPECT_EQ(FileContent(elsewhere), "kept");
}

TEST_F(RunLockTest, AHolderWhoseDirectoryCannotBeListedForAMomentKeepsIt) {
  UnlistedFileSystem disk;
  const auto a = Make("a", &disk);
  Acquire(*a, {1});
  disk.broken = true;
  loop_.Advance(seconds(5));
  disk.broken = false;
  loop_.Advance(seconds(5));
  EXPECT_EQ(a->lost, "");
  EXPECT_THAT(Files(), ElementsAre("1"));
}

// A checkpoint of gigabytes that is read back.
TEST_F(RunLockTest, IsRenewedWhileLargeFilesAreRead) {
  const auto a = Make("a");
  loop_.set_hold_offloads(true);
  loop_.Offload(
      Lane::kFiles, [] {}, [] {});
  Acquire(*a, {1, 2});
  const auto b = Make("b");
  Acquire(*b, {3, 4});
  loop_.Advance(seconds(15));
  EXPECT_EQ(a->lost, "");
  EXPECT_THAT(b->answer(), HasSubstr("a:2222")) << "rejected, as a renews it";
}

// What hangs is a renewal; its holder claims anew, and meanwhile somebody else has taken over.
TEST_F(RunLockTest, ANewClaimLooksFirst) {
  const auto a = Make("a");
  Acquire(*a, {1});
  loop_.set_hold_brief(true);
  loop_.Advance(seconds(3));
  ASSERT_TRUE(loop_.RunOneBrief()) << "the look";
  a->lease->Pause();
  a->lease->Acquire({2}, [&](const absl::Status& status) {
    a->answers.push_back(std::string(status.message()));
  });
  WriteAll(directory_ + "/2", R"({"coordinator": "b:2222", "pid": "1", "state": "held"})");
  ASSERT_TRUE(loop_.RunOneBrief()) << "the renewal";
  EXPECT_THAT(a->answers, ElementsAre("")) << "led without a look";
  loop_.set_hold_brief(false);
  loop_.RunUntilIdle();
  EXPECT_THAT(a->answers, ElementsAre(""));
  EXPECT_THAT(a->lease->Waiting(), HasSubstr("b:2222"));
}

TEST_F(RunLockTest, ALeaseThatIsGivenBackWhileItIsMadeHoldsNobodyUp) {
  const auto a = Make("a");
  loop_.set_hold_brief(true);
  Acquire(*a, {1});
  ASSERT_TRUE(loop_.RunOneBrief()) << "the look";
  a->lease->Release();
  loop_.set_hold_brief(false);
  loop_.RunUntilIdle();
  EXPECT_THAT(a->answers, IsEmpty());
  const auto b = Make("b");
  Acquire(*b, {2});
  EXPECT_EQ(b->answer(), "");
}

// As a network's file system may for ever.
TEST_F(RunLockTest, ADiskThatDoesNotAnswerIsSpokenOf) {
  const auto a = Make("a");
  loop_.set_hold_brief(true);
  Acquire(*a, {1});
  loop_.Advance(seconds(1));
  EXPECT_THAT(a->lease->Waiting(), IsEmpty());
  loop_.Advance(seconds(6));
  EXPECT_THAT(a->lease->Waiting(), AllOf(HasSubstr(directory_ + " "), HasSubstr(" 7 s")));
  // Nor to the file that it makes.
  ASSERT_TRUE(loop_.RunOneBrief());
  EXPECT_THAT(a->lease->Waiting(), IsEmpty());
  loop_.Advance(seconds(3));
  EXPECT_THAT(a->lease->Waiting(), HasSubstr(" 3 s"));
  loop_.set_hold_brief(false);
  loop_.RunUntilIdle();
  EXPECT_EQ(a->answer(), "");
  EXPECT_THAT(a->lease->Waiting(), IsEmpty());
}

// Between its look and its file, which takes a while where the disk is slow.
TEST_F(RunLockTest, AClaimBelowAHigherNumberDoesNotLead) {
  const auto a = Make("a");
  loop_.set_hold_brief(true);
  Acquire(*a, {1});
  ASSERT_TRUE(loop_.RunOneBrief());
  ASSERT_TRUE(MakeDirectories(directory_).ok());
  WriteAll(directory_ + "/7", R"({"coordinator": "b:2222", "pid": "1", "state": "held"})");
  loop_.set_hold_brief(false);
  loop_.Advance(seconds(1));
  EXPECT_THAT(a->answers, IsEmpty());
  EXPECT_THAT(a->lease->Waiting(), HasSubstr("b:2222"));
  EXPECT_THAT(Files(), ElementsAre("7"));
  loop_.Advance(seconds(11));
  EXPECT_EQ(a->answer(), "");
  EXPECT_EQ(a->lost, "");
}

TEST_F(RunLockTest, SightsFromBeforeAPauseRejectNobody) {
  auto a = Make("a");
  const auto b = Make("b");
  Acquire(*a, {1});
  Acquire(*b, {2});
  loop_.Advance(seconds(1));
  b->lease->Pause();
  loop_.Advance(seconds(20));
  Kill(a);
  Acquire(*b, {2});
  EXPECT_THAT(b->answers, IsEmpty());
  loop_.Advance(seconds(11));
  EXPECT_EQ(b->answer(), "");
}

// What a command compares with the status of the coordinator that it has found.
TEST_F(RunLockTest, TheNewestFileSaysWhoLeads) {
  const auto held_by = [this](const char* process, bool left) {
    const std::optional<LeaseHolder> holder = ReadLeaseHolder(directory_, RealFileSystem());
    return holder.has_value() && holder->process == process && holder->left == left;
  };
  EXPECT_FALSE(ReadLeaseHolder(directory_, RealFileSystem()).has_value());
  const auto a = Make("a"), b = Make("b");
  EXPECT_EQ(a->lease->Process(), "");
  Acquire(*a, {1});
  EXPECT_EQ(a->lease->Process(), "a");
  EXPECT_TRUE(held_by("a", false));
  a->lease->Pause();
  EXPECT_EQ(a->lease->Process(), "a") << "the file is its own still";
  Acquire(*b, {2});
  EXPECT_EQ(b->lease->Process(), "") << "it waits";
  a->lease->Release();
  loop_.RunUntilIdle();
  EXPECT_TRUE(held_by("a", true));
  EXPECT_EQ(a->lease->Process(), "a") << "it may be asked until it has ended";
  loop_.Advance(seconds(1));
  EXPECT_EQ(b->lease->Process(), "b");
  EXPECT_TRUE(held_by("b", false));
  // Its writer died on the way.
  ASSERT_TRUE(ReplaceFile(directory_ + "/9", "{").ok());
  EXPECT_FALSE(ReadLeaseHolder(directory_, RealFileSystem()).has_value());
}

TEST_F(RunLockTest, ALeaseThatSomebodyRemovedIsMadeAgain) {
  const auto a = Make("a"), b = Make("b");
  Acquire(*a, {1});
  std::filesystem::remove_all(directory_);
  loop_.Advance(seconds(3));
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_EQ(a->lost, "");
  Acquire(*b, {2});
  EXPECT_THAT(b->answers, IsEmpty());
}

}  // namespace
}  // namespace shoal
