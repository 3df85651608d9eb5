// The file in which the choice of cuDNN's engines is kept.

#include "worker/compute/cuda/cudnn/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const EngineConfig kConfig = {.engine = 62, .knobs = {{2, 0}, {13, 1}, {28, -1}}};

PlanKey Key(const std::string& graph = "forward") {
  return {.cudnn = "9.19.0", .gpu = "NVIDIA H100 9.0 132", .graph = graph, .demands = "tf32=0"};
}

class PlanCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~PlanCacheTest() override { std::filesystem::remove_all(directory_); }

  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(path_).rdbuf();
    return content.str();
  }
  void Write(const std::string& content) const { std::ofstream(path_) << content; }
  void Keep(const PlanKey& key, const EngineConfig& config) const {
    const absl::Status kept = PlanCache(path_).Keep(key, config);
    EXPECT_TRUE(kept.ok()) << kept;
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "/plan_cache_", getpid());
  const std::string path_ = directory_ + "/plans";
};

TEST_F(PlanCacheTest, AnotherProcessFindsWhatWasKept) {
  PlanCache cache(path_);
  EXPECT_EQ(cache.Find(Key()), std::nullopt);
  ASSERT_TRUE(cache.Keep(Key(), kConfig).ok());
  EXPECT_EQ(cache.Find(Key()), kConfig);
  const PlanCache other(path_);
  EXPECT_EQ(other.Find(Key()), kConfig);
  EXPECT_THAT(other.warning(), IsEmpty());
}

TEST_F(PlanCacheTest, AnythingElseOfTheKeyIsAnotherEntry) {
  Keep(Key(), kConfig);
  const PlanCache cache(path_);
  for (std::string PlanKey::*field :
       {&PlanKey::cudnn, &PlanKey::gpu, &PlanKey::graph, &PlanKey::demands}) {
    PlanKey key = Key();
    key.*field += "1";
    EXPECT_EQ(cache.Find(key), std::nullopt);
  }
  // Those of other GPUs and versions may be in the same file.
  PlanKey newer = Key();
  newer.cudnn = "9.20.0";
  Keep(newer, {.engine = 1});
  EXPECT_EQ(PlanCache(path_).Find(Key()), kConfig);
  EXPECT_EQ(PlanCache(path_).Find(newer), EngineConfig{.engine = 1});
}

TEST_F(PlanCacheTest, TheLaterEntryCounts) {
  Keep(Key(), {.engine = 1});
  Keep(Key(), kConfig);
  EXPECT_EQ(PlanCache(path_).Find(Key()), kConfig);
}

TEST_F(PlanCacheTest, PassesOverADamagedEntryWithAWord) {
  Keep(Key("a"), kConfig);
  Keep(Key("b"), kConfig);
  const std::string whole = Content();
  for (size_t i = whole.find("shoal"); i < whole.find("\n", 1); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    Write(damaged);
    const PlanCache cache(path_);
    EXPECT_EQ(cache.Find(Key("a")), std::nullopt) << i;
    EXPECT_EQ(cache.Find(Key("b")), kConfig) << i;
    EXPECT_THAT(cache.warning(), AllOf(HasSubstr(path_), HasSubstr("of 2 entries")));
  }
}

TEST_F(PlanCacheTest, AnEntryOfAnotherFormIsPassedOver) {
  const std::string rest = "\tcudnn\tgpu\tgraph\tdemands\t1";
  for (const std::string& entry : {"shoal-plan-2" + rest, "shoal-plan-1" + rest + "\tmore",
                                   "shoal-plan-1" + rest + " no config"}) {
    Write(absl::StrCat("\n", ChecksumText(Crc32c(entry)), "\t", entry, "\n"));
    EXPECT_THAT(PlanCache(path_).warning(), HasSubstr("1 of 1 entries"));
  }
}

// As when the process that wrote it was killed, or the disk was full.
TEST_F(PlanCacheTest, AnEntryThatWasCutOffHurtsNoOther) {
  Keep(Key("a"), kConfig);
  const std::string whole = Content();
  for (size_t size = 0; size < whole.size(); ++size) {
    Write(whole.substr(0, size));
    Keep(Key("b"), kConfig);
    EXPECT_EQ(PlanCache(path_).Find(Key("b")), kConfig) << size;
  }
}

TEST_F(PlanCacheTest, AddsNothingToAFileThatIsNotOne) {
  Write("A letter.\n");
  PlanCache cache(path_);
  EXPECT_THAT(cache.warning(), AllOf(HasSubstr("1 of 1"), HasSubstr("Remove it")));
  EXPECT_TRUE(cache.Keep(Key(), kConfig).ok());
  EXPECT_EQ(cache.Find(Key()), kConfig);
  EXPECT_EQ(Content(), "A letter.\n");
}

TEST_F(PlanCacheTest, SaysOnceThatItCannotBeWritten) {
  PlanCache cache(directory_ + "/none/plans");
  EXPECT_THAT(cache.warning(), IsEmpty());
  EXPECT_THAT(cache.Keep(Key(), kConfig).message(), HasSubstr("/none/plans"));
  EXPECT_TRUE(cache.Keep(Key(), kConfig).ok());
  EXPECT_EQ(cache.Find(Key()), kConfig);
  EXPECT_THAT(PlanCache(directory_).warning(), HasSubstr("is not used"));
}

TEST_F(PlanCacheTest, WithoutAPathItIsThisProcessAlone) {
  PlanCache cache("");
  EXPECT_TRUE(cache.Keep(Key(), kConfig).ok());
  EXPECT_EQ(cache.Find(Key()), kConfig);
}

TEST_F(PlanCacheTest, TwoProcessesWriteAtOnce) {
  constexpr int kEntries = 300;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    PlanCache cache(path_);
    bool kept = true;
    for (int i = 0; i < kEntries; ++i) {
      kept &= cache.Keep(Key(absl::StrCat(child, " ", i)), {.engine = i}).ok();
    }
    _exit(kept ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const PlanCache cache(path_);
  EXPECT_THAT(cache.warning(), IsEmpty());
  for (int child = 0; child < 2; ++child) {
    for (int i = 0; i < kEntries; ++i) {
      EXPECT_EQ(cache.Find(Key(absl::StrCat(child, " ", i))), EngineConfig{.engine = i});
    }
  }
}

}  // namespace
}  // namespace shoal::cuda
