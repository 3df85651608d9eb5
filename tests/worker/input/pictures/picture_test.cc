#include "worker/input/pictures/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <thread>

#include "absl/base/config.h"
#include "tests/common/base/fails_with.h"
#include "tests/worker/input/pictures/picture_files.h"
#include "worker/input/pictures/picture_loader.h"
#include "worker/input/pictures/resize.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Status DecodeError(const std::string& file, int channels = 3) {
  Picture picture;
  const absl::Status status = DecodePicture(BytesOf(file), {.channels = channels}, &picture);
  EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnimplemented(status)) << status;
  return status;
}

testing::Matcher<const absl::Status&> IsDamaged(const std::vector<std::string>& values) {
  return FailsWith(absl::StatusCode::kDataLoss, values);
}

Picture Decoded(const std::string& file, const DecodeOptions& options = {}) {
  Picture picture;
  const absl::Status status = DecodePicture(BytesOf(file), options, &picture);
  EXPECT_TRUE(status.ok()) << status;
  return picture;
}

TEST(PictureTest, PngIsReadAsItIs) {
  for (const int channels : {1, 3, 4}) {
    const std::vector<uint8_t> pixels = TestPixels(5, 7, channels);
    const Picture picture = Decoded(EncodePng(pixels, 5, 7, channels), {.channels = channels});
    EXPECT_EQ(picture.height, 5);
    EXPECT_EQ(picture.width, 7);
    EXPECT_EQ(picture.channels, channels);
    EXPECT_EQ(picture.pixels, pixels) << channels;
  }
}

TEST(PictureTest, ChannelsAreWhatIsAskedFor) {
  const std::string grey = EncodePng({10, 20}, 1, 2, 1);
  EXPECT_THAT(Decoded(grey, {.channels = 3}).pixels, ElementsAre(10, 10, 10, 20, 20, 20));
  EXPECT_THAT(Decoded(grey, {.channels = 4}).pixels, ElementsAre(10, 10, 10, 255, 20, 20, 20, 255));
  const std::string colour = EncodePng({100, 150, 200, 77}, 1, 1, 4);
  EXPECT_THAT(Decoded(colour, {.channels = 3}).pixels, ElementsAre(100, 150, 200));
  EXPECT_EQ(Decoded(colour, {.channels = 1}).pixels.size(), 1u);
  EXPECT_EQ(Decoded(PlainJpeg(4, 4, 9), {.channels = 1}).pixels, std::vector<uint8_t>(16, 9));
  EXPECT_THAT(Decoded(PlainJpeg(1, 1, 9), {.channels = 4}).pixels, ElementsAre(9, 9, 9, 255));
}

TEST(PictureTest, JpegIsReadPlainAndProgressive) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 32 * 48; ++i)
    pixels.insert(pixels.end(), 3, static_cast<uint8_t>(i / 48 * 7));
  for (const bool progressive : {false, true}) {
    const Picture picture = Decoded(EncodeJpeg(pixels, 32, 48, 3, 100, progressive));
    ASSERT_EQ(picture.pixels.size(), pixels.size());
    for (size_t i = 0; i < pixels.size(); ++i) ASSERT_NEAR(picture.pixels[i], pixels[i], 3) << i;
  }
}

TEST(PictureTest, ReducedDecodingStopsAboveWhatIsWanted) {
  const std::string jpeg = PlainJpeg(100, 200, 50);
  const auto extents = [&](int64_t height, int64_t width) {
    const Picture picture = Decoded(jpeg, {.min_height = height, .min_width = width});
    return std::pair(picture.height, picture.width);
  };
  EXPECT_EQ(extents(0, 0), std::pair(int64_t{100}, int64_t{200}));
  EXPECT_EQ(extents(51, 51), std::pair(int64_t{100}, int64_t{200}));
  EXPECT_EQ(extents(50, 100), std::pair(int64_t{50}, int64_t{100}));
  EXPECT_EQ(extents(20, 30), std::pair(int64_t{25}, int64_t{50}));
  EXPECT_EQ(extents(1, 1), std::pair(int64_t{13}, int64_t{25}));
}

TEST(PictureTest, TruncatedFilesSayWhereTheyEnd) {
  const std::vector<uint8_t> pixels = TestPixels(40, 40, 3);
  for (const std::string& file :
       {EncodeJpeg(pixels, 40, 40, 3), EncodeJpeg(pixels, 40, 40, 3, 90, true),
        EncodePng(pixels, 40, 40, 3)}) {
    const size_t half = file.size() / 2;
    EXPECT_THAT(DecodeError(file.substr(0, half)), IsDamaged({"byte " + std::to_string(half)}));
    for (size_t size = 0; size + 20 < file.size(); size += 7)
      EXPECT_FALSE(DecodeError(file.substr(0, size)).ok());
  }
}

