#include "worker/input/pictures/contact_sheet.h"

#include <gmock/gmock.h>

#include "worker/input/pictures/picture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class ContactSheetTest : public testing::Test {
 protected:
  static Picture Sheet(const std::vector<float>& values, const Shape& shape) {
    const absl::StatusOr<std::string> png = DrawContactSheet(values, shape);
    EXPECT_TRUE(png.ok()) << png.status();
    const auto* bytes = reinterpret_cast<const uint8_t*>(png->data());
    Picture picture;
    EXPECT_TRUE(DecodePicture({bytes, png->size()}, {.channels = 1}, &picture).ok());
    return picture;
  }
};

TEST_F(ContactSheetTest, PicturesLieNextToEachOther) {
  // Three of 1 x 2: a column would be long, so there are two rows.
  const Picture sheet = Sheet({0, 50, 100, 150, 200, 300}, {1, 2, 1});
  EXPECT_EQ(sheet.width, 2);
  EXPECT_EQ(sheet.height, 3 + 2 * 2);
  EXPECT_EQ(std::vector<uint8_t>(sheet.pixels.begin(), sheet.pixels.begin() + 2),
            (std::vector<uint8_t>{0, 50}));
  EXPECT_EQ(sheet.pixels[2], 128);
  EXPECT_EQ(std::vector<uint8_t>(sheet.pixels.end() - 2, sheet.pixels.end()),
            (std::vector<uint8_t>{200, 255}));
}

TEST_F(ContactSheetTest, ValuesUpToOneAreStretched) {
  const Picture sheet = Sheet({0, 0.5, 1, 0}, {2, 2});
  EXPECT_EQ(sheet.pixels, (std::vector<uint8_t>{0, 128, 255, 0}));
  const Picture signed_values = Sheet({0, 0.5, 1, -1}, {2, 2});
  EXPECT_EQ(signed_values.pixels, (std::vector<uint8_t>{128, 191, 255, 0}));
}

TEST_F(ContactSheetTest, AnInputWithoutPicturesIsRejected) {
  const std::vector<float> values(8);
  EXPECT_THAT(std::string(DrawContactSheet(values, {8}).status().message()), HasSubstr("(8,)"));
  EXPECT_FALSE(DrawContactSheet(values, {2, 2, 2}).ok());
  EXPECT_FALSE(DrawContactSheet({}, {2, 2, 1}).ok());
}

}  // namespace
}  // namespace shoal
