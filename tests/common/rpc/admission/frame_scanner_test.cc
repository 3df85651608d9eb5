#include "common/rpc/admission/frame_scanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace shoal {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr char kData = 0, kHeaders = 1, kSettings = 4, kContinuation = 9;
constexpr char kEndHeaders = 4;

std::string Frame(char type, char flags, size_t size) {
  const std::string head = {static_cast<char>(size >> 16),
                            static_cast<char>(size >> 8),
                            static_cast<char>(size),
                            type,
                            flags,
                            0,
                            0,
                            0,
                            1};
  return head + std::string(size, '\x01');
}

// Whether the bytes pass, in pieces of every size up to nine and in one.
bool Passes(const std::string& bytes) {
  int passed = 0;
  for (size_t piece = 1; piece <= 10; ++piece) {
    FrameScanner scanner;
    const size_t step = piece == 10 ? bytes.size() : piece;
    bool all = true;
    for (size_t at = 0; at < bytes.size(); at += step) {
      all = scanner.Accept(reinterpret_cast<const uint8_t*>(bytes.data()) + at,
                           std::min(step, bytes.size() - at));
    }
    passed += all ? 1 : 0;
  }
  EXPECT_TRUE(passed == 0 || passed == 10) << passed;
  return passed == 10;
}

TEST(FrameScannerTest, RequestsAndDataPass) {
  std::string bytes = kPreface + Frame(kSettings, 0, 12);
  for (int i = 0; i < 100; ++i) {
    bytes += Frame(kHeaders, 0, 1000) + Frame(kContinuation, kEndHeaders, 3000);
    bytes += Frame(kData, 0, 16384) + Frame(kHeaders, kEndHeaders, 300);
  }
  EXPECT_TRUE(Passes(bytes));
}

TEST(FrameScannerTest, HeadersWithoutEndAreRejected) {
  std::string bytes = kPreface + Frame(kSettings, 0, 0) + Frame(kHeaders, 0, 10);
  for (int i = 0; i < 5; ++i) bytes += Frame(kContinuation, 0, 16384);
  EXPECT_FALSE(Passes(bytes));
  EXPECT_FALSE(Passes(bytes + Frame(kContinuation, kEndHeaders, 0)));
}

TEST(FrameScannerTest, TooLongHeadersInOneFrameAreRejected) {
  EXPECT_FALSE(Passes(kPreface + Frame(kHeaders, kEndHeaders, 70'000)));
  EXPECT_TRUE(Passes(kPreface + Frame(kHeaders, kEndHeaders, 60'000) + Frame(kData, 0, 70'000)));
}

}  // namespace
}  // namespace shoal