TEST(PictureTest, DamageIsFoundAndItsPlaceSaid) {
  std::string png = EncodePng(TestPixels(40, 40, 3), 40, 40, 3);
  png[png.size() / 2] ^= 1;
  EXPECT_THAT(DecodeError(png), IsDamaged({"PNG", "byte "}));
  std::string jpeg = EncodeJpeg(TestPixels(40, 40, 3), 40, 40, 3);
  // A marker in the middle of the pixels: the decoder would fill up with grey.
  jpeg[jpeg.size() - 100] = '\xff';
  jpeg[jpeg.size() - 99] = '\xd9';
  EXPECT_THAT(DecodeError(jpeg), IsDamaged({"JPEG", "byte "}));
  EXPECT_THAT(DecodeError(""), IsDamaged({}));
  EXPECT_THAT(DecodeError("GIF89a"), FailsWith(absl::StatusCode::kUnimplemented, {"GIF"}));
  EXPECT_THAT(DecodeError("hello, world"), IsDamaged({"\"hello,\""}));
}

TEST(PictureTest, APngWithMorePixelsThanItsHeaderSaysIsDamaged) {
  const std::vector<uint8_t> pixels = TestPixels(40, 40, 3);
  const std::string png = EncodePng(pixels, 40, 40, 3);
  const std::string black = EncodePng(std::vector<uint8_t>(4800), 40, 40, 3);
  for (const std::string& file : {WithPngExtents(png, 39, 40), WithPngExtents(black, 4, 4)})
    EXPECT_THAT(DecodeError(file), IsDamaged({"PNG"}));
  EXPECT_EQ(Decoded(png + "behind the picture").pixels, pixels);
}

// Of headers that lie about the extents none may take memory for them.
TEST(PictureTest, LyingHeadersAreRejectedWithoutTheirMemory) {
  const auto peak_kib = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const std::string png = EncodePng(TestPixels(8, 8, 3), 8, 8, 3);
  const std::string jpeg = PlainJpeg(8, 8, 1);
  const std::string progressive = EncodeJpeg(TestPixels(8, 8, 3), 8, 8, 3, 90, true);
  const long before = peak_kib();
  for (const std::string& file :
       {WithPngExtents(png, 60000, 60000), WithExtents(jpeg, 60000, 60000),
        WithExtents(progressive, 60000, 60000)}) {
    EXPECT_THAT(DecodeError(file), IsDamaged({"60000 x 60000", "67108864"}));
  }
  for (const std::string& file : {WithPngExtents(png, 8000, 8000), WithExtents(jpeg, 8000, 8000),
                                  WithExtents(progressive, 8000, 8000)}) {
    EXPECT_THAT(DecodeError(file), IsDamaged({"8000 x 8000", std::to_string(file.size())}));
    EXPECT_LT(file.size(), 2000u);
  }
  // With bytes behind it, so that they could be its pixels.
  EXPECT_THAT(DecodeError(WithExtents(progressive, 8000, 8000) + std::string(1 << 20, '\0')),
              IsDamaged({"8000 x 8000", "385536000 bytes"}));
  // Wide and low: of each row, of which there are few, libpng holds more than of the picture.
  EXPECT_THAT(DecodeError(WithPngExtents(png, 1, 16777216) + std::string(1 << 20, '\0')),
              IsDamaged({"16777216 x 1"}));
  // Within the limit, and less there than it says.
  EXPECT_THAT(DecodeError(WithPngExtents(png, 16, 16)), IsDamaged({"PNG"}));
  EXPECT_THAT(DecodeError(WithExtents(jpeg, 100, 100)), IsDamaged({"JPEG"}));
  EXPECT_LT(peak_kib() - before, 20 << 10);
}

// Bytes that are allocated in pieces too large for the heap.
size_t LargePieces() { return mallinfo2().hblkhd; }

TEST(PictureLoaderTest, KeepsLittleMemoryAlsoAfterAnError) {
  const auto loader = PictureLoader::Make({}, {.name = "x", .shape = {2, 2, 3}});
  ASSERT_TRUE(loader.ok());
  std::string jpeg = EncodeJpeg(TestPixels(3000, 3000, 3), 3000, 3000, 3);
  jpeg.resize(jpeg.size() / 2);
  const std::vector<uint8_t> truncated = BytesOf(jpeg);
  std::vector<float> out(12);
  MemoryBudget memory(100 << 20);
  const size_t before = LargePieces();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(loader->Load(truncated, &memory, out).ok());
  EXPECT_LE(LargePieces(), before + ReadingMemory::kMaxKept);
}

