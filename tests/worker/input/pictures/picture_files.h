#pragma once

#include <cstdint>
#include <cstdio>
// Needs the include above.
#include <jpeglib.h>
#include <png.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace shoal {

// A picture whose pixel (y, x) has (37 y + 101 x + 59 c + 13 x y) mod 256 in channel c.
inline std::vector<uint8_t> TestPixels(int height, int width, int channels) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        pixels.push_back(static_cast<uint8_t>(37 * y + 101 * x + 59 * c + 13 * x * y));
    }
  }
  return pixels;
}

inline std::string EncodePng(const std::vector<uint8_t>& pixels, int height, int width,
                             int channels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string file(size, '\0');
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr);
  file.resize(size);
  return file;
}

inline std::string EncodeJpeg(const std::vector<uint8_t>& pixels, int height, int width,
                              int channels, int quality = 95, bool progressive = false) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) + y * width * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string file(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return file;
}

// A picture of one colour.
inline std::string PlainJpeg(int height, int width, uint8_t level) {
  return EncodeJpeg(std::vector<uint8_t>(static_cast<size_t>(height) * width * 3, level), height,
                    width, 3);
}

// Returns a JPEG whose header has other extents than its data.
inline std::string WithExtents(std::string jpeg, uint16_t height, uint16_t width) {
  for (size_t i = 2; i + 9 < jpeg.size();) {
    const auto marker = static_cast<uint8_t>(jpeg[i + 1]);
    if (marker == 0xC0 || marker == 0xC2) {
      for (int b = 0; b < 2; ++b) {
        jpeg[i + 5 + b] = static_cast<char>(height >> (8 - 8 * b));
        jpeg[i + 7 + b] = static_cast<char>(width >> (8 - 8 * b));
      }
      break;
    }
    i += 2 + (static_cast<uint8_t>(jpeg[i + 2]) << 8 | static_cast<uint8_t>(jpeg[i + 3]));
  }
  return jpeg;
}

// The same for a PNG, with a valid checksum.
inline std::string WithPngExtents(std::string png, uint32_t height, uint32_t width) {
  for (int b = 0; b < 4; ++b) {
    png[16 + b] = static_cast<char>(width >> (24 - 8 * b));
    png[20 + b] = static_cast<char>(height >> (24 - 8 * b));
  }
  uint32_t crc = 0xFFFFFFFF;
  for (int i = 12; i < 29; ++i) {
    crc ^= static_cast<uint8_t>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0xEDB88320 : crc >> 1;
  }
  crc = ~crc;
  for (int b = 0; b < 4; ++b) png[29 + b] = static_cast<char>(crc >> (24 - 8 * b));
  return png;
}

inline std::vector<uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace shoal
