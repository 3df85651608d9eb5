// The file in which is kept what was found the fastest.

#include "worker/compute/cuda/tuning/algorithm_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kChoice = "62 2=0 13=1 28=-1";

AlgorithmKey Key(const std::string& work = "forward") {
  return {
      .libraries = "cuDNN 9.19.0", .gpu = "NVIDIA H100 90 132", .work = work, .demands = "tf32=0"};
}

// A whole file with these entries.
std::string FileOf(const std::string& entries) {
  const std::string before = "shoal-plans-4\n" + entries;
  return before + ChecksumText(Crc32c(before)) + "\n";
}

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  void Write(const std::string& content) const { std::ofstream(path_) << content; }
  void Keep(const AlgorithmKey& key, const std::string& choice) const {
    const absl::Status kept = AlgorithmCache(path_).Keep(key, choice);
    EXPECT_TRUE(kept.ok()) << kept;
  }
  size_t FilesThere() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()),
                         std::filesystem::directory_iterator());
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "plans";
};

TEST_F(AlgorithmCacheTest, AnotherProcessFindsWhatWasKept) {
  AlgorithmCache cache(path_);
  EXPECT_EQ(cache.Find(Key()), std::nullopt);
  ASSERT_TRUE(cache.Keep(Key(), kChoice).ok());
  EXPECT_EQ(cache.Find(Key()), kChoice);
  const AlgorithmCache other(path_);
  EXPECT_EQ(other.Find(Key()), kChoice);
  EXPECT_THAT(other.warning(), IsEmpty());
  EXPECT_EQ(FileContent(path_),
            FileOf("cuDNN 9.19.0\tNVIDIA H100 90 132\tforward\ttf32=0\t62 2=0 13=1 28=-1\n"));
  EXPECT_EQ(FilesThere(), 1u);
}

TEST_F(AlgorithmCacheTest, MakesItsDirectoryWhenThereIsSomethingToKeep) {
  const std::string path = directory_ / "cache/shoal/plans";
  AlgorithmCache cache(path);
  EXPECT_THAT(cache.warning(), IsEmpty());
  EXPECT_EQ(FilesThere(), 0u);
  EXPECT_TRUE(cache.Keep(Key(), kChoice).ok());
  EXPECT_EQ(AlgorithmCache(path).Find(Key()), kChoice);
}

TEST_F(AlgorithmCacheTest, AnythingElseOfTheKeyIsAnotherEntry) {
  Keep(Key(), kChoice);
  const AlgorithmCache cache(path_);
  for (std::string AlgorithmKey::*field : {&AlgorithmKey::libraries, &AlgorithmKey::gpu,
                                           &AlgorithmKey::work, &AlgorithmKey::demands}) {
    AlgorithmKey key = Key();
    key.*field += "1";
    EXPECT_EQ(cache.Find(key), std::nullopt);
  }
  // Those of other GPUs and versions may be in the same file.
  AlgorithmKey newer = Key();
  newer.libraries = "cuDNN 9.20.0";
  Keep(newer, "1");
  EXPECT_EQ(AlgorithmCache(path_).Find(Key()), kChoice);
  EXPECT_EQ(AlgorithmCache(path_).Find(newer), "1");
}

TEST_F(AlgorithmCacheTest, TheLaterChoiceCounts) {
  Keep(Key(), "1");
  Keep(Key(), kChoice);
  EXPECT_EQ(AlgorithmCache(path_).Find(Key()), kChoice);
}

// Of two that are open at once, each adds to what the other has written, and restores what it has
// lost.
TEST_F(AlgorithmCacheTest, ProcessesAddToWhatOthersHaveKept) {
  AlgorithmCache one(path_), other(path_);
  ASSERT_TRUE(one.Keep(Key("a"), kChoice).ok());
  ASSERT_TRUE(other.Keep(Key("b"), kChoice).ok());
  EXPECT_EQ(AlgorithmCache(path_).Find(Key("a")), kChoice);
  std::filesystem::remove(path_);
  ASSERT_TRUE(one.Keep(Key("c"), kChoice).ok());
  const AlgorithmCache cache(path_);
  EXPECT_EQ(cache.Find(Key("a")), kChoice);
  EXPECT_EQ(cache.Find(Key("c")), kChoice);
}

TEST_F(AlgorithmCacheTest, ADamagedFileIsIgnoredWithAWarningAndRewritten) {
  Keep(Key("a"), kChoice);
  Keep(Key("b"), kChoice);
  const std::string whole = FileContent(path_);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    Write(damaged);
    AlgorithmCache cache(path_);
    EXPECT_EQ(cache.Find(Key("a")), std::nullopt) << i;
    EXPECT_EQ(cache.Find(Key("b")), std::nullopt) << i;
    EXPECT_THAT(cache.warning(), AllOf(HasSubstr(path_), HasSubstr("is ignored"))) << i;
    ASSERT_TRUE(cache.Keep(Key("c"), kChoice).ok()) << i;
    EXPECT_EQ(AlgorithmCache(path_).Find(Key("c")), kChoice) << i;
    EXPECT_THAT(AlgorithmCache(path_).warning(), IsEmpty()) << i;
  }
}