TEST(PictureLoaderTest, LargePicturesWaitForTheMemoryOfOthers) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  const auto loader = PictureLoader::Make({}, {.name = "x", .shape = {2, 2, 3}});
  ASSERT_TRUE(loader.ok());
  const std::vector<uint8_t> jpeg = BytesOf(PlainJpeg(4000, 4000, 9));  // 48 MB decoded
  const auto peak_kib = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  MemoryBudget memory(100 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::vector<float> out(12);
      EXPECT_TRUE(loader->Load(jpeg, &memory, out).ok());
      EXPECT_NEAR(out[11], 9, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(peak_kib() - before, 150 << 10);
}

// By keras.ops.image.resize(..., antialias=False) of Keras 3.
TEST(ResizeTest, IsThatOfKeras) {
  struct Case {
    int height, width, to_height, to_width;
    std::vector<float> bilinear, nearest;
  };
  const std::vector<Case> cases = {
      {5,
       7,
       3,
       4,
       {51.8333, 129.5, 164.5, 156.833, 121.625, 87.875, 86.125, 116.375, 127.417, 163.583, 199.75,
        97.25},
       {0, 202, 148, 94, 74, 72, 70, 68, 148, 198, 248, 42}},
      {3,
       2,
       5,
       5,
       {0,     10.1, 50.5, 90.9,  101,   14.8,   25.42, 67.9, 110.38, 121,   37,    48.4, 94,
        139.6, 151,  59.2, 71.38, 120.1, 168.82, 181,   74,   86.7,   137.5, 188.3, 201},
       {0,   0,   101, 101, 101, 0,   0,   101, 101, 101, 37,  37, 151,
        151, 151, 74,  74,  201, 201, 201, 74,  74,  201, 201, 201}},
      {9, 9, 2, 3, {188.5, 111.75, 163, 157.5, 128.25, 163}, {201, 70, 195, 145, 170, 195}}};
  for (const Case& each : cases) {
    const Picture picture{.height = each.height,
                          .width = each.width,
                          .channels = 1,
                          .pixels = TestPixels(each.height, each.width, 1)};
    const Crop whole{.height = each.height, .width = each.width};
    std::vector<float> out(each.bilinear.size());
    Resize(picture, whole, each.to_height, each.to_width, Interpolation::kBilinear, out);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], each.bilinear[i], 1e-3) << i;
    Resize(picture, whole, each.to_height, each.to_width, Interpolation::kNearest, out);
    EXPECT_EQ(out, each.nearest);
  }
}

TEST(ResizeTest, ChannelsDoNotMix) {
  const Picture picture{.height = 1, .width = 2, .channels = 3, .pixels = {0, 10, 20, 100, 50, 40}};
  std::vector<float> out(9);
  Resize(picture, {.height = 1, .width = 2}, 1, 3, Interpolation::kBilinear, out);
  EXPECT_THAT(out, testing::Pointwise(testing::FloatNear(1e-4f),
                                      {0.f, 10.f, 20.f, 50.f, 30.f, 30.f, 100.f, 50.f, 40.f}));
}

// keras.utils.image_dataset_from_directory's crop_to_aspect_ratio.
TEST(ResizeTest, CropsTheMiddle) {
  const Crop wide = CropToAspectRatio({.height = 30, .width = 101}, 10, 20);
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.width, 60);
  EXPECT_EQ(wide.top, 0);
  EXPECT_EQ(wide.left, 20);
  const Crop tall = CropToAspectRatio({.height = 101, .width = 30}, 224, 224);
  EXPECT_EQ(tall.height, 30);
  EXPECT_EQ(tall.width, 30);
  EXPECT_EQ(tall.top, 35);
  EXPECT_EQ(tall.left, 0);
}

TEST(PictureLoaderTest, TakesWhatIsNotSaidFromTheModel) {
  const auto loader = PictureLoader::Make({}, {.name = "x", .shape = {2, 3, 1}});
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<float> out(6);
  ASSERT_TRUE(loader->Load(BytesOf(PlainJpeg(20, 20, 7)), nullptr, out).ok());
  EXPECT_EQ(out, std::vector<float>(6, 7));
  DataSource source;
  source.image_height = source.image_width = 180;
  source.color_mode = "rgb";
  EXPECT_THAT(
      std::string(
          PictureLoader::Make(source, {.name = "x", .shape = {180, 160, 3}}).status().message()),
      AllOf(HasSubstr("(180, 180, 3)"), HasSubstr("\"x\" takes (180, 160, 3)")));
  EXPECT_FALSE(PictureLoader::Make({}, {.name = "x", .shape = {180, 160}}).ok());
  EXPECT_FALSE(PictureLoader::Make({}, {.name = "x", .shape = {180, 160, 2}}).ok());
}

}  // namespace
}  // namespace shoal
