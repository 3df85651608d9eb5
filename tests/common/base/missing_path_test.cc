#include "common/base/missing_path.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

TEST(MissingPathTest, NamesWhatThePathIsATypingErrorOf) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "flowers/training");
  const std::string folder = directory / "flowers";
  EXPECT_EQ(
      MissingPath(folder + "/trainnig").message(),
      folder + "/trainnig: No such file or directory; did you mean \"" + folder + "/training\"?");
  // Of a folder on the way, too.
  const std::string wrong = directory / "flwoers/training";
  EXPECT_EQ(MissingPath(wrong).message(),
            wrong + ": No such file or directory; did you mean \"" + folder + "\"?");
  EXPECT_EQ(MissingPath(folder + "/test").message(), folder + "/test: No such file or directory");
}

}  // namespace
}  // namespace shoal
