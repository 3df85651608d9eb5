// Each kind of picture as each number of channels, against the bytes that TensorFlow makes of it.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "worker/input/pictures/picture.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

std::vector<uint8_t> BytesOfHex(const Json& hex) {
  const std::string bytes = absl::HexStringToBytes(hex.get<std::string>());
  return {bytes.begin(), bytes.end()};
}

// By testdata/make_pictures.py.
Json KnownPictures() {
  std::ifstream file(SHOAL_SOURCE_DIR "/tests/worker/input/testdata/pictures.json");
  return Json::parse(file)["pictures"];
}

// TensorFlow rejects these: a JPEG has no alpha, so it is opaque, and CMYK is no grey.
void ExpectBeyondTensorFlow(const Json& known, int channels) {
  Picture picture;
  const absl::Status status =
      DecodePicture(BytesOfHex(known["file"]), {.channels = channels}, &picture);
  if (channels == 1) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return;
  }
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<uint8_t> rgb = BytesOfHex(known["pixels"]["3"]);
  std::vector<uint8_t> rgba;
  for (size_t i = 0; i < rgb.size(); i += 3) {
    rgba.insert(rgba.end(), {rgb[i], rgb[i + 1], rgb[i + 2], 255});
  }
  EXPECT_EQ(picture.pixels, rgba);
}

class PictureConversionsTest : public ::testing::TestWithParam<int> {};

TEST_P(PictureConversionsTest, EveryKindHasTheBytesOfTensorFlow) {
  const int channels = GetParam();
  const Json pictures = KnownPictures();
  ASSERT_FALSE(pictures.empty());
  for (const Json& known : pictures) {
    SCOPED_TRACE(known["name"].get<std::string>());
    const Json& expected = known["pixels"][std::to_string(channels)];
    if (expected.is_null()) {
      ExpectBeyondTensorFlow(known, channels);
      continue;
    }
    Picture picture;
    const absl::Status status =
        DecodePicture(BytesOfHex(known["file"]), {.channels = channels}, &picture);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(picture.height, known["height"].get<int64_t>());
    EXPECT_EQ(picture.width, known["width"].get<int64_t>());
    EXPECT_EQ(picture.channels, channels);
    EXPECT_EQ(picture.pixels, BytesOfHex(expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, PictureConversionsTest, ::testing::Values(1, 3, 4));

}  // namespace
}  // namespace shoal
