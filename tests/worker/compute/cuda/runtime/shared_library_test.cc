#include "worker/compute/cuda/runtime/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// libm with one function, or a library of it that has not the other.
struct Mathematics {
  static absl::StatusOr<std::unique_ptr<const Mathematics>> LoadFrom(const std::string& path) {
    absl::StatusOr<SharedLibrary> shared = SharedLibrary::Open(path);
    if (!shared.ok()) return shared.status();
    auto library = std::make_unique<Mathematics>();
    shared->Find("cosh", &library->hyperbolic_cosine);
    if (!shared->found().ok()) return shared->found();
    return library;
  }

  double (*hyperbolic_cosine)(double) = nullptr;
};

TEST(SharedLibraryTest, GivesFunctionsByName) {
  absl::StatusOr<SharedLibrary> library = SharedLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  double (*cosine)(double) = nullptr;
  library->Find("cos", &cosine);
  ASSERT_TRUE(library->found().ok()) << library->found();
  EXPECT_EQ(cosine(0), 1);
  double (*none)(double) = cosine;
  library->Find("cudnnCreate", &none);
  EXPECT_EQ(none, nullptr);
  library->Find("cudnnDestroy", &none);
  EXPECT_THAT(library->found(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {"libm.so.6", "cudnnCreate"}));
}

TEST(SharedLibraryTest, OneThatIsNotThereIsNamed) {
  const absl::Status status = SharedLibrary::Open("/nowhere/libcudnn.so.9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libcudnn.so.9"));
}

TEST(SharedLibraryTest, TheFirstThatLoadsIsTaken) {
  const auto library = LoadFirst<Mathematics>(
      {.purpose = "libm", .paths = {"/nowhere/libm.so.6", "libdl.so.2", "libm.so.6"}});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ((*library)->hyperbolic_cosine(0), 1);
}

TEST(SharedLibraryTest, SaysWhereItWasLookedForAndWhatCameOfIt) {
  const absl::Status status = LoadFirst<Mathematics>({.purpose = "libm, which computes,",
                                                      .paths = {"libnowhere.so.1", "libdl.so.2"},
                                                      .install = "install it"})
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("libm, which computes, "),
                                      HasSubstr("libnowhere.so.1 and libdl.so.2"),
                                      HasSubstr("cosh"), HasSubstr("): install it, "),
                                      HasSubstr("LD_LIBRARY_PATH"), HasSubstr("--device=cpu")));
}

}  // namespace
}  // namespace shoal::cuda