TEST_F(AlgorithmCacheTest, ATruncatedFileIsIgnoredWithAWarning) {
  Keep(Key(), kChoice);
  const std::string whole = FileContent(path_);
  for (size_t size = 0; size < whole.size(); ++size) {
    Write(whole.substr(0, size));
    const AlgorithmCache cache(path_);
    EXPECT_EQ(cache.Find(Key()), std::nullopt) << size;
    EXPECT_THAT(cache.warning(), HasSubstr("is ignored")) << size;
  }
}

TEST_F(AlgorithmCacheTest, AFileOfAnotherFormatIsIgnoredWithAWarning) {
  const std::string entry = "cudnn\tgpu\tgraph\tdemands\t1";
  Write(FileOf(entry + "\n"));
  EXPECT_THAT(AlgorithmCache(path_).warning(), IsEmpty());
  for (const std::string& content :
       {std::string("A letter.\n"), std::string("\n"), std::string(1, '\0'),
        FileOf(entry + "\tmore\n"), FileOf("gpu\tgraph\tdemands\t1\n"), FileOf(entry),
        FileOf(entry + "\n") + "\n", std::string(AlgorithmCache::kMaxBytes + 1, '\n')}) {
    Write(content);
    EXPECT_THAT(AlgorithmCache(path_).warning(), HasSubstr("is ignored")) << content.substr(0, 100);
  }
}

TEST_F(AlgorithmCacheTest, NeverGrowsBeyondItsLimit) {
  const std::string long_text(AlgorithmCache::kMaxBytes / 10, 'x');
  AlgorithmCache cache(path_);
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(cache.Keep(Key(absl::StrCat(long_text, i)), absl::StrCat(i)).ok());
    EXPECT_LE(FileContent(path_).size(), AlgorithmCache::kMaxBytes);
  }
  const AlgorithmCache other(path_);
  EXPECT_THAT(other.warning(), IsEmpty());
  // The latest are there.
  for (int i = 6; i < 15; ++i) {
    EXPECT_EQ(other.Find(Key(absl::StrCat(long_text, i))), absl::StrCat(i));
  }
  EXPECT_EQ(other.Find(Key(absl::StrCat(long_text, 5))), std::nullopt);
  // One that is too large for any file leaves a whole one.
  ASSERT_TRUE(cache.Keep(Key(std::string(AlgorithmCache::kMaxBytes, 'x')), kChoice).ok());
  EXPECT_THAT(AlgorithmCache(path_).warning(), IsEmpty());
}

TEST_F(AlgorithmCacheTest, SaysOnceThatItCannotBeWritten) {
  AlgorithmCache cache("/proc/nowhere/plans");
  EXPECT_THAT(cache.warning(), IsEmpty());
  EXPECT_THAT(cache.Keep(Key(), kChoice).message(), HasSubstr("/proc/nowhere"));
  EXPECT_TRUE(cache.Keep(Key(), kChoice).ok());
  EXPECT_EQ(cache.Find(Key()), kChoice);
}

TEST_F(AlgorithmCacheTest, AnUnreadableFileIsNotUsed) {
  AlgorithmCache cache(directory_.path());
  EXPECT_THAT(cache.warning(), HasSubstr(directory_.path()));
  EXPECT_TRUE(cache.Keep(Key(), kChoice).ok());
  EXPECT_EQ(cache.Find(Key()), kChoice);
  EXPECT_EQ(FilesThere(), 0u);
}

TEST_F(AlgorithmCacheTest, WithoutAPathItIsThisProcessAlone) {
  AlgorithmCache cache("");
  EXPECT_TRUE(cache.Keep(Key(), kChoice).ok());
  EXPECT_EQ(cache.Find(Key()), kChoice);
}

// Whoever writes last has all that it has found, and nobody ever sees a part of a file.
TEST_F(AlgorithmCacheTest, TwoProcessesWriteAtOnce) {
  constexpr int kEntries = 100;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    AlgorithmCache cache(path_);
    bool kept = true;
    for (int i = 0; i < kEntries; ++i) {
      kept &= cache.Keep(Key(absl::StrCat(child, " ", i)), absl::StrCat(i)).ok();
      kept &= AlgorithmCache(path_).warning().empty();
    }
    _exit(kept ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const AlgorithmCache cache(path_);
  EXPECT_THAT(cache.warning(), IsEmpty());
  EXPECT_EQ(FilesThere(), 1u);
  int found[2] = {};
  for (int child = 0; child < 2; ++child) {
    for (int i = 0; i < kEntries; ++i) {
      found[child] += cache.Find(Key(absl::StrCat(child, " ", i))).has_value();
    }
  }
  EXPECT_EQ(std::max(found[0], found[1]), kEntries);
}

TEST(AlgorithmCachePathTest, IsBelowTheUsersCacheDirectory) {
  EXPECT_EQ(AlgorithmCachePath("/cache", "/home/me"), "/cache/shoal/plans");
  EXPECT_EQ(AlgorithmCachePath(nullptr, "/home/me"), "/home/me/.cache/shoal/plans");
  // As the specification has it.
  EXPECT_EQ(AlgorithmCachePath("", "/home/me"), "/home/me/.cache/shoal/plans");
  EXPECT_EQ(AlgorithmCachePath("cache", "/home/me"), "/home/me/.cache/shoal/plans");
  EXPECT_EQ(AlgorithmCachePath(nullptr, nullptr), "");
  EXPECT_EQ(AlgorithmCachePath(nullptr, "home"), "");
}

}  // namespace
}  // namespace shoal::cuda
