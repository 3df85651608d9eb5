#include <gmock/gmock.h>
#include <zip.h>

#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/format_test.h"

namespace shoal {
namespace {

using testing::ElementsAre;

class NpzTest : public FormatTest {
 protected:
  NpzTest() {
    source_.format = "npz";
    source_.paths = {Path("data.npz")};
    source_.features = {{"", {"x"}}};
    source_.labels = "y";
    inputs_ = {{.name = "in", .shape = {2}}};
    members_ = {{"x.npy", X()}, {"y.npy", Y()}};
  }
  static std::string X() {
    return NpyHeader(1, NpyDict("<f4", "(2, 2)")) + Stored<float>({1, 2, 3, 4}, false);
  }
  static std::string Y() {
    return NpyHeader(1, NpyDict("<i8", "(2,)")) + Stored<int64_t>({7, 8}, false);
  }

  std::string Zip(zip_int32_t method = ZIP_CM_DEFLATE) {
    const std::string path = Path("data.npz");
    std::filesystem::remove(path);
    int code = 0;
    zip* archive = zip_open(path.c_str(), ZIP_CREATE, &code);
    for (const auto& [name, content] : members_) {
      const zip_int64_t index = zip_file_add(
          archive, name.c_str(), zip_source_buffer(archive, content.data(), content.size(), 0), 0);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return path;
  }

  std::map<std::string, std::string> members_;
};

TEST_F(NpzTest, ArraysAreFoundByName) {
  for (const zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    Zip(method);
    EXPECT_THAT(Rows(), ElementsAre("1 2 : 7", "3 4 : 8"));
  }
  source_.features = {{"b", {"y"}}, {"a", {"x"}}};
  inputs_ = {{.name = "a", .shape = {2}},
             {.name = "b", .shape = {1}, .type = FeatureType::kInteger}};
  EXPECT_THAT(Rows(), ElementsAre("1 2 | 7 : 7", "3 4 | 8 : 8"));
}

TEST_F(NpzTest, WeightsAreTheLastFeature) {
  members_["w.npy"] = NpyHeader(1, NpyDict("<f4", "(2, 1)")) + Stored<float>({0.5, 2}, false);
  Zip();
  source_.weights = "w";
  EXPECT_THAT(Rows(), ElementsAre("1 2 : 7", "3 4 : 8"));
  inputs_.push_back({.name = "sample weights", .type = FeatureType::kWeight});
  EXPECT_THAT(Rows(), ElementsAre("1 2 | 0.5 : 7", "3 4 | 2 : 8"));
  source_.weights = "x";
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kInvalidArgument, {"(None, 2)"}));
  members_["w.npy"] = NpyHeader(1, NpyDict("<f4", "(2,)")) + Stored<float>({1, -2}, false);
  Zip();
  source_.weights = "w";
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kOutOfRange, {"example 1: ", "-2"}));
}

TEST_F(NpzTest, WeightsThatAreNotAskedForAreNoInput) {
  Zip();
  source_.weights = "w";
  source_.features = {{"a", {"x"}}, {"b", {"y"}}};
  inputs_ = {{.name = "a", .shape = {2}}, {.name = "b", .shape = {1}}};
  EXPECT_THAT(Rows(), ElementsAre("1 2 | 7 : 7", "3 4 | 8 : 8"));
}

TEST_F(NpzTest, AnArrayThatIsNotThereIsNamedBesideThoseThatAre) {
  Zip();
  source_.labels = "labels";
  source_.features = {{"", {"images"}}};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kInvalidArgument,
                                   {Path("data.npz"), "images.npy", "labels.npy", "x.npy, y.npy"}));
}

TEST_F(NpzTest, DamageIsNamed) {
  Write("data.npz", "PK, but no archive");
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {Path("data.npz")}));
  std::filesystem::remove(Path("data.npz"));
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  // A byte of the numbers, which the checksum finds.
  Zip(ZIP_CM_STORE);
  std::fstream file(Path("data.npz"), std::ios::binary | std::ios::in | std::ios::out);
  std::string content(std::filesystem::file_size(Path("data.npz")), '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  file.seekp(static_cast<std::streamoff>(content.find(Stored<float>({3, 4}, false))));
  file.put('\x55');
  file.close();
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {Path("data.npz") + ": x.npy: "}));
}

// What unpacks to more than its array has, or to more than there is room for, is not unpacked.
TEST_F(NpzTest, AZipBombIsRejected) {
  members_["x.npy"] = X() + std::string(64 << 20, '\0');
  Zip();
  EXPECT_LT(std::filesystem::file_size(Path("data.npz")), 100u << 10);
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kDataLoss, {Path("data.npz") + ": x.npy: ", "byte 144"}));
  members_["x.npy"] =
      NpyHeader(1, NpyDict("|u1", "(2, 1000000000000000)")) + std::string(1 << 20, '\0');
  Zip();
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kResourceExhausted,
                                   {Path("data.npz") + ": x.npy", "2000000000000128 bytes"}));
}

}  // namespace
}  // namespace shoal
